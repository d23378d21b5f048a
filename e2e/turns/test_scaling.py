"""The operator scales and retunes on what a real Prometheus says of simulated replicas."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from common import LONG_SECONDS, eventually
from turns.running import Desk
from turns.watching import SCALED, configured, reasons, wanted, watched


def history(desk: Desk) -> dict[str, Any]:
    """As the command tells it."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("plimsoll")),
            "history",
            "chat",
            "-n",
            desk.namespace,
            "-o",
            "json",
        ],
        env={**os.environ, "KUBECONFIG": str(desk.cluster.kubeconfig)},  # noqa: TID251 - a process of its own
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = json.loads(done.stdout).values()
    return dict(found)


def tried_now(desk: Desk) -> str:
    """The setting, if any."""
    return str(desk.get()["status"].get("tuning", {}).get("setting", ""))


def left(desk: Desk, name: str) -> int:
    """Replicas of a set."""
    return desk.deployments().get(name, 0)


def test_replicas_follow_the_load_within_their_bounds_and_stay_while_nobody_can_say(
    place: Desk, tmp_path: Path
) -> None:
    with watched(place, tmp_path) as (traffic, prom, operator):
        traffic.inflight = 8
        place.apply(**SCALED)
        assert place.says("Ready", "True", "Serving")
        assert place.says("MetricsAvailable", "True", "Fresh")
        assert wanted(place) == 1
        # Enough for seven: the law forgets a load within minutes, the longer the larger it was.
        traffic.inflight = 60
        assert eventually(lambda: wanted(place) == 4)
        assert place.says("Ready", "True", "Serving")
        assert place.says("ScalingLimited", "True", "AtMax")
        prom.processes.kill("prometheus")
        assert place.says("MetricsAvailable", "False", "PrometheusUnreachable")
        traffic.inflight = 8
        operator.stop(signal.SIGKILL)
        began = dark_for_an_hour(place)
        operator.start()
        assert place.says("MetricsAvailable", "False", "Outage")
        assert place.message("MetricsAvailable").startswith(
            f"since {began} UTC the source of metrics does not answer"
        )
        ticks, version = (
            operator.metric("plimsoll_control_ticks_total"),
            place.get()["metadata"]["resourceVersion"],
        )
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 5)
        assert wanted(place) == 4, "nothing goes while nobody can say"
        assert place.get()["metadata"]["resourceVersion"] == version, "it is told once, and not at each look"
        told = [one for one in place.items("v1/events") if one["reason"] == "Outage"]
        assert sum(one.get("count") or 1 for one in told) == 1
        prom.processes.restart("prometheus")
        # What was scraped before counts for two minutes where the first look still sees some of it.
        assert any(eventually(lambda: wanted(place) < 4) for _ in range(6))
        assert eventually(lambda: reasons(place)[0] == "LoadFell")
        assert reasons(place)[-1] in {"LoadRose", "Panic"}


def dark_for_an_hour(place: Desk) -> str:
    """Nobody waits for half of one: what the status says of missing metrics began an hour before it did. Since when, as it is told."""
    conditions = place.get()["status"]["conditions"]
    (metrics,) = (one for one in conditions if one["type"] == "MetricsAvailable")
    _, day, minute, said = metrics["message"].split(" ", 3)
    began = f"{datetime.fromisoformat(f'{day} {minute}') - timedelta(hours=1):%Y-%m-%d %H:%M}"
    metrics["message"] = f"since {began} {said}"
    place.cluster.api.patch(f"{place.path()}/status", {"status": {"conditions": conditions}})
    return began


