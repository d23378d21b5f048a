"""Metrics that are missing for long are told of once, since when and where to look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from plimsoll.api.conditions import set_condition
from plimsoll.api.v1alpha1.status import Condition
from plimsoll.control.decision import Told
from plimsoll.prometheus.wakes import Woken
from plimsoll.reconcile.loop.sources import Looked
from plimsoll.reconcile.world import World
from tests.reconcile.staging import KEY, TICK, Scene, answer, refuse, replace_look, staged, started

HOUR: Final = round(3600 / TICK)


def metrics_told(world: World) -> Told:
    return next(one for one in world.directions[KEY].told if one.type == "MetricsAvailable")


@pytest.mark.parametrize("spec", [{}, {"scaling": {}, "replicas": 2}], ids=["scaled", "only retuned"])
def test_metrics_that_are_missing_for_long_are_told_of_once_more_since_when_and_where_to_look(
    spec: dict[str, Any],
) -> None:
    stage, world, control = staged(**spec)
    stage.run(control, world, 4)
    stage.reachable = False
    dark = said(stage.now + TICK)
    assert stage.run(control, world, HOUR // 2) <= 2, (
        "one tells of it, and one stores what was learned before"
    )
    first = metrics_told(world)
    assert (first.reason, first.message[: len(dark)]) == ("PrometheusUnreachable", dark)
    assert stage.run(control, world, HOUR) == 1, "one turn, and none for each tick of an hour"
    told = metrics_told(world)
    assert (told.status, told.reason, told.message[: len(dark)]) == ("False", "Outage", dark)
    assert "held and nothing is retuned" in told.message
    assert "look at the Prometheus of prometheusUrl" in told.message
    replace_look(stage, Looked())
    assert stage.run(control, world, 8) == 0, "silent in another way: it is the same outage"


def said(at: float) -> str:
    return f"since {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC "


def written(stage: Scene, world: World, *, flipped: float | None = None) -> None:
    """What was told is in the status; its conditions flipped then, or now."""
    at = datetime.fromtimestamp(stage.now if flipped is None else flipped, UTC)
    there: tuple[Condition, ...] = ()
    for one in world.directions[KEY].told:
        there = set_condition(
            there, one.type, status=one.status, reason=one.reason, message=one.message, now=f"{at:%Y-%m-%dT%H:%M:%SZ}",
        )  # fmt: skip
    status = stage.asked.deployment.status.model_copy(update={"conditions": there})
    stage.asked = replace(
        stage.asked, deployment=stage.asked.deployment.model_copy(update={"status": status})
    )


@pytest.mark.parametrize(("hours", "turns"), [(0.25, 1), (0.75, 0)], ids=["not for long yet", "for long"])
def test_an_outage_goes_on_from_what_the_status_says_where_an_operator_starts_again(
    hours: float, turns: int
) -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    stage.reachable = False
    stage.run(control, world, round(hours * HOUR))
    since = metrics_told(world).message.partition(" UTC")[0]
    written(stage, world)
    world, control = started(stage)
    stage.woken.clear()
    assert stage.run(control, world, HOUR // 2) == turns
    told = metrics_told(world)
    assert (told.reason, told.message.partition(" UTC")[0]) == ("Outage", since)


def test_a_query_that_was_refused_before_an_outage_is_no_part_of_it() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(by)"}}})
    back = refuse(stage, "no closing parenthesis")
    stage.run(control, world, HOUR // 2)
    assert metrics_told(world).reason == "QueryRefused"
    back()
    stage.reachable = False
    dark = said(stage.now + TICK)
    stage.run(control, world, HOUR // 4)
    assert metrics_told(world).reason == "PrometheusUnreachable"
    assert metrics_told(world).message.startswith(dark)


def test_an_outage_after_a_query_that_was_refused_for_days_is_not_told_as_days_by_the_next_operator() -> None:
    """The condition was False all the time, so that it flipped long before."""
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(by)"}}})
    stage.run(control, world, 4)
    stage.reachable = False
    dark = said(stage.now + TICK)
    stage.run(control, world, HOUR // 4)
    written(stage, world, flipped=stage.now - 3 * 86400)
    world, control = started(stage)
    stage.run(control, world, 8)
    assert metrics_told(world).reason == "PrometheusUnreachable"
    assert metrics_told(world).message.startswith(dark)


def test_a_query_that_is_refused_hides_no_outage() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(by)"}}})
    stage.run(control, world, 4)
    replace_look(stage, Looked(woken=Woken(refused={KEY: "no answer in time"}), reachable=False))
    stage.run(control, world, HOUR)
    assert metrics_told(world).reason == "Outage"


def test_a_query_that_takes_too_long_is_not_said_to_be_refused() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    stage.run(control, world, 4)
    answer(stage, Woken(refused={KEY: "no answer in time"}, slow=frozenset({KEY})))
    stage.run(control, world, HOUR // 4)
    told = metrics_told(world)
    assert told.reason == "QueryRefused"
    assert "takes Prometheus too long and is asked seldom" in told.message
    assert "is refused" not in told.message


def test_a_query_that_finds_nothing_for_minutes_is_told_with_what_would_have_it_answer() -> None:
    """Series of a queue come with the first request in many gateways: until then nobody knows whether it may sleep, nor can it wake."""
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    stage.run(control, world, 4)
    assert metrics_told(world).status == "True", "a look or two without an answer is nothing to tell of"
    stage.run(control, world, HOUR // 10)
    told = metrics_told(world)
    assert (told.status, told.reason) == ("False", "QueryUnanswered")
    assert "end it in `or vector(0)`" in told.message
    assert stage.run(control, world, HOUR) <= 2, "what was learned is stored now and then, and nothing else"
    assert metrics_told(world) == told
    answer(stage, Woken(waiting={KEY: 0.0}))
    stage.run(control, world, 4)
    assert metrics_told(world).status == "True"


def test_a_query_without_an_answer_hides_no_outage() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    stage.run(control, world, HOUR // 10)
    stage.reachable = False
    stage.run(control, world, 8)
    assert metrics_told(world).reason == "PrometheusUnreachable"


def test_a_prometheus_that_fails_on_a_query_is_told_and_not_that_the_query_finds_nothing() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(queue)"}}})
    answer(stage, Woken(unanswered={KEY: "HTTP 503: busy"}))
    stage.run(control, world, HOUR // 10)
    told = metrics_told(world)
    assert (told.status, told.reason) == ("False", "QueryFailed")
    assert "HTTP 503: busy" in told.message
    assert "finds nothing" not in told.message
    assert stage.run(control, world, HOUR) <= 2, "what was learned is stored now and then, and nothing else"
    answer(stage, Woken())
    stage.run(control, world, 4)
    assert metrics_told(world).status == "True", "it is answered again, and may find something in a moment"
    stage.run(control, world, HOUR // 10)
    assert metrics_told(world).reason == "QueryUnanswered"
    answer(stage, Woken(unanswered={KEY: "HTTP 503: busy"}))
    stage.run(control, world, 4)
    assert metrics_told(world).reason == "QueryUnanswered", "a moment without an answer is nothing to tell of"


@pytest.mark.parametrize("tuning", [{}, {"tuning": {"mode": "off"}}], ids=["retuned", "not retuned"])
def test_of_a_query_that_nobody_could_ask_it_is_not_told_that_it_finds_nothing(
    tuning: dict[str, Any],
) -> None:
    zero = {"wake": {"query": "sum(queue)"}, "afterSeconds": 60}
    stage, world, control = staged(scaling={"max": 4, "zero": zero}, **tuning)
    stage.wants = lambda spec: True  # type: ignore[method-assign]
    stage.load = 0.0
    answer(stage, Woken(waiting={KEY: 0.0}))
    stage.run(control, world, HOUR)
    assert stage.replicas == 0
    replace_look(stage, Looked(reachable=False))
    stage.run(control, world, HOUR // 5)
    assert metrics_told(world).reason == "PrometheusUnreachable"
