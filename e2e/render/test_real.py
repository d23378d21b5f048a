"""Real vLLM in the pods that are rendered: it starts without rights, is ready by its name, drains, and spans nodes by its ranks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

import models
from asking import Engine, Users
from cluster import Cluster
from cluster.api import Object
from cluster.images import VLLM_CPU, Recipe
from common import eventually
from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.control.decision import Told
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.serving import PodSeen
from plimsoll.kube.kinds import path_of
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import PlanSet
from plimsoll.render.sets import freeze, owner_of, workload
from plimsoll.render.shared import surroundings
from plimsoll.status.said import conditions_of
from real import Namespace
from tests.render.building import config, resource
from tests.render.cases import entry
from tests.status.stories import story

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

START_SECONDS: Final = 600.0
VERSION: Final = "0.32.0"
TOKENS: Final = 1200
"""Longer than proxies take to let go of a pod: the end of the answer comes while the engine drains."""
SPEC: Final[dict[str, Any]] = {
    "model": {"source": "/model", "servedNames": ["tiny"], "loadFormat": "dummy"},
    "engine": {
        "image": VLLM_CPU.reference,
        "version": VERSION,
        # Threads that wait by running in circles take the cores from those they wait for.
        "env": [{"name": "OMP_WAIT_POLICY", "value": "PASSIVE"}],
    },
    "topology": {"cpu": {}},
    "rollout": {"drainSeconds": 300},
    "podPatches": [
        {
            "op": "add",
            "path": "/spec/volumes/-",
            "value": '{"name": "tiny", "configMap": {"name": "model-dense"}}',
        },
        {
            "op": "add",
            "path": "/spec/containers/0/volumeMounts/-",
            "value": '{"name": "tiny", "mountPath": "/model"}',
        },
        # GPUs spread a group over nodes, since each pod takes those of a whole one; cores would not.
        {
            "op": "add",
            "path": "/spec/affinity",
            "value": json.dumps(
                {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
                        ]
                    }
                }
            ),
        },
    ],
}
ADMIN: Final[dict[str, Any]] = {
    "trust": {"images": ["*"], "podPatches": {"allow": ["/spec/*"]}},
    "network": {"offline": True},
}
ONE: Final = entry(
    vendor="cpu", gpu="CPU-AVX2", resource="cpu", layout=Layout(), replicas=1, disk=2**30, selector={}, kv_cache_bytes=2**30,
    max_model_len=4096, max_num_seqs=16, max_num_batched_tokens=4096, eager=True,
)  # fmt: skip
FIT: Final = replace(ONE, resources=replace(ONE.resources, cpu_millis=500, memory_bytes=5 * 2**30))
GROUP: Final = replace(FIT, layout=Layout(tensor=2), pods_per_replica=2)


@pytest.fixture(scope="module")
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "rendered")
    made.create_all(models.dense().config_map())
    yield made
    made.remove()


@pytest.fixture(scope="module")
def admin(supervisor_image: Recipe) -> OperatorConfig:
    return config(**ADMIN, registry={"runtimeImage": supervisor_image.reference})


@contextmanager
def started(
    space: Namespace, admin: OperatorConfig, name: str, chosen: PlanSet
) -> Iterator[tuple[Engine, str]]:
    """The set's engine behind its Service, and its leading pod."""
    cluster = space.cluster
    asked = resource(name=name, namespace=space.name, uid=None, **SPEC)
    revision = freeze(asked, chosen, facts=engine_facts("vllm", VERSION), config=admin)
    owner = owner_of(asked)
    objects = [*surroundings(asked, [revision], admin, frozenset(), stay=0), *workload(revision, owner, 1)]
    for one in objects:
        cluster.api.apply(path_of(one.ref), dict(one.body), manager=names.MANAGER_CHILDREN, force=True)
    leaders = f"{names.LABEL_DEPLOYMENT}={name},{names.LABEL_LEADER}=true"
    pods = f"/api/v1/namespaces/{space.name}/pods"
    try:
        assert eventually(lambda: len(cluster.api.items(pods, labelSelector=leaders)) == 1)
        (leader,) = cluster.api.items(pods, labelSelector=leaders)
        space.ready(leader["metadata"]["name"], START_SECONDS)
        service = cluster.api.get(f"/api/v1/namespaces/{space.name}/services/{name}")
        yield Engine(url=f"http://{service['spec']['clusterIP']}"), leader["metadata"]["name"]
    finally:
        for one in objects:
            cluster.api.delete(f"{path_of(one.ref)}?propagationPolicy=Background")
        while cluster.api.items(pods):  # the next one needs the memory
            cluster.api.delete(f"{pods}?gracePeriodSeconds=0")


