"""A canary that another program goes on with: what the one before had counted is lost, and the time that it took is given back, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.record import Record
from plimsoll.control.retune import Phase
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, TICK, World, in_phase, judging

LIMIT = 2700.0
SELDOM = 0.09
"""Requests a second of a replica: as many as a canary needs come in 37 minutes of the 45 that it may last."""


def seldom_asked() -> World:
    return World(old=replace(OLD, rate=SELDOM, preempted=0.3), change=replace(GOOD, rate=SELDOM))


def restarted(world: World) -> None:
    """Another program reads what is stored."""
    world.stored = codec.encode(world.memory.watched_anew(world.now))


def judged_for(world: World) -> float:
    """Seconds until it is judged, from now on."""
    begun = world.now
    while (step := world.memory.step) is not None and step.phase is Phase.JUDGING:
        world.tick()
    return world.now - begun


@pytest.mark.parametrize("minutes", [5, 20, 30, 36])
def test_a_canary_of_few_requests_that_another_program_goes_on_with_is_judged_by_as_many_as_otherwise(
    minutes: int,
) -> None:
    world = judging(seldom_asked())
    world.run(60.0 * minutes)
    restarted(world)
    judged_for(world)
    step = world.memory.step
    assert step is not None
    assert step.phase is Phase.ROLLING, step.said


@pytest.mark.parametrize("seconds", [60.0, 300.0, 1500.0])
def test_programs_that_begin_again_and_again_make_the_time_of_a_canary_no_more_than_twice_as_long(
    seconds: float,
) -> None:
    world = judging(seldom_asked())
    begun = world.now
    while not world.memory.past:
        world.run(seconds)
        restarted(world)
    assert "inconclusive" in world.memory.past[0].reason
    assert LIMIT < world.memory.past[0].ended - begun <= 2 * LIMIT + seconds + 2 * TICK


def test_one_that_cannot_even_store_what_it_prolonged_prolongs_no_further() -> None:
    world = judging(seldom_asked())
    stored = world.memory
    world.now += 2 * LIMIT + TICK
    anew = stored.watched_anew(world.now).step
    assert anew is not None
    assert anew.deadline < world.now
    world.now += 7 * 86400
    assert stored.watched_anew(world.now).step == replace(anew, since=world.now)


def test_a_clock_that_jumps_moves_the_bound_too_and_one_that_was_put_back_shortens_nothing() -> None:
    world = judging(seldom_asked())
    world.run(600)
    restarted(world)
    once = world.memory
    moved = once.moved(3600.0)
    assert once.latest is not None
    assert moved.latest == once.latest + 3600
    back = once.watched_anew(world.now - 3600).step
    assert back is not None
    assert once.step is not None
    assert back.deadline == once.step.deadline


def test_the_next_phase_has_a_bound_of_its_own() -> None:
    def bounded() -> bool:
        return world.memory.latest is not None

    world = judging(World(replicas=3, change=GOOD))
    restarted(world)
    assert bounded()
    in_phase(Phase.ROLLING, world)
    assert not bounded()
    in_phase(Phase.VERIFYING, world).run(300)
    restarted(world)
    world.run(3600)
    assert world.memory.past[0].outcome is Phase.DONE
    assert not bounded()


@pytest.mark.parametrize(
    "phase", [Phase.PLANNED, Phase.CANARY, Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING]
)
def test_a_program_that_begins_with_a_clock_that_was_put_back_gives_no_phase_a_day_more(phase: Phase) -> None:
    world = in_phase(phase, World())
    before = world.memory
    seen = Memory(roles={"serve": RoleMemory(begun=world.now - 9999, seen=world.now)})
    for back in (0.0, 86_400.0):
        now = world.now - back
        after = Record(retune=before, memory=seen).read(now).retune
        assert after.step is not None
        assert before.step is not None
        assert after.step.since <= now
        assert after.step.deadline - now <= before.step.deadline - before.step.since
        assert after.latest is None or after.latest - now <= 2 * (before.step.deadline - before.step.since)


@pytest.mark.parametrize("away", [300.0, 900.0, 7200.0])
@pytest.mark.parametrize("starts", [True, False])
def test_a_canary_that_was_made_only_when_a_program_came_back_has_its_time_to_start(
    away: float, starts: bool
) -> None:
    world = in_phase(Phase.CANARY, World(replicas=3, change=replace(GOOD, starts=starts)))
    world.changed_at.clear()
    world.now += away
    restarted(world)
    world.tick()
    world.run(600)
    step = world.memory.step
    if starts and away < 7200:
        assert step is not None
        assert step.phase is Phase.JUDGING
    world.run(7200)
    late = away == 7200 and "not ready in time" in world.memory.past[-1].reason
    assert world.memory.failures == (0 if starts or late else 1)
