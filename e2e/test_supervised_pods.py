"""From a resource to what its engine says: the operator's pods start real vLLM through the supervisor, and status tells what it found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

import models
from asking import Engine
from cluster import Cluster
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION, Recipe
from plimsoll import names
from real import Namespace
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

START_SECONDS: Final = 600.0
CONFIG: Final = {
    "apiVersion": names.API_VERSION,
    "kind": names.CONFIG_KIND,
    "engines": {"versions": [{"version": VLLM_CPU_VERSION, "cpuImage": VLLM_CPU.reference}]},
    "network": {"offline": True},
    "trust": {"podPatches": {"allow": ["/spec/*"]}},
}


def patch(path: str, **value: Any) -> dict[str, str]:
    return {"op": "add", "path": path, "value": json.dumps(value)}


def spec(*env: dict[str, str]) -> dict[str, Any]:
    architecture = models.dense().files["config.json"].decode()
    return {
        "model": {"source": "/model", "servedNames": ["tiny"], "loadFormat": "dummy", "architecture": {"config": architecture}},
        # Threads that wait by running in circles take the cores from those they wait for.
        "engine": {"version": VLLM_CPU_VERSION, "eager": True, "env": [{"name": "OMP_WAIT_POLICY", "value": "PASSIVE"}, *env]},
        "workload": {"contextTokens": 4096},
        "topology": {"cpu": {"cores": 1, "memory": "5Gi", "kvCacheSize": "1Gi"}},
        "podPatches": [
            patch("/spec/volumes/-", name="tiny", configMap={"name": "model-dense"}),
            patch("/spec/containers/0/volumeMounts/-", name="tiny", mountPath="/model"),
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "supervised")
    made.create_all(models.dense().config_map())
    yield made
    made.remove()


@pytest.fixture(scope="module")
def desk(
    space: Namespace, supervisor_image: Recipe, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("operator")
    file = folder / "admin.json"
    file.write_text(json.dumps({**CONFIG, "registry": {"runtimeImage": supervisor_image.reference}}))
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


def test_an_engine_that_serves_is_held_against_its_plan(desk: Desk) -> None:
    desk.apply("serves", **spec())
    until(desk, "serves", "Fits", ("True", "Measured"))
    until(desk, "serves", "Ready", ("True", "Serving"))
    status = desk.get("serves")["status"]
    assert status["accuracy"]["kvTokensMeasured"] == 262_144
    assert status["accuracy"]["errorPercent"] == "0.0"
    (pod,) = desk.pods()
    (brought,) = pod["status"]["initContainerStatuses"]
    assert brought["state"]["terminated"]["exitCode"] == 0
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/serves")
    engine = Engine(url=f"http://{service['spec']['clusterIP']}")
    assert engine.answers(60)
    assert len(engine.complete("tiny", "once", 8)) > 0
    gone(desk, "serves")


def test_an_engine_that_ends_is_told_in_the_supervisor_s_word_with_the_cure(desk: Desk) -> None:
    desk.apply("fails", **spec({"name": "VLLM_PORT", "value": "tcp://10.0.0.1:80"}))
    until(desk, "fails", "Ready", ("False", "BadEnvironment"))
    message = desk.message("Ready", "fails")
    assert "VLLM_PORT" in message
    assert "rename the Service" in message
    gone(desk, "fails")
