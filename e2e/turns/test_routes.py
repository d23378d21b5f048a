"""A way in that the cluster knows no kind for is said, and made when it does."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from common import eventually
from turns.crashes import SMALL
from turns.running import Desk, Operator

ROUTES = "gateway.networking.k8s.io/v1/httproutes"


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
