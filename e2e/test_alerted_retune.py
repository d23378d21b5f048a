"""The loop closed with a real engine: users who make it preempt, the shipped rule that fires in a real Prometheus, the operator who is told,
and a change that is tried on a second engine, found good, and stays: of the same users' requests hardly any are preempted then.

It is tried and verified while others ask, many a second and each for little, and Prometheus keeps no gaps between tokens. By how much is put out where
requests wait, and by a tenth of the p99 of gaps, a good change would be taken back here for what else takes the same cores from one minute to the next. What
it costs and brings by these is what benchmarks/retune.py measures, where nothing else runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from asking import Engine
from cluster import Cluster
from cluster.images import Recipe
from cluster.metrics import Prometheus
from plimsoll.load.lengths import LogNormal, Uniform
from plimsoll.load.workload import ClosedLoop, OpenLoop
from preempting import (
    ALERT,
    START_SECONDS,
    Load,
    alerted,
    arguments,
    retunes,
    spec,
    state,
    under,
    until,
    with_model,
    workload,
)
from real import Namespace
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

LEFT: Final = 0.2
"""Of the preemptions, at most."""
GAPS: Final = "vllm:(inter_token_latency|time_per_output_token|request_time_per_output_token)_seconds.*"
MANY: Final = workload(ClosedLoop(24), 1, answers=LogNormal(300, 700, 0.95))
"""Of these the pool holds sixteen or so."""
LITTLE: Final = workload(OpenLoop(8.0), 2, Uniform(10, 30), Uniform(10, 30))
"""More requests a second than an engine finishes of those, so that verifying passes over what a larger load explains."""
QUICK: Final = {
    "canarySeconds": 16,
    "canaryRequests": 40,
    "canaryLimitSeconds": 100,
    "retunesPerDay": 1,
}


@pytest.fixture
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    with with_model(real_cluster, "kept-retune") as made:
        yield made


@pytest.fixture
def place(
    space: Namespace, supervisor_image: Recipe, tmp_path: Path
) -> Iterator[tuple[Desk, Prometheus, Operator]]:
    with alerted(
        space.cluster, space.name, tmp_path, supervisor_image.reference, restarts=QUICK, drop=GAPS
    ) as found:
        yield found


def test_preemptions_of_a_real_engine_raise_the_alert_and_are_cured_by_a_change_that_stays(
    place: tuple[Desk, Prometheus, Operator],
) -> None:
    desk, prometheus, operator = place
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {text}", flush=True)

    desk.apply(**spec(1, {"mode": "auto"}) | {"slo": {}})
    until(desk, lambda: desk.condition("Ready") == ("True", "Serving"))
    (served,), (before,) = desk.deployments(), arguments(desk)
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/chat")
    url = f"http://{service['spec']['clusterIP']}"
    assert Engine(url=url).answers(START_SECONDS)

    def heard() -> bool:
        fires = {one["labels"]["alertname"] for one in prometheus.alerts() if one["state"] == "firing"}
        return ALERT in fires and operator.metric("plimsoll_alerts_received_total") > 0

    say("users come")
    with Load(url, MANY) as load:
        under(load, desk, heard)
        say("the alert is heard")
        assert (state(desk), retunes(desk)) == ("", []), "nothing begins before somebody alerts"
        under(load, desk, lambda: state(desk) == "Canary")
        preempted, finished = counted(prometheus, served)
    say(f"canary; {preempted:.0f} preemptions of {finished:.0f} requests")
    # The second engine starts sooner while nobody asks the first one, and whoever asks then finds both.
    until(desk, lambda: state(desk) == "Judging")
    assert desk.deployments()[served] == 1, "the canary comes beside the one that serves"
    (tried,) = set(desk.deployments()) - {served}
    say("judging")
    with Load(url, LITTLE) as load:
        under(load, desk, lambda: state(desk) != "Judging")
        say(state(desk))
        under(load, desk, lambda: retunes(desk))
    (ended,) = retunes(desk)
    say("{state}, {setting} {before} to {after}: {reason}".format(**ended))
    assert (ended["setting"], ended["state"]) == ("watermark", "Done")
    until(desk, lambda: desk.condition("Retuning") == ("False", "Done"))
    until(desk, lambda: desk.deployments() == {tried: 1})
    (after,) = arguments(desk)
    assert after != before
    preempted_before, finished_before = counted(prometheus, tried)

    def since() -> tuple[float, float]:
        now = counted(prometheus, tried)
        return now[0] - preempted_before, now[1] - finished_before

    with Load(url, MANY) as load:
        under(load, desk, lambda: since()[1] >= finished)
        left, again = since()
    say(f"{left:.0f} preemptions of {again:.0f} requests")
    assert preempted / finished > 0.05
    assert left / again <= LEFT * preempted / finished
    assert desk.deployments() == {tried: 1}, "no replica more"
    said = {one["reason"] for one in desk.items("v1/events")}
    assert {f"Retune{step}" for step in ("Planned", "Canary", "Judging", "Verifying", "Done")} <= said


def counted(prometheus: Prometheus, name: str) -> tuple[float, float]:
    """Preemptions, and requests that were finished, of the pods of a set since they are there."""
    preempted, finished = (
        prometheus.query(f'sum(last_over_time({metric}{{pod=~"{name}-.*"}}[1h]))')[0].value
        for metric in ("vllm:num_preemptions_total", "vllm:request_success_total")
    )
    return preempted, finished
