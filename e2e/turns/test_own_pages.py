"""An operator that no Prometheus is configured for asks the pods themselves, and goes by what they say."""

from __future__ import annotations

import json
from pathlib import Path

from common import eventually
from plimsoll import names
from turns.own_pages import FULL, SCALED, near
from turns.running import Desk, Operator


def reasons(desk: Desk) -> list[str]:
    """Of the last changes of the number of replicas, newest first."""
    return [one["reason"] for one in desk.get()["status"].get("scalingHistory") or ()]


def wanted(desk: Desk) -> int:
    return sum(desk.deployments().values())


def test_replicas_follow_what_their_own_pages_say_without_a_prometheus(place: Desk, tmp_path: Path) -> None:
    file = tmp_path / "admin.json"
    said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "control": {"intervalSeconds": 1}}
    file.write_text(json.dumps(said))
    told = ("--standalone", "--config", str(file), "--log-level=debug")
    with near(place) as (traffic, pages), Operator(place.cluster, tmp_path, args=told) as operator:
        traffic.inflight = 8
        place.apply(**SCALED)
        assert place.says("Ready", "True", "Serving")
        assert place.says("MetricsAvailable", "True", "Fresh")
        assert wanted(place) == 1
        traffic.inflight = FULL
        assert eventually(lambda: wanted(place) == 4)
        assert eventually(lambda: reasons(place)[:1] in (["LoadRose"], ["Panic"]))
        pages.fail(503)
        traffic.inflight = 8
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 5)
        assert wanted(place) == 4, "nothing goes while nobody says anything"
        pages.fail(None)
        traffic.inflight = FULL
        assert place.says("MetricsAvailable", "True", "Fresh")
        assert eventually(lambda: len(place.pods()) == 4)
