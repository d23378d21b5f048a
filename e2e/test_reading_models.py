"""Models that only a pod of their owner may read, on a real API server: the pod is made, and by what it tells the model is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import models
from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet
from common import eventually
from plimsoll import names
from plimsoll_runtime.model import model_of, told
from surroundings import dense_shapes, zeros
from turns.running import Desk, Operator

BUCKET: Final = "s3://models/acme/mine"
IMAGE: Final = "oci://registry.example/acme/mine:v1"
ENDED_AT: Final = "2026-01-01T00:00:00Z"


def readers(desk: Desk) -> list[Object]:
    return [one for one in desk.pods() if one["metadata"]["labels"].get(names.LABEL_ROLE) == "facts"]


def reads(desk: Desk, pod: Object, message: str) -> None:
    """Nothing runs on simulated nodes: its kubelet's part is done here, once the pod is said to run."""
    path = f"/api/v1/namespaces/{desk.namespace}/pods/{pod['metadata']['name']}"
    assert eventually(lambda: desk.cluster.api.get(path)["status"].get("phase") == "Running")
    ended = {"exitCode": 0, "reason": "Completed", "message": message, "finishedAt": ENDED_AT}
    statuses = desk.cluster.api.get(path)["status"]["containerStatuses"]
    status = {
        "phase": "Succeeded",
        "containerStatuses": [{**statuses[0], "ready": False, "state": {"terminated": ended}}],
    }
    desk.cluster.api.patch(f"{path}/status", {"status": status})


@pytest.mark.parametrize("source", [BUCKET, IMAGE])
def test_a_model_is_planned_by_what_its_pod_tells(
    cluster: Cluster, namespace: str, tmp_path: Path, source: str
) -> None:
    lies = tmp_path / "model"
    lies.mkdir()
    for name, body in models.dense().files.items():
        (lies / name).write_bytes(body)
    (lies / "model.safetensors").write_bytes(zeros(dense_shapes()))
    desk = Desk(cluster, namespace)
    keys = [{"name": "AWS_ACCESS_KEY_ID", "value": "reader"}]
    engine: dict[str, Any] = {"env": keys} if source == BUCKET else {}
    with cluster.fleet(read_fleet("h200")), Operator(cluster, tmp_path):
        desk.apply(model={"source": source}, engine=engine)
        assert eventually(lambda: len(readers(desk)) == 1)
        (pod,) = readers(desk)
        (container,) = pod["spec"]["containers"]
        if source == BUCKET:
            assert container["args"][:2] == ["facts", BUCKET]
            assert keys[0] in container["env"]
        else:
            assert [one["image"]["reference"] for one in pod["spec"]["volumes"] if "image" in one] == [
                IMAGE.removeprefix("oci://")
            ]
        assert desk.deployments() == {}
        reads(desk, pod, told(model_of(lies)))
        assert desk.says("ModelFacts", "True", "FactsPod")
        assert eventually(lambda: len(desk.deployments()) == 1)
        assert eventually(lambda: readers(desk) == [])
