"""A clock that is put forward or back while the operator runs: a retune in flight is watched for as long as otherwise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.control.retune import Past, Phase
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop import judging
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from tests.planning.asking import pool
from tests.reconcile.loop.test_one_action import Preempting
from tests.reconcile.staging import AUTO, KEY, TICK, put, staged, started
from tests.reconcile.test_decide import seen


def phase(world: World) -> Phase | None:
    direction = world.directions.get(KEY)
    step = direction.record.retune.step if direction is not None else None
    return step.phase if step is not None else None


def canary() -> tuple[Preempting, World, Control]:
    """One that brings nothing, as it begins to be judged."""
    asked = seen(
        spec={**AUTO, "engine": {"maxSequences": 64}, "tuning": {"mode": "auto"}}, pools=(pool(nodes=4),)
    )
    stage = Preempting(asked=asked, decision=decide(asked), load=100.0)
    world, control = started(stage)
    while phase(world) is not Phase.JUDGING:
        stage.run(control, world, 1)
    stage.turn(world)
    return stage, world, control


def kept_past(stage: Preempting) -> tuple[Past, ...]:
    record = stage.decision.kept.control
    assert record is not None
    return record.retune.past


@cache
def looks_at_a_canary(
    hour: float, since: int = 10, paused: int = 0, restarts: str = "", back: float = 0.0
) -> int:
    """That brings nothing; after so many looks the clock jumps, or it is paused for so many that do not count. Where another program goes
    on in the pause or just after it, only its looks are counted; its clock is `back` by so many seconds."""
    stage, world, control = canary()
    looks = since
    stage.run(control, world, looks)
    stage.now += hour
    if paused:
        pausing(stage, world, paused=True)
        stage.run(control, world, paused)
        if restarts == "in the pause":
            stage.now -= back
            looks, (world, control) = 0, started(stage)
            stage.run(control, world, paused)
        assert phase(world) is Phase.JUDGING
        pausing(stage, world, paused=False)
        stage.turn(world)
    if restarts in ("after it", "without a pause"):
        stage.now -= back
        looks, (world, control) = 0, started(stage)
        stage.run(control, world, 1)
    while phase(world) is Phase.JUDGING:
        stage.run(control, world, 1)
        looks += 1
    return looks


def pausing(stage: Preempting, world: World, *, paused: bool) -> None:
    asked = stage.asked.deployment
    spec = asked.spec.model_copy(update={"paused": paused})
    put(stage, world, replace(stage.asked, deployment=asked.model_copy(update={"spec": spec})))


@pytest.mark.parametrize("since", range(8, 12))
@pytest.mark.parametrize("hour", [3600.0, -3600.0], ids=["forward", "back"])
def test_in_a_large_fleet_it_is_seen_though_settings_are_looked_at_less_often(
    monkeypatch: pytest.MonkeyPatch, hour: float, since: int
) -> None:
    as_it_is = looks_at_a_canary(0)
    monkeypatch.setattr(judging, "LARGE", 0)
    looks_at_a_canary.cache_clear()
    jumped = looks_at_a_canary(hour, since)
    looks_at_a_canary.cache_clear()
    assert abs(jumped - as_it_is) <= 4


def test_the_time_of_a_pause_is_none_of_a_canarys() -> None:
    assert abs(looks_at_a_canary(0, paused=300) - looks_at_a_canary(0)) <= 2


@pytest.mark.parametrize("since", [10, 38])
@pytest.mark.parametrize(
    ("restarts", "paused"), [("in the pause", 300), ("after it", 300), ("without a pause", 0)]
)
def test_another_program_watches_a_canary_for_as_long_as_at_first_before_it_judges(
    restarts: str, paused: int, since: int
) -> None:
    """What it showed before is lost, and how long a pause has lasted nobody has seen from its beginning."""
    looks = looks_at_a_canary(0, since=since, paused=paused, restarts=restarts)
    assert abs(looks - looks_at_a_canary(0)) <= 2


@pytest.mark.parametrize(("restarts", "paused"), [("in the pause", 40), ("without a pause", 0)])
def test_another_program_whose_clock_is_behind_watches_it_for_no_less_and_no_longer(
    restarts: str, paused: int
) -> None:
    looks = looks_at_a_canary(0, since=38, paused=paused, restarts=restarts, back=36_000.0)
    assert abs(looks - looks_at_a_canary(0)) <= 2


def test_programs_that_begin_again_and_again_prolong_a_canary_to_no_more_than_twice_its_time() -> None:
    stage, world, control = canary()
    looks = 0
    while phase(world) is Phase.JUDGING:
        stage.run(control, world, 20)
        looks += 20
        world, control = started(stage)
        stage.run(control, world, 1)
    (past,) = kept_past(stage)
    assert "inconclusive" in past.reason
    limit = OperatorConfig().restarts.canary_limit_seconds
    assert limit < looks * TICK <= 2 * limit + 20 * TICK


@pytest.mark.parametrize("hour", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_clock_that_jumps_neither_shortens_nor_prolongs_the_watch_of_a_canary(hour: float) -> None:
    assert abs(looks_at_a_canary(hour) - looks_at_a_canary(0)) <= 1


def test_an_annotation_that_was_seen_before_a_clock_was_put_back_is_no_newer_than_what_comes_after_it() -> (
    None
):
    stage, world, control = staged()
    stage.run(control, world, 3)
    asked = stage.asked.deployment
    metadata = asked.metadata.model_copy(update={"annotations": {names.ANNOTATION_RESET: "now"}})
    put(stage, world, replace(stage.asked, deployment=asked.model_copy(update={"metadata": metadata})))
    stage.run(control, world, 2)
    stage.now -= 3600
    stage.run(control, world, 2)
    assert 0 < world.directions[KEY].record.noted[names.ANNOTATION_RESET].at <= stage.now