def test_a_setting_is_tried_on_one_replica_and_taken_back_where_it_does_not_help_and_kept_where_it_does(
    place: Desk, tmp_path: Path
) -> None:
    # A canary is watched until it has answered so many: the admin says when. The load is the same for as long as it takes, since a
    # change of it would have to settle before anything can be verified.
    quick = {"canarySeconds": 2, "canaryRequests": 40_000, "canaryLimitSeconds": 600}
    with watched(place, tmp_path, restarts=quick) as (traffic, _, operator):
        traffic.each, traffic.seconds = 60.0, 0.5
        traffic.preempted = lambda pod: 0.3  # noqa: ARG005
        # What the spec sets is tried only where it is allowed by name.
        allowed = {"allow": ["watermark", "maxSequences"]}
        place.apply(**{**SCALED, "scaling": {}, "replicas": 2, "tuning": allowed})
        assert place.says("Ready", "True", "Serving")
        (served,) = place.deployments()
        assert eventually(
            lambda: place.get()["status"].get("tuning", {}).get("state") == "Judging", LONG_SECONDS
        ), operator.tail()
        assert place.deployments()[served] == 2, "the canary comes beside those that serve"
        (tried,) = set(place.deployments()) - {served}
        assert place.deployments()[tried] == 1
        assert "--watermark" in str(place.items("apps/v1/deployments"))
        operator.stop(signal.SIGKILL)
        configured(tmp_path, restarts={**quick, "canaryRequests": 500})
        operator.start()
        assert eventually(lambda: place.deployments() == {served: 2})
        assert eventually(lambda: bool(place.get()["status"].get("tuningHistory")))
        (past,) = place.get()["status"]["tuningHistory"]
        assert (past["setting"], past["state"]) == ("watermark", "Failed")
        assert "no gain" in past["reason"]
        traffic.preempted = lambda pod: 0.3 if pod["metadata"]["name"].startswith(served) else 0.0
        # The next setting goes through all that the first went through, and further: each step has a patience of its own.
        assert eventually(lambda: tried_now(place) == "maxSequences" or left(place, served) < 2)
        assert eventually(lambda: left(place, served) < 2)
        assert eventually(lambda: served not in place.deployments())
        assert list(place.deployments().values()) == [2]
        assert place.says("Ready", "True", "Serving")
        assert "--max-num-seqs=30" in str(place.items("apps/v1/deployments")).replace("', '", "=")
        assert eventually(lambda: place.get()["status"]["tuningHistory"][0]["state"] == "Done")
        assert place.says("Retuning", "False", "Done")
        told = history(place)
        assert [one["reason"] for one in told["decisions"]].count("RetuneDone") == 1
        assert {one["what"] for one in told["decisions"]} == {"watermark", "maxSequences"}


LONG: Final[dict[str, Any]] = {
    **SCALED,
    "engine": {},
    "workload": {"contextTokens": 8192, "inputTokens": {"p50": 3000}, "outputTokens": {"p50": 60}},
    "scaling": {**SCALED["scaling"], "max": 2},
}
"""Traffic's own requests are of 300 tokens with 600 of an answer."""


def test_traffic_that_is_not_the_declared_one_is_told_beside_it_with_what_to_declare_for_another_plan(
    place: Desk, tmp_path: Path
) -> None:
    with watched(place, tmp_path) as (traffic, _, operator):
        traffic.inflight, traffic.seconds = 4, 0.1
        place.apply(**LONG)
        assert place.says("Ready", "True", "Serving")
        served = set(place.deployments())
        # What was seen is kept with each change of the number, else twice an hour.
        traffic.inflight = 16
        assert eventually(lambda: wanted(place) == 2)
        assert eventually(lambda: remembered(place)["observed"]["since"] is not None)
        operator.stop(signal.SIGKILL)
        watched_for_hours(place)
        operator.start()
        # Seconds pass between ticks, in each of which more than a hundred requests end.
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 20)
        place.apply(**{**LONG, "scaling": {**LONG["scaling"], "max": 3}})
        assert eventually(lambda: wanted(place) == 3)
        better = place.says("BetterPlanAvailable", "True", "WorkloadDiffers")
        assert better, json.dumps([place.get()["status"], remembered(place)])
        seen = place.get()["status"]["observed"]
        assert 200 <= seen["inputTokens"]["p50"] <= 500
        assert 500 <= seen["outputTokens"]["p50"] <= 1000
        told = place.message("BetterPlanAvailable")
        assert "inputTokens p50" in told
        assert "outputTokens p50" in told
        assert "in spec.workload the plan would be" in told
        assert set(place.deployments()) == served, "it is told, and nothing else"


def remembered(place: Desk) -> dict[str, Any]:
    """What control keeps over a restart of the operator."""
    return dict(json.loads(keeper(place)["data"]["control.json"]))


def keeper(place: Desk) -> dict[str, Any]:
    """Where that stands."""
    (found,) = (one for one in place.items("v1/configmaps") if "control.json" in one.get("data", {}))
    return found


def watched_for_hours(place: Desk) -> None:
    """Less than an hour is no workload yet: what is remembered began two hours before it did."""
    record = remembered(place)
    record["observed"]["since"] -= 7200
    path = f"/api/v1/namespaces/{place.namespace}/configmaps/{keeper(place)['metadata']['name']}"
    place.cluster.api.patch(path, {"data": {"control.json": json.dumps(record)}})
