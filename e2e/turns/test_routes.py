"""A way in that the cluster knows no kind for is said, and made when it does."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from common import LONG_SECONDS, eventually
from turns.crashes import SMALL
from turns.running import Desk, Operator

ROUTES = "gateway.networking.k8s.io/v1/httproutes"
POOLS = "inference.networking.k8s.io/v1/inferencepools"
PICKER = {"service": "picker", "failureMode": "FailOpen"}
PICKED = {
    "endpointPickerRef": {
        "group": "", "kind": "Service", "name": "picker", "port": {"number": 9002}, "failureMode": "FailOpen"
    }
}  # fmt: skip


def test_a_route_is_made_when_its_kind_comes_and_missed_before(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with Operator(lab, tmp_path):
        place.apply(topology=SMALL, networking={"gateway": {"name": "front"}})
        assert place.says("Ready", "True", "Serving")
        assert place.says("Degraded", "True", "NotServed")
        assert "serves no HTTPRoute" in place.message("Degraded")
        lab.install_others("gateway-api")
        assert eventually(lambda: [one["metadata"]["name"] for one in place.items(ROUTES)] == ["chat-route"])
        assert place.says("Degraded", "False", "Healthy")


def test_a_route_leads_to_a_pool_where_a_picker_is_named_and_at_any_time_to_what_is_there(desk: Desk) -> None:
    """The API server has InferencePool as its first releases: none without a picker."""
    desk.cluster.install_others("gateway-api", "inferencepool")
    theirs = {"selector": {"matchLabels": {"app": "other"}}, "targetPorts": [{"number": 80}], **PICKED}
    pool = f"/apis/inference.networking.k8s.io/v1/namespaces/{desk.namespace}/inferencepools"
    kind = {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool"}
    desk.cluster.api.create(pool, {**kind, "metadata": {"name": "chat"}, "spec": theirs})
    desk.apply(networking={"gateway": {"name": "front", "inferencePool": True}})
    assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)
    assert desk.says("Degraded", "True", "NotServed", patience=LONG_SECONDS)
    assert "endpointPicker" in desk.message("Degraded")
    assert eventually(lambda: backends(desk) == ["Service"], LONG_SECONDS)
    desk.apply(networking={"gateway": {"name": "front", "endpointPicker": PICKER}})
    assert desk.says("Stalled", "True", "NameConflict", patience=LONG_SECONDS)
    assert backends(desk) == ["Service"], "the pool of that name is somebody else's"
    desk.cluster.api.delete(f"{pool}/chat")
    assert eventually(lambda: backends(desk) == ["InferencePool"], LONG_SECONDS)
    (made,) = desk.items(POOLS)
    assert {key: made["spec"][key] for key in PICKED} == PICKED
    assert desk.says("Degraded", "False", "Healthy", patience=LONG_SECONDS)
    desk.apply(networking={"gateway": {"name": "front"}})
    assert eventually(lambda: backends(desk) == ["Service"], LONG_SECONDS)
    assert eventually(lambda: desk.items(POOLS) == [], LONG_SECONDS)
    assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)


def backends(desk: Desk) -> list[str]:
    """Of all routes, the kinds that they lead to."""
    return [
        backend["kind"]
        for route in desk.items(ROUTES)
        for rule in route["spec"]["rules"]
        for backend in rule["backendRefs"]
    ]