def test_a_rendered_pod_serves_by_its_name_and_ends_no_answer_that_has_begun(
    space: Namespace, admin: OperatorConfig
) -> None:
    with started(space, admin, "alone", FIT) as (engine, pod):
        assert engine.answers(60)
        assert engine.models() == ["tiny"]
        begun, whole = threading.Event(), threading.Event()

        def ask() -> None:
            for _ in engine.stream("tiny", "once", TOKENS):
                begun.set()
            whole.set()  # the stream itself holds the answer to its number of tokens

        asking = threading.Thread(target=ask)
        asking.start()
        assert begun.wait(120)
        space.cluster.api.delete(f"/api/v1/namespaces/{space.name}/pods/{pod}")
        asking.join(330)
        assert not asking.is_alive()
        assert whole.is_set()


KILL_WORKER: Final = """
import contextlib, os, pathlib, signal
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(OSError):  # of a process that ended meanwhile
        if b"Worker" in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():  # this one says so as well
            print(folder.name, flush=True)  # its end may be the container's, and this one's with it
            os.kill(int(folder.name), signal.SIGKILL)
"""


def test_a_rendered_group_serves_from_its_leader_and_comes_back_as_one_when_a_worker_is_killed(
    space: Namespace, admin: OperatorConfig
) -> None:
    with started(space, admin, "group", GROUP) as (engine, leader):
        assert engine.answers(60)
        (member,) = {one["metadata"]["name"] for one in pods_of(space)} - {leader}
        before = {one["metadata"]["uid"] for one in pods_of(space)}
        assert len({one["spec"]["nodeName"] for one in pods_of(space)}) == 2, "over nodes"
        with Users(engine, "tiny", 50, count=2) as users:
            assert eventually(lambda: users.whole > 0), users.failed
            assert users.failed == []
            command = ("exec", f"--namespace={space.name}", member, "--", "python3", "-c", KILL_WORKER)
            killed = space.cluster.kubectl(*command)
            assert killed.stdout.strip(), killed.stderr
        told = {name: last_words(space, name) for name in (leader, member)}
        # Either may notice first, and on a busy machine one does not wait until the other has noticed.
        assert told[member]["word"] == "WorkerLost" or told[leader]["word"] in told[member]["message"], told
        assert told[leader]["remedy"], told
        # Both of one look: a pod may end once more for the other's sake, and both may have the same word.
        seen = [pod_seen(one) for one in pods_of(space)]
        ready = ready_told(seen)
        assert ready.status == "False"
        known = [one.failure.message for one in seen if one.failure and one.failure.word == ready.reason]
        assert any(one in ready.message for one in known), "the reason is one pod's, and so is the sentence"
        space.ready(leader, START_SECONDS)
        assert engine.answers(START_SECONDS)
        assert len(engine.complete("tiny", "once", 8)) > 0
        assert {one["metadata"]["uid"] for one in pods_of(space)} == before, "in the pods that it had"


def ready_told(seen: list[PodSeen]) -> Told:
    """The condition that a resource has while its pods are these."""
    return next(one for one in conditions_of(story(*seen, per_replica=len(seen))) if one.type == names.READY)


def pods_of(space: Namespace) -> list[Object]:
    return space.cluster.api.items(f"/api/v1/namespaces/{space.name}/pods")


def last_words(space: Namespace, pod: str) -> dict[str, Any]:
    """Why a pod's container ended, once it did."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        (engine,) = space.pod(pod)["status"]["containerStatuses"]
        ended = engine["lastState"].get("terminated") or engine["state"].get("terminated")
        if ended is not None:
            said: dict[str, Any] = json.loads(ended["message"])
            return said
        assert time.monotonic() < deadline, engine
        time.sleep(0.2)
