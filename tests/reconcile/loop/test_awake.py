"""Why one that may sleep does not is told in its status, once for each reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import pytest

from plimsoll import names
from plimsoll.api.conditions import set_condition
from plimsoll.control.decision import SAYS_NOTHING, Awake, Told
from plimsoll.control.zero import METRICS_MISSING
from plimsoll.prometheus.wakes import Woken
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.patience import AWAKE_S, Patience
from plimsoll.reconcile.world import World
from plimsoll.status.live import AWAKE
from tests.reconcile.loop.test_fleet_budget import names_a_preset_that_is_gone
from tests.reconcile.staging import KEY, TICK, Scene, answer, conditions, staged, started

QUERY: Final[dict[str, Any]] = {"max": 4, "zero": {"wake": {"query": "sum(queue)"}, "afterSeconds": 1800}}
ONCE: Final = "it sleeps once nobody has asked for 30 minutes"
MINUTE: Final = round(60 / TICK)


def waits(stage: Scene, count: float) -> None:
    answer(stage, Woken(waiting={KEY: count}))


def test_who_asks_all_the_time_costs_no_write_and_who_is_quiet_is_told_when_it_sleeps() -> None:
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 20 * MINUTE)
    assert world.directions[KEY].awake == ONCE
    assert stage.run(control, world, 60 * MINUTE) <= 2, (
        "what was learned is stored now and then, and nothing else"
    )
    stage.load = 0.0
    turns = stage.run(control, world, 25 * MINUTE)
    assert world.directions[KEY].awake.startswith("nobody has asked since 20")
    assert turns <= 3
    stage.run(control, world, 30 * MINUTE)
    assert stage.replicas == 0
    assert world.directions[KEY].awake == ""


@pytest.mark.parametrize("asks_s", [60, 600, 1140])
def test_one_that_is_asked_now_and_then_is_not_written_at_each_request(asks_s: int) -> None:
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 10 * MINUTE)
    turns = 0
    for _ in range(7200 // asks_s):
        stage.load = 1.0
        turns += stage.run(control, world, 1)
        stage.load = 0.0
        turns += stage.run(control, world, round(asks_s / TICK) - 1)
    assert turns <= 4 + 2 * (7200 // asks_s if asks_s > 900 + AWAKE_S else 0)


def quiet_for(ticks: int) -> tuple[Scene, World, Control]:
    """One that was asked for twenty minutes, and then by nobody for so many ticks."""
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 20 * MINUTE)
    stage.load = 0.0
    stage.run(control, world, ticks)
    return stage, world, control


def test_one_that_was_asked_since_the_last_look_stays_though_nobody_had_for_long_enough_before() -> None:
    """By requests so short that they begin and end between two looks."""
    sleeps = next(ticks for ticks in range(30 * MINUTE, 60 * MINUTE) if not quiet_for(ticks)[0].replicas)
    stage, world, control = quiet_for(sleeps - 1)
    assert stage.replicas
    for pod in stage.finished:
        stage.finished[pod] += 3
    stage.run(control, world, 20 * MINUTE)
    assert stage.replicas


def test_a_reason_that_comes_and_goes_is_not_told() -> None:
    patience = Patience()
    told = {
        patience.told_awake(Awake("replicas are starting" if tick % 4 == 3 else ONCE), 15.0 * tick)
        for tick in range(40)
    }
    assert told == {ONCE}
    assert patience.told_awake(SAYS_NOTHING, 700.0) == ""


@pytest.mark.parametrize("interval_s", [TICK, 300.0])
def test_it_is_not_said_that_metrics_available_says_what_it_does_not_say_yet(interval_s: float) -> None:
    """A Prometheus is away for four ticks before that is told, and ticks may lie minutes apart."""
    stage, world, _ = staged(scaling=QUERY)
    waits(stage, 0.0)
    control = Control(world, stage, stage.woken.append, interval_s=interval_s)
    said = set()
    for tick in range(48):
        stage.reachable = not 3 <= tick < 40
        stage.now += interval_s
        asyncio.run(control.tick())
        direction = world.directions[KEY]
        says = direction.awake == METRICS_MISSING.why
        said.add(says)
        assert not says or conditions(direction)["MetricsAvailable"][0] == "False"
    assert said == {True, False}


def in_the_status(stage: Scene, world: World) -> None:
    """What a turn would have written of it."""
    there = stage.asked.deployment.status.conditions
    direction = world.directions[KEY]
    ready = Told("Ready", "True", "Serving", f"1 of 1 replicas serve{AWAKE}{direction.awake}")
    for one in (*direction.told, ready):
        there = set_condition(
            there,
            one.type,
            status=one.status,
            reason=one.reason,
            message=one.message,
            now="2027-01-15T00:00:00Z",
        )
    status = stage.asked.deployment.status.model_copy(update={"conditions": there})
    deployment = stage.asked.deployment.model_copy(update={"status": status})
    stage.asked = replace(stage.asked, deployment=deployment)


def test_a_program_that_begins_writes_nothing_where_the_status_says_it_already() -> None:
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 20 * MINUTE)
    in_the_status(stage, world)
    world, control = started(stage)
    stage.woken.clear()
    assert stage.run(control, world, 4) == 0
    assert world.directions[KEY].awake == ONCE


@pytest.mark.parametrize("asks", ["wants", "covers"])
def test_what_is_told_of_one_that_nobody_looks_at_since_the_program_began_is_taken_back(asks: str) -> None:
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 20 * MINUTE)
    in_the_status(stage, world)
    world, control = started(stage)
    stage.woken.clear()
    setattr(stage, asks, lambda _: False)
    assert stage.run(control, world, 4) == 1
    assert (world.directions[KEY].told, world.directions[KEY].awake) == ((), "")


def test_it_is_told_no_more_while_its_spec_cannot_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, world, control = staged(scaling=QUERY)
    waits(stage, 0.0)
    stage.run(control, world, 20 * MINUTE)
    names_a_preset_that_is_gone(stage, world, monkeypatch)
    stage.run(control, world, 4)
    assert world.directions[KEY].awake == ""


def test_that_metrics_are_missing_is_over_at_once_also_for_a_program_that_begins() -> None:
    """By what names the condition, whatever its words."""
    gone = Told(names.METRICS, "False", "Missing", "m")
    missing = Awake("nobody knows, as MetricsAvailable says", names.METRICS)
    patience = Patience()
    assert patience.told_awake(missing, 0.0, [gone]) == missing.why
    assert patience.told_awake(Awake(ONCE), 15.0, [gone]) == missing.why, "it has not lasted"
    assert patience.told_awake(Awake(ONCE), 30.0) == ONCE
    stage, world, control = staged(scaling=QUERY)
    stage.run(control, world, 4)
    world.directions[KEY] = replace(world.directions[KEY], told=(gone,), awake=missing.why)
    in_the_status(stage, world)
    begun = Patience.of(stage.asked.deployment)
    assert begun.told_awake(Awake(ONCE), 45.0, [gone]) == missing.why
    assert begun.told_awake(Awake(ONCE), 60.0) == ONCE
