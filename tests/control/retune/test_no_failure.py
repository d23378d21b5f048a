"""Ends that say nothing of a change count against it nowhere: three of them pause nothing. Those that are its own doing do."""

from dataclasses import replace
from math import inf

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Phase, RetuneMemory, advance
from tests.control.retune.world import GOOD, OLD, START_S, World, in_phase, judging, said

HOUR = 3600.0
EAGER = Restarts(retunes_per_day=100, retry_after_seconds=1)


def test_a_canary_that_is_given_no_request_at_all_is_no_failure():
    world = World(change=replace(GOOD, rate=0.0), rules=EAGER).run(12 * HOUR)
    assert len(world.memory.past) > 3
    assert (world.memory.failures, world.memory.paused_at) == (0, None)
    assert "given too few requests" in world.memory.past[0].reason


@pytest.mark.parametrize(
    ("phase", "placed", "failed"),
    [
        (Phase.CANARY, False, False),
        (Phase.CANARY, True, True),
        (Phase.ROLLING, False, False),
        (Phase.ROLLING, True, False),
    ],
)
def test_a_canary_that_has_a_gpu_and_does_not_serve_is_a_failure_and_no_other_that_comes_too_late_is(
    phase, placed, failed
):
    world = in_phase(phase, World())
    world.homeless, world.stuck_since = not placed, world.now
    while not world.memory.past:
        world.tick()
    past = world.memory.past[-1]
    assert past.outcome is Phase.FAILED
    assert ("no place was found" in past.reason) is not placed
    assert (world.memory.failures > 0) is failed


@pytest.mark.parametrize(("phase", "there"), [(Phase.CANARY, 0), (Phase.ROLLING, 1)])
def test_where_no_pod_was_made_as_the_cluster_refused_it_no_lack_of_place_is_told(phase, there):
    world = in_phase(phase, World())
    world.tick()
    scene = replace(world.scene(), now=world.now + 9 * HOUR)
    assert scene.changed is not None
    made = replace(scene.changed, replicas=scene.changed.replicas[:there])
    step = advance(replace(scene, changed=made), world.memory).memory.step
    assert step is not None
    assert (step.phase, step.starved) == (Phase.ROLLING_BACK, True)
    assert "no pod was made" in step.said


def test_a_further_replica_that_takes_twenty_minutes_to_start_is_waited_for():
    world = in_phase(Phase.ROLLING, World())
    slow = world.now + 1200
    world.stuck_since = world.now
    while world.now < slow:
        world.tick()
    world.stuck_since = inf
    world.run(2 * HOUR)
    assert [past.outcome for past in world.memory.past] == [Phase.DONE]


@pytest.mark.parametrize("phase", [Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING])
def test_metrics_that_go_away_meanwhile_are_no_failure(phase):
    world = in_phase(phase, World())
    while (
        phase is Phase.ROLLING
        and len([at for at in world.changed_at.values() if world.now - at >= START_S]) < 2
    ):
        world.tick()
    memory, now = world.memory, world.now
    while memory.step is not None and memory.step.phase is phase:
        now += 60
        memory = advance(replace(world.scene(), now=now, data=False), memory).memory
    assert memory.step is not None
    assert memory.step.phase is Phase.ROLLING_BACK
    gone = replace(world.scene(), now=now + 60, data=False, changed=None)
    memory = advance(gone, memory).memory
    assert (memory.past[0].outcome, memory.failures) == (Phase.FAILED, 0)
    assert "metrics" in memory.past[0].reason


def test_a_change_that_shows_no_gain_is_one():
    world = World(change=OLD).run(2 * HOUR)
    assert world.memory.failures >= 1


def test_a_clock_that_is_put_back_forgets_no_restart_and_lets_a_person_clear_a_pause():
    world = World()
    ahead = world.now + HOUR
    memory = RetuneMemory(restarts=(ahead, world.now - HOUR), paused_at=ahead, failures=3)
    memory = advance(world.scene(), memory).memory
    assert memory.restarts == (world.now, world.now - HOUR)
    cleared = replace(world.scene(), now=world.now + 60, cleared_at=world.now + 60)
    assert advance(cleared, memory).memory.paused_at is None
    tomorrow = replace(world.scene(), now=world.now + 24 * HOUR)
    assert advance(tomorrow, memory).memory.restarts == ()


@pytest.mark.parametrize("rate", [0.0, 0.02])
def test_a_canary_whose_traffic_goes_away_with_that_of_the_others_is_no_failure(rate):
    world = judging(World()).run(60)
    world.old, world.change = replace(OLD, rate=rate), replace(GOOD, rate=rate)
    world.run(2 * HOUR)
    past = world.memory.past[-1]
    assert past.outcome is Phase.FAILED
    assert "inconclusive" in past.reason
    assert world.memory.failures == 0


def test_a_canary_that_nobody_looked_at_until_its_time_was_over_is_no_failure():
    world = judging(World())
    step = world.memory.step
    assert step is not None
    late = replace(world.scene(), now=step.deadline + HOUR)
    memory = advance(late, world.memory).memory
    assert memory.step is not None
    assert (memory.step.phase, memory.step.starved) == (Phase.ROLLING_BACK, True)


def test_a_canary_of_which_nothing_is_known_while_the_others_are_heard_is_no_failure():
    world = judging(World())
    step, memory, now = world.memory.step, world.memory, world.now
    assert step is not None
    while memory.step is not None and memory.step.phase is Phase.JUDGING:
        now += 60
        mute = replace(said(GOOD, 0, now, "new"), live=1)
        memory = advance(replace(world.scene(), now=now, changed_signals=mute), memory).memory
    assert memory.step is not None
    assert (memory.step.phase, memory.step.starved) == (Phase.ROLLING_BACK, True)


def test_a_canary_that_answers_enough_and_shows_no_gain_is_one():
    world = judging(World(change=replace(OLD, preempted=0.2))).run(2 * HOUR)
    assert world.memory.failures == 1


@pytest.mark.parametrize("wanted", [1.0, 3.5])
def test_a_gpu_that_somebody_else_has_first_costs_no_try(wanted):
    """Where the others can do without one it goes in its place, else it is put off."""
    world = in_phase(Phase.PLANNED, World(replicas=3, free=1, wanted=wanted))
    world.free, world.homeless = 0, True
    world.tick()
    assert world.memory.failures == 0
    if wanted == 1.0:
        assert world.memory.step is not None
        assert not world.memory.step.surge
        assert len(world.memory.restarts) == 1
    else:
        (past,) = world.memory.past
        assert not past.tried
        assert "more than the others carry" in past.reason
