"""From a resource to what its engine says: the operator's pods start real vLLM through the supervisor, and status tells what it found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import models
from asking import Engine, Keeping, Users
from cluster import Cluster
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION, Recipe
from common import eventually
from plimsoll import names
from real import Namespace, bundled_engine
from surroundings import dense_shapes, noise
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

START_SECONDS: Final = 600.0
LONG_TOKENS: Final = 1000
"""Of an answer that outlasts what proxies take to let go of a pod many times."""
ADAPTER: Final = "support"
OTHER: Final = "legal"
PROMPT: Final = [5, 6, 7]
SPREAD: Final = 48
"""Requests of one client."""
ANSWERED: Final = re.compile(r"^vllm:request_success_total\{.*\} (\S+)$", re.MULTILINE)
KILL: Final = """
import contextlib, os, pathlib
for one in pathlib.Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(OSError):  # the supervisor ends the others too, once one is gone
        if (one / "stat").read_text().rpartition(")")[2].split()[1] == "1":
            os.kill(int(one.name), 9)
"""
"""All that the supervisor has started."""
KILLED: Final = (0, 137)
"""How that ends: with the container, where the supervisor does so first."""


def spec(claim: str, *env: dict[str, str]) -> dict[str, Any]:
    """No hub knows the model and the operator reads no volumes, so a pod has to tell what it is."""
    return {
        "model": {"source": f"pvc://{claim}/", "servedNames": ["tiny"]},
        # Threads that wait by running in circles take the cores from those they wait for.
        "engine": {"version": VLLM_CPU_VERSION, "eager": True, "env": [{"name": "OMP_WAIT_POLICY", "value": "PASSIVE"}, *env]},
        "workload": {"contextTokens": 4096},
        "topology": {"cpu": {"cores": 1, "memory": "5Gi", "kvCacheSize": "1Gi"}},
        # Answers of a busy machine take longer than the plan says.
        "rollout": {"drainSeconds": 300},
    }  # fmt: skip


def changed(claim: str, *adapters: str) -> dict[str, Any]:
    """With an image of the user's own, and adapters that come and go."""
    found = spec(claim)
    found["engine"]["image"] = VLLM_CPU.reference
    items = [{"name": name, "source": f"pvc://{claim}/{name}"} for name in adapters]
    return found | {"adapters": {"runtimeLoading": True, "maxLoaded": 1, "maxRank": 8, "items": items}}


@pytest.fixture(scope="module")
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "supervised")
    yield made
    made.remove()


