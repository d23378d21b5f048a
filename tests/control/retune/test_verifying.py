"""The last look at a retune, when all replicas have the change and none is left to compare them with."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.retune import Consent, Phase, advance, effect_of
from plimsoll.control.retune.figures import NOTHING
from plimsoll.control.situation import ReplicaState
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, TICK, World, in_phase, judging, replica


@pytest.mark.parametrize("more", [2, -1])
def test_replicas_that_came_or_went_during_the_roll_are_verified_with_the_change_from_the_first_moment(more):
    world = judging(World(replicas=3))
    world.replicas += more
    in_phase(Phase.VERIFYING, world)
    effect = effect_of(world.memory)
    assert effect is not None
    assert effect.replicas == world.replicas


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("more", [2, -1])
def test_replicas_that_come_or_go_while_a_change_is_verified_have_it_and_hold_up_nothing(free, more):
    world = in_phase(Phase.VERIFYING, World(replicas=3, free=free)).run(300)
    world.replicas += more
    world.run(2 * TICK)
    effect = effect_of(world.memory)
    assert effect is not None
    assert effect.replicas == world.replicas
    began = world.now
    while world.memory.step is not None and world.memory.step.phase is Phase.VERIFYING:
        world.tick()
    assert world.memory.past[0].outcome is Phase.DONE
    assert world.now - began <= 1.5 * world.rules.canary_seconds + 2 * TICK


def test_a_change_is_verified_from_when_those_without_it_are_gone_with_all_that_they_answer_and_never_for_ever():
    world = in_phase(Phase.VERIFYING, World(replicas=2))
    world.tick()
    assert world.memory.step is not None
    leaving = replica("old-0", ReplicaState.LEAVING, world.now)
    drains = replace(world.scene(), serving=replace(world.scene().serving, replicas=(leaving,)))
    memory, deadline = world.memory, world.memory.step.deadline
    for now in range(int(world.now), int(deadline), 60):
        memory = advance(replace(drains, now=float(now)), memory).memory
        assert (step := memory.step) is not None
        assert (step.phase, step.since, step.new) == (Phase.VERIFYING, now, NOTHING)
    for now in range(int(deadline) + 1, int(deadline) + 1200, 60):
        memory = advance(replace(drains, now=float(now)), memory).memory
    assert memory.past


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [(5.0, 50.0, True), (0.0, 50.0, False), (5.0, 0.0, False), (None, 50.0, False)],
)
def test_where_requests_waited_before_and_still_do_an_answer_takes_as_long_as_the_queue_has_grown_since(
    before, now, kept
):
    world = World(old=replace(OLD, waiting=before))
    while world.memory.step is None or world.memory.step.phase is not Phase.VERIFYING:
        world.change = replace(GOOD, waiting=before)
        world.tick()
    world.change = replace(GOOD, waiting=now, e2e=4 * OLD.e2e)
    world.run(3600)
    past = world.memory.past[0]
    assert (past.outcome is Phase.DONE) is kept, past.reason
    assert kept or "p99 of a whole answer" in past.reason


@pytest.mark.parametrize(
    ("waited", "first_s", "waits", "comes", "kept"),
    [
        (5.0, 30.0, 50.0, 2.0, True),
        (5.0, 30.0, 50.0, 1.0, False),
        (5.0, 1.5, 50.0, 2.0, False),
        (0.0, 30.0, 50.0, 2.0, False),
        (5.0, 30.0, 0.0, 2.0, False),
    ],
    ids=["the load grows on", "as many come as end", "in time before", "no queue before", "no queue now"],
)
def test_where_more_comes_than_is_done_and_did_first_tokens_are_as_late_as_the_queue_has_grown_since(
    waited: float, first_s: float, waits: float, comes: float, kept: bool
):
    """Where as many come as end, the queue does not grow, and it is the change that has requests wait in front of the first token."""
    before: dict[str, Any] = {"waiting": waited, "ttft": first_s, "late": 0.5 if first_s > 2 else 0.0}
    world = World(old=replace(OLD, **before), change=replace(GOOD, **before))
    in_phase(Phase.VERIFYING, world)
    world.change = replace(GOOD, waiting=waits, ttft=600.0, late=1.0, comes=comes)
    world.run(3600)
    past = world.memory.past[0]
    assert (past.outcome is Phase.DONE) is kept, past.reason
    assert kept or "first token" in past.reason


@pytest.mark.parametrize(
    "worse",
    [{"tokens": 0.9 * OLD.tokens}, {"itl": 3 * OLD.itl}, {"errors": 0.2}, {"preempted": OLD.preempted}],
    ids=["fewer tokens", "longer gaps", "failures", "no gain"],
)
def test_a_change_under_a_load_that_nothing_carries_is_held_to_all_that_the_queue_does_not_explain(
    worse: dict[str, Any],
):
    before: dict[str, Any] = {"waiting": 5.0, "ttft": 30.0, "late": 0.5}
    world = World(old=replace(OLD, **before), change=replace(GOOD, **before))
    in_phase(Phase.VERIFYING, world)
    world.change = replace(GOOD, **{"waiting": 50.0, "ttft": 600.0, "late": 1.0, "comes": 2.0} | worse)
    world.run(3600)
    assert world.memory.past[0].outcome is Phase.FAILED


@pytest.mark.parametrize(
    ("now", "outcome", "why", "failures"),
    [
        (replace(GOOD, rate=0.5 * OLD.rate), Phase.DONE, "", 0),
        (replace(GOOD, rate=2 * OLD.rate), Phase.DONE, "", 0),
        (replace(GOOD, rate=0.5 * OLD.rate, errors=0.2), Phase.FAILED, "requests fail with the change", 1),
        (replace(GOOD, rate=2 * OLD.rate, errors=0.2), Phase.FAILED, "requests fail with the change", 1),
        (replace(GOOD, rate=0.5 * OLD.rate, itl=3 * OLD.itl), Phase.FAILED, "between tokens", 1),
        (replace(GOOD, rate=2 * OLD.rate, itl=3 * OLD.itl), Phase.DONE, "", 0),
        (replace(GOOD, rate=0.5 * OLD.rate, ttft=10.0), Phase.FAILED, "first token", 1),
        (replace(GOOD, rate=2 * OLD.rate, ttft=10.0), Phase.FAILED, "under a larger load", 0),
        (replace(GOOD, rate=0.5 * OLD.rate, preempted=0.3), Phase.FAILED, "preempted still", 1),
    ],
)
def test_under_another_load_than_before_what_is_worse_goes_back_unless_the_load_alone_makes_it_so(
    now, outcome, why, failures
):
    world = in_phase(Phase.VERIFYING, World())
    world.change = now
    world.run(7200)
    past = world.memory.past[0]
    assert past.outcome is outcome, past.reason
    assert why in past.reason
    assert world.memory.failures == failures


def lost(world, seconds):
    """All that has the change is gone for so long, or until it is no longer verified; then it is made again."""
    places, until = tuple(world.changed_at), world.now + seconds
    world.changed_at = {}
    while world.now < until and world.memory.step.phase is Phase.VERIFYING:
        world.now += TICK
        world.stored = codec.encode(advance(world.scene(), world.memory).memory)
    world.changed_at = dict.fromkeys(places, world.now)


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("seen_s", [TICK, 600.0])
def test_a_change_whose_only_replica_is_lost_while_it_is_verified_is_verified_when_it_serves_again(
    free, seen_s
):
    consent = Consent(allowed=("maxSequences",), disruption=True)
    world = in_phase(Phase.VERIFYING, World(replicas=1, free=free, consent=consent)).run(seen_s)
    lost(world, 1200)
    came = world.now
    while not world.memory.past:
        world.tick()
    assert world.memory.past[0].outcome is Phase.DONE
    assert world.now - came >= 1.5 * world.rules.canary_seconds, "and not by what was seen before alone"


@pytest.mark.parametrize("seen_s", [TICK, 600.0])
def test_a_change_whose_only_replica_never_comes_again_is_not_kept_and_not_blamed(seen_s):
    world = in_phase(Phase.VERIFYING, World(replicas=1)).run(seen_s)
    began = world.now
    lost(world, 4 * 3600)
    step = world.memory.step
    assert step is not None
    assert (step.phase, step.starved) == (Phase.ROLLING_BACK, True)
    assert world.now - began <= world.rules.canary_limit_seconds + 2 * TICK
    assert step.said == "no replica with the change serves any more, as no pod was made"
