"""The loop closed with a real engine: load that makes it preempt, the shipped rule that fires in a real Prometheus, the operator who is told,
and a change that is tried on a second engine, found good, and stays, with hardly any preemptions and no replica more.

What it costs and brings besides is what benchmarks/retune.py measures; windows are shortened here through the admin's settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import models
from asking import Engine
from cluster import Cluster
from cluster.images import Recipe
from cluster.metrics import Prometheus
from preempting import START_SECONDS, USERS, Load, alerted, arguments, retunes, spec, state, under, until
from real import Namespace
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

LEFT: Final = 0.2
"""Of the preemptions, at most."""
ATTEMPTS: Final = 3
"""Twenty requests tell little: what chance has taken back is tried again at once here, not a day later."""


@pytest.fixture
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "kept-retune")
    made.create_all(models.dense().config_map())
    yield made
    made.remove()


@pytest.fixture
def place(
    space: Namespace, supervisor_image: Recipe, tmp_path: Path
) -> Iterator[tuple[Desk, Prometheus, Operator]]:
    quick = {
        "canarySeconds": 20,
        "canaryRequests": 20,
        "canaryLimitSeconds": 1200,
        "retunesPerDay": ATTEMPTS,
        "retryAfterSeconds": 1,
    }
    image = supervisor_image.reference
    with alerted(space.cluster, space.name, tmp_path, image, restarts=quick) as found:
        yield found


def test_preemptions_of_a_real_engine_raise_the_alert_and_are_cured_by_a_change_that_stays(
    place: tuple[Desk, Prometheus, Operator],
) -> None:
    desk, prometheus, operator = place
    desk.apply(**spec(1, {"mode": "off"}))
    until(desk, lambda: desk.condition("Ready") == ("True", "Serving"))
    (served,), (before,) = desk.deployments(), arguments(desk)
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/chat")
    url = f"http://{service['spec']['clusterIP']}"
    assert Engine(url=url).answers(START_SECONDS)

    def heard() -> bool:
        fires = {one["labels"]["alertname"] for one in prometheus.alerts() if one["state"] == "firing"}
        return "PlimsollPreemption" in fires and operator.metric("plimsoll_alerts_received_total") > 0

    with Load(url, USERS) as load:
        under(load, desk, heard)
        assert set(desk.deployments()) == {served}, "nobody is to retune it yet"
        desk.apply(**spec(1, {"mode": "auto"}))
        under(load, desk, lambda: state(desk) == "Canary")
    # The second engine starts sooner while nobody asks the first one, and whoever asks then finds both.
    until(desk, lambda: state(desk) == "Judging")
    assert desk.deployments()[served] == 1, "the canary comes beside the one that serves"
    with Load(url, USERS, seed=2) as load:

        def over() -> bool:
            ended = [one["state"] for one in retunes(desk)]
            return "Done" in ended or len(ended) == ATTEMPTS

        under(load, desk, over)
        (kept,) = (one for one in retunes(desk) if one["state"] == "Done")
        until(desk, lambda: served not in desk.deployments())
    assert list(desk.deployments().values()) == [1], "no replica more"
    assert kept["setting"] in {"watermark", "maxSequences"}
    (after,) = arguments(desk)
    assert after != before
    (changed,) = desk.deployments()
    assert share(prometheus, changed) <= LEFT * share(prometheus, served), retunes(desk)
    until(desk, lambda: desk.condition("Retuning") == ("False", "Done"))
    said = {one["reason"] for one in desk.items("v1/events")}
    assert {f"Retune{step}" for step in ("Planned", "Canary", "Judging", "Verifying", "Done")} <= said


def share(prometheus: Prometheus, name: str) -> float:
    """Preemptions for each request that pods of a set have finished since they are there."""
    preempted, finished = (
        prometheus.query(f'sum(last_over_time({metric}{{pod=~"{name}-.*"}}[1h]))')[0].value
        for metric in ("vllm:num_preemptions_total", "vllm:request_success_total")
    )
    print(f"{name}: {preempted:.0f} preemptions of {finished:.0f} requests")
    return preempted / max(1.0, finished)
