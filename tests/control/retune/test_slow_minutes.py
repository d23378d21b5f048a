"""A slow minute of the machine that a canary runs on is no fault of the change; what is seen for most of its watch is."""

from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Phase
from plimsoll.control.retune.looking import LASTS_SHARE
from plimsoll.control.signals import LATENCY_S
from tests.control.retune.world import GOOD, OLD, TICK, World, in_phase, judging

RULES = Restarts(canary_seconds=600)
LONGER = {
    "p99 between tokens": replace(GOOD, itl=1.3 * OLD.itl),
    "the longest gap between tokens": replace(GOOD, gap=2 * OLD.gap),
}


def watched(world: World, *minutes: tuple[float, str | None]) -> World:
    """A canary that for so many seconds each has longer gaps, or none; the last for as long as it is judged."""
    judging(world)
    for seconds, longer in minutes:
        world.change = LONGER[longer] if longer else GOOD
        until = world.now + seconds
        while (
            world.now < until and world.memory.step is not None and world.memory.step.phase is Phase.JUDGING
        ):
            world.tick()
    return world


@pytest.mark.parametrize("longer", LONGER)
@pytest.mark.parametrize("slow_from", [0, 60, 240, 300, 420, 570, 600])
def test_a_slow_minute_passes_whenever_it_comes_though_latencies_tell_of_it_for_longer(longer, slow_from):
    seen = 60 + LATENCY_S
    world = watched(World(rules=RULES), (slow_from, None), (seen, longer), (3600, None)).run(3600)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


@pytest.mark.parametrize("longer", LONGER)
def test_longer_gaps_from_the_first_minute_on_end_a_watch_no_later_than_it_was_to_end(longer):
    world = judging(World(rules=RULES))
    began = world.now
    watched(world, (3600, longer))
    step = world.memory.step
    assert step is not None
    assert step.phase is Phase.ROLLING_BACK
    assert longer in step.said
    assert world.now - began <= RULES.canary_seconds + TICK


@pytest.mark.parametrize("longer", LONGER)
@pytest.mark.parametrize("slow_from", [240, 420, 570])
def test_longer_gaps_that_stay_end_a_watch_whenever_they_come(longer, slow_from):
    world = judging(World(rules=RULES))
    began = world.now
    watched(world, (slow_from, None), (3600, longer))
    step = world.memory.step
    assert step is not None
    assert step.phase is Phase.ROLLING_BACK
    assert world.now - began <= slow_from + LASTS_SHARE * RULES.canary_seconds + 2 * TICK


SHORT = Restarts(canary_seconds=60, canary_requests=50)
"""Less than latencies look back: those of the others are of minutes before the canary too."""
WORSE = {**LONGER, "p99 of a whole answer": replace(GOOD, e2e=1.5 * OLD.e2e)}


@pytest.mark.parametrize("worse", WORSE)
def test_a_short_watch_blames_no_change_for_what_the_minutes_before_it_were_like(worse):
    world = judging(World(rules=SHORT))
    world.change = WORSE[worse]
    world.run(LATENCY_S - 2 * TICK)
    assert world.memory.step is not None
    assert (world.memory.step.phase, worse in world.memory.step.said) == (Phase.JUDGING, True)
    world.change = GOOD
    world.run(3600)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


@pytest.mark.parametrize("worse", WORSE)
def test_what_is_longer_in_the_same_minutes_ends_a_short_watch_too(worse):
    world = judging(World(rules=SHORT, change=WORSE[worse]))
    began = world.now
    while world.memory.step is not None and world.memory.step.phase is Phase.JUDGING:
        world.tick()
    assert world.memory.step is not None
    assert world.memory.step.phase is Phase.ROLLING_BACK
    assert LATENCY_S <= world.now - began <= LATENCY_S + TICK


def test_what_is_counted_in_the_watch_itself_ends_a_short_one_at_once():
    world = judging(World(rules=SHORT, change=replace(WORSE["p99 of a whole answer"], preempted=0.3)))
    world.run(SHORT.canary_seconds + 2 * TICK)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert "no gain" in world.memory.past[0].reason


def test_what_no_slow_minute_makes_ends_a_watch_at_once():
    world = watched(World(rules=RULES), (600 - TICK, None))
    world.change = replace(LONGER["p99 between tokens"], errors=0.2)
    world.tick()
    step = world.memory.step
    assert step is not None
    assert step.phase is Phase.ROLLING_BACK


@pytest.mark.parametrize("rate", [OLD.rate, OLD.rate / 2])
@pytest.mark.parametrize("longer", LONGER)
def test_a_slow_minute_passes_at_the_end_of_what_is_verified_too(longer, rate):
    world = in_phase(Phase.VERIFYING, World(rules=RULES))
    world.change = replace(GOOD, rate=rate)
    world.run(1.5 * RULES.canary_seconds - 2 * TICK)
    world.change = replace(LONGER[longer], rate=rate)
    world.run(60 + LATENCY_S)
    world.change = replace(GOOD, rate=rate)
    world.run(3600)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


@pytest.mark.parametrize("longer", LONGER)
@pytest.mark.parametrize("phase", [Phase.ROLLING, Phase.VERIFYING])
def test_longer_gaps_that_stay_undo_what_is_rolled_out_or_verified(phase, longer):
    world = in_phase(phase, World(rules=RULES, replicas=3))
    world.change = LONGER[longer]
    world.run(3600)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert longer in world.memory.past[0].reason