@pytest.fixture(scope="module")
def claim(space: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """To a volume that has a whole model, weights too, and two adapters of it."""
    folder = models.dense().write(tmp_path_factory.mktemp("volume") / "dense")
    (folder / "model.safetensors").write_bytes(noise(dense_shapes()))
    models.adapter().write(folder / ADAPTER)
    models.adapter(rank=4).write(folder / OTHER)
    lent, claimed = models.volume(folder, space.name, space.name)
    api = space.cluster.api
    volumes, claims = "/api/v1/persistentvolumes", f"/api/v1/namespaces/{space.name}/persistentvolumeclaims"
    api.create(volumes, lent)
    api.create(claims, claimed)
    yield space.name
    api.delete(f"{claims}/{space.name}")
    api.delete(f"{volumes}/{space.name}")


@pytest.fixture(scope="module")
def desk(
    space: Namespace,
    supervisor_image: Recipe,
    bundled_image: Recipe,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("operator")
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.CONFIG_KIND,
        "engines": bundled_engine(bundled_image),
        "registry": {"runtimeImage": supervisor_image.reference},
        "trust": {"images": [VLLM_CPU.reference]},
        "network": {"offline": True},
    }
    file = folder / "admin.json"
    file.write_text(json.dumps(config))
    args = ("--standalone", f"--lease-namespace={space.name}", f"--config={file}")
    with Operator(space.cluster, folder, args=args):
        yield Desk(space.cluster, space.name)


def until(desk: Desk, name: str, kind: str, *wanted: tuple[str, str]) -> None:
    """One of them is said of a condition; a real engine takes its time."""
    deadline = time.monotonic() + START_SECONDS
    while desk.condition(kind, name) not in wanted:
        unplanned = desk.condition(names.STALLED, name)[1] in ("InvalidSpec", "NotTrusted", "DoesNotFit")
        if unplanned or time.monotonic() > deadline:
            pytest.fail(json.dumps(desk.get(name).get("status"), indent=1))
        time.sleep(0.5)


def gone(desk: Desk, name: str) -> None:
    """The next engine needs the memory."""
    desk.cluster.api.delete(desk.path(name))
    pods = f"/api/v1/namespaces/{desk.namespace}/pods"
    while desk.cluster.api.items(pods):
        desk.cluster.api.delete(f"{pods}?gracePeriodSeconds=0")
        time.sleep(0.2)


@pytest.fixture(scope="module")
def serving(desk: Desk, claim: str) -> Iterator[str]:
    """A deployment whose engine answers and has been held against its plan; at its end nothing is left of it."""
    desk.apply("serves", **spec(claim))
    until(desk, "serves", "Fits", ("True", "Measured"))
    until(desk, "serves", "Ready", ("True", "Serving"))
    yield "serves"
    desk.cluster.api.delete(desk.path("serves"))
    assert eventually(lambda: not desk.items("v1/pods")), desk.items("v1/pods")
    # What was learned is the operator's.
    assert eventually(lambda: set(desk.children()) <= {f"v1/configmaps {names.LEARNED}"}), desk.children()


def behind(desk: Desk, name: str) -> Engine:
    """What answers through a deployment's Service."""
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/{name}")
    engine = Engine(url=f"http://{service['spec']['clusterIP']}")
    assert engine.answers(60)
    return engine


def plimsoll(desk: Desk, *args: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [Path(sys.executable).parent / "plimsoll", *args],
        env={**os.environ, "KUBECONFIG": str(desk.cluster.kubeconfig)},  # noqa: TID251 - another process's
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_engine_that_ends_is_told_in_the_supervisor_s_word_with_the_cure(desk: Desk, claim: str) -> None:
    desk.apply("fails", **spec(claim, {"name": "VLLM_PORT", "value": "tcp://10.0.0.1:80"}))
    until(desk, "fails", "Ready", ("False", "BadEnvironment"))
    message = desk.message("Ready", "fails")
    assert "VLLM_PORT" in message
    assert "rename the Service" in message
    gone(desk, "fails")


def test_a_model_that_only_a_pod_may_read_is_planned_as_it_says_and_its_engine_held_against_the_plan(
    desk: Desk, serving: str
) -> None:
    until(desk, serving, "ModelFacts", ("True", "FactsPod"))
    status = desk.get(serving)["status"]
    assert status["accuracy"]["kvTokensMeasured"] == 262_144
    assert status["accuracy"]["errorPercent"] == "0.0"
    assert eventually(lambda: len(desk.pods()) == 1), "the pod that read goes"
    (pod,) = desk.pods()
    assert "initContainers" not in pod["spec"], "the bundled image has its supervisor"
    engine = behind(desk, serving)
    assert len(list(engine.stream("tiny", "once", 16))) > 1
    assert len(list(engine.stream_chat("tiny", "once", 16))) > 1


def test_a_ramp_at_a_real_engine_teaches_the_plan_of_a_second_deployment_of_its_model(
    desk: Desk, serving: str, claim: str, tmp_path: Path
) -> None:
    served = desk.deployments()
    few = ("--by=concurrency", "--start=4", "--max=8", "--step-duration=10s")
    short = ("--input-tokens=128", "--output-tokens=8")
    ran = plimsoll(desk, "ramp", serving, "-n", desk.namespace, "--record", *few, *short, "-o", "json")
    measured = json.loads(ran)
    assert [one["load"] for one in measured["steps"]][:2] == [4, 8]
    for step in measured["steps"]:
        counts = step["result"]["counts"]
        assert counts["ok"] > counts["failed"] == counts["cut"] == counts["refused"] == 0
    seen = [step["engine"]["running_max"] for step in measured["steps"] if step["engine"]]
    assert max(seen) >= 1, "the pod's own metrics were read meanwhile"
    assert measured["comparison"]["expected"]["plan"] == f"{desk.namespace}/{serving}"
    told = desk.get(serving)["status"]["ramp"]
    assert told["taken"] is True, told
    rows = json.loads(plimsoll(desk, "learned", "list", "-n", desk.namespace, "speed", "-o", "json"))
    (speed,) = rows
    assert speed["name"] == f"pvc://{claim}/", speed
    assert f"first tokens take {speed['ttft']:.2f} times" in told["message"]

    # As long as those that were measured; of others less would be believed.
    asked = spec(claim) | {"replicas": 0}
    asked["workload"] |= {"inputTokens": {"p50": 128}, "outputTokens": {"p50": 8}}
    desk.apply("second", **asked)
    until(desk, "second", "ModelFacts", ("True", "FactsPod"))
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    file = tmp_path / "second.json"
    file.write_text(
        json.dumps({**body, "metadata": {"name": "second", "namespace": desk.namespace}, "spec": asked})
    )

    def said() -> str:
        return " ".join(plimsoll(desk, "explain", "-f", str(file), "tpot_ms", "--context").split())

    # What operators of other tests have learned goes with their namespaces, some time after these tests.
    assert eventually(lambda: "performance model, learned" in said()), said()
    assert f"TPOT x {speed['tpot']:.2f}" in said()
    assert served.items() <= desk.deployments().items(), "what serves is not touched"
    desk.cluster.api.delete(desk.path("second"))
    assert eventually(lambda: desk.deployments() == served), desk.deployments()


def test_one_client_that_keeps_its_connection_is_answered_by_each_replica_behind_a_service(
    desk: Desk, serving: str, claim: str
) -> None:
    desk.apply(serving, **spec(claim), replicas=2)
    assert eventually(lambda: len(answering(desk)) == 2, START_SECONDS), desk.items("v1/pods")
    url = behind(desk, serving).url
    client = Keeping(url.removeprefix("http://"))
    before = answering(desk)
    assert all(client.complete("tiny", PROMPT, 2) for _ in range(SPREAD))
    client.close()
    assert client.opened == SPREAD
    assert eventually(lambda: sum(answering(desk).values()) - sum(before.values()) == SPREAD)
    took = {name: count - before[name] for name, count in answering(desk).items()}
    # By chance: of a million such runs fewer than one leaves a replica so few.
    assert min(took.values()) >= SPREAD // 6, took
    desk.apply(serving, **spec(claim))
    assert eventually(lambda: len(desk.items("v1/pods")) == 1, START_SECONDS), desk.items("v1/pods")


def answering(desk: Desk) -> dict[str, int]:
    """Requests that each ready pod has answered so far."""
    found = {}
    for pod in desk.pods():
        said = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
        if said.get("Ready") == "True":
            metrics = Engine(url=f"http://{pod['status']['podIP']}:8000").metrics()
            found[pod["metadata"]["name"]] = sum(map(int, map(float, ANSWERED.findall(metrics))))
    return found


def test_a_change_to_an_image_of_the_user_s_own_under_load_cuts_no_answer_however_long(
    desk: Desk, serving: str, claim: str
) -> None:
    (before,) = desk.deployments()
    engine = behind(desk, serving)
    # So many that one of them is with the set before as long as proxies send somebody to it.
    with Users(engine, "tiny", 100, count=6) as users, Users(engine, "tiny", LONG_TOKENS, count=1) as long:
        desk.apply(serving, **changed(claim, ADAPTER))
        settled(desk, before)
        then = users.whole
        assert eventually(lambda: users.whole > then + 3), "the new set answers"
    assert users.failed == long.failed == []
    assert long.whole > 0
    (pod,) = desk.pods()
    (brought,) = pod["status"]["initContainerStatuses"]
    assert brought["state"]["terminated"]["exitCode"] == 0, "an image without a supervisor is brought one"


def settled(desk: Desk, before: str) -> None:
    """Another set serves alone, and the pods of the one before have ended."""
    deadline = time.monotonic() + START_SECONDS
    while before in desk.deployments() or len(desk.items("v1/pods")) != 1 or len(desk.deployments()) != 1:
        if time.monotonic() > deadline:
            pytest.fail(json.dumps([desk.get("serves").get("status"), desk.deployments()], indent=1))
        time.sleep(0.5)


def test_an_adapter_on_a_volume_answers_by_its_name_also_after_its_engine_was_killed_until_the_list_has_another(
    desk: Desk, serving: str, claim: str
) -> None:
    desk.apply(serving, **changed(claim, ADAPTER))
    kept(desk, serving, {ADAPTER: "Loaded"})
    assert ADAPTER in desk.get(serving)["status"]["endpoint"]["modelNames"]
    engine = behind(desk, serving)
    plain, own = engine.complete("tiny", PROMPT, 8), engine.complete(ADAPTER, PROMPT, 8)
    assert plain != own

    sets, (pod,) = desk.deployments(), desk.pods()
    name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
    program = ("--", "python3", "-c", KILL)
    killed = desk.cluster.kubectl(
        "exec", f"--namespace={desk.namespace}", f"--container={container}", name, *program
    )
    assert killed.returncode in KILLED, killed.stderr
    kept(desk, serving, {ADAPTER: "Loading"})
    kept(desk, serving, {ADAPTER: "Loaded"})
    assert restarts(desk) == {pod["metadata"]["uid"]: 1}
    engine = behind(desk, serving)
    assert (engine.complete("tiny", PROMPT, 8), engine.complete(ADAPTER, PROMPT, 8)) == (plain, own)

    desk.apply(serving, **changed(claim, OTHER))
    kept(desk, serving, {OTHER: "Loaded"})
    assert engine.complete(OTHER, PROMPT, 8) not in (plain, own)
    assert eventually(lambda: engine.models() == ["tiny", OTHER]), engine.models()
    assert (restarts(desk), desk.deployments()) == ({pod["metadata"]["uid"]: 1}, sets)


def kept(desk: Desk, name: str, states: dict[str, str]) -> None:
    """What is told of adapters, once one set serves."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        status = desk.get(name).get("status") or {}
        told = {one["name"]: one["state"] for one in status.get("adapters") or ()}
        if told == states and len(desk.deployments()) == len(desk.items("v1/pods")) == 1:
            return
        if time.monotonic() > deadline:
            pytest.fail(json.dumps([status, desk.deployments()], indent=1))
        time.sleep(0.5)


def restarts(desk: Desk) -> dict[str, int]:
    """Of each pod's engine."""
    return {
        one["metadata"]["uid"]: one["status"]["containerStatuses"][0]["restartCount"] for one in desk.pods()
    }
