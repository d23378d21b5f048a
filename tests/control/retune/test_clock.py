"""A clock that is put forward or back by an hour: no retune begins, goes on, ends, or is forgotten for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.retune import Phase, RetuneMemory, advance
from plimsoll.control.retune.allowed import barred
from plimsoll.control.retune.steps import Past
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, Behaviour, World
from tests.control.situations import NOW

HOUR = 3600.0
SLOWLY = replace(OLD, preempted=0.1, rate=0.4)
"""Preempts so that it has to last for minutes before anything is done, and answers so few that all the minutes of a watch count."""
Looks = list[tuple[str, list[tuple[str, str]]]]
"""The phase after each look at a retune, and the events of that look."""
jumps = pytest.mark.parametrize("hour", [HOUR, -HOUR], ids=["forward", "back"])


def looks(change: Behaviour, *, jump_after: int = 0, hour: float = 0.0) -> Looks:
    world, told, found = World(old=SLOWLY, change=change), 0, []
    while not world.memory.past:
        world.tick()
        step = world.memory.step
        events = [(event.reason, event.message) for event in world.events[told:]]
        found.append((step.phase.value if step else "Idle", events))
        told = len(world.events)
        if len(found) == jump_after:
            world.jump(hour)
    return found


@jumps
@pytest.mark.parametrize(
    ("change", "phases"),
    [
        (
            replace(GOOD, rate=SLOWLY.rate),
            {"Idle", "Planned", "Canary", "Judging", "Rolling", "Verifying", "Done"},
        ),
        (SLOWLY, {"Idle", "Planned", "Canary", "Judging", "RollingBack"}),
        (
            replace(GOOD, gap=2 * OLD.gap, rate=SLOWLY.rate),
            {"Idle", "Planned", "Canary", "Judging", "RollingBack"},
        ),
    ],
    ids=["good", "no gain", "longer gaps"],
)
def test_a_clock_that_jumps_by_an_hour_moves_nothing_in_any_state(
    change: Behaviour, phases: set[str], hour: float
) -> None:
    as_it_is = looks(change)
    seen = [phase for phase, _ in as_it_is]
    assert set(seen) == phases
    for phase in phases:
        middle = seen.index(phase) + 1 + seen.count(phase) // 2
        assert looks(change, jump_after=middle, hour=hour) == as_it_is, phase


def test_what_failed_a_moment_ago_is_not_tried_again_for_a_clock_that_was_put_back() -> None:
    failed = Past(
        id="x", setting="maxSequences", before="32", after="16", symptom=Symptom.PREEMPTION, outcome=Phase.FAILED,
        began=NOW - 900, ended=NOW, reason="no gain",
    )  # fmt: skip
    scene = replace(World().scene(), now=NOW - HOUR)
    assert "maxSequences" in barred(scene, RetuneMemory(past=(failed,)), Symptom.PREEMPTION)


def test_what_was_tried_by_a_clock_that_was_ahead_is_forgotten_a_day_after_it_was_put_back() -> None:
    ahead = NOW + 30 * 24 * HOUR
    past = Past(
        id="maxSequences-1",
        setting="maxSequences",
        before="32",
        after="16",
        symptom=Symptom.PREEMPTION,
        outcome=Phase.FAILED,
        began=ahead,
        ended=ahead,
        reason="no gain",
    )
    world = World()
    world.stored = codec.encode(RetuneMemory(past=(past, past)))
    world.run(HOUR)
    assert "2 retunes today" in world.why_not
    world.run(24 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE


def test_what_is_planned_and_begun_by_nobody_in_time_touches_no_replica():
    world = World()
    while world.memory.step is None:
        world.tick()
    step = world.memory.step
    for late, tried in ((0.0, True), (15.0, False)):
        scene = replace(world.scene(), now=step.deadline + late)
        memory = advance(scene, world.memory).memory
        assert (memory.step is not None) is tried
    assert (memory.past[0].tried, memory.failures) == (False, 0)
    assert memory.past[0].reason == "nobody began it in time"
