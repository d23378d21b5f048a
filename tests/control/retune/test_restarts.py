"""What a day allows of retunes and of restarts, and that a way back is paid for before the way there begins."""

from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Past, Phase, RetuneMemory, Scene, advance
from plimsoll.control.retune.allowed import refusal
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.control.situation import ReplicaState
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, World, in_phase, judging, replica

HOUR = 3600.0
SIX = Restarts(restarts_per_day=6)
SLOWER = replace(GOOD, itl=1.3 * OLD.itl)


def test_a_days_budget_of_retunes_holds():
    rules = Restarts(retunes_per_day=1, retry_after_seconds=1)
    world = World(change=SLOWER, rules=rules).run(20 * HOUR)
    assert len(world.memory.past) == 1
    assert "1 are allowed" in world.why_not


def past(place: int, *, hours: float, outcome: Phase = Phase.FAILED, tried: bool = True) -> Past:
    at = World().now - hours * HOUR
    return Past(
        id=f"maxSequences-{place}", setting="maxSequences", before="32", after=str(place), symptom=Symptom.PREEMPTION,
        outcome=outcome, began=at - 60, ended=at, reason="slower", tried=tried,
    )  # fmt: skip


@pytest.mark.parametrize(("made", "rules", "kept"), [
    ([{"hours": 0.1}] * 60, Restarts(retunes_per_day=60), 61),
    ([{"hours": 0.1}] * 300, Restarts(retunes_per_day=100), 100),
    ([{"hours": 150}] * 40, Restarts(retry_after_seconds=7 * 86400), 41),
    ([{"hours": 150}] * 40, Restarts(), 20),
    ([{"hours": 30, "outcome": Phase.DONE}] * 40, Restarts(reverse_after_seconds=2 * 86400), 41),
    ([{"hours": 30, "outcome": Phase.DONE}] * 40, Restarts(retry_after_seconds=2 * 86400), 20),
    ([{"hours": 0.1, "tried": False}] * 40, Restarts(), 20),
])  # fmt: skip
def test_of_what_was_tried_as_much_is_remembered_as_still_counts_and_the_last_twenty(made, rules, kept):
    world = World(rules=rules)
    memory = RetuneMemory(past=tuple(past(place, **each) for place, each in enumerate(made)))
    step = in_phase(Phase.ROLLING_BACK, World(change=SLOWER)).memory.step
    assert step is not None
    gone = replace(world.scene(), changed=None)
    after = advance(gone, replace(memory, step=replace(step, spec=world.spec, since=world.now))).memory
    assert after.step is None
    assert len(after.past) == kept
    assert after.past[1:] == memory.past[: kept - 1]


@pytest.mark.parametrize(("allowed", "reason"), [(60, "60 are allowed"), (61, "")])
def test_a_day_may_allow_more_retunes_than_people_are_shown(allowed, reason):
    memory = RetuneMemory(past=tuple(past(place, hours=0.1) for place in range(60)))
    found = refusal(World(rules=Restarts(retunes_per_day=allowed)).scene(), memory, Symptom.PREEMPTION)
    assert reason in ("" if found is None else found.message)
    assert (found is None) is not bool(reason)


def moved(world):
    return len(world.memory.restarts)


def test_restarts_without_a_surge_are_counted_there_and_back():
    world = World(replicas=3, free=0)
    while world.memory.step is None or world.memory.step.rolled < 2:
        world.tick()
    assert moved(world) == 2
    world.change = SLOWER
    world.run(HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert moved(world) == 4


def test_a_roll_that_the_days_restarts_do_not_suffice_for_does_not_begin():
    world = World(replicas=8, free=0, rules=SIX).run(3 * HOUR)
    assert (world.memory.step, moved(world)) == (None, 0)
    assert "16 restarts" in world.why_not
    assert "allows 6 a day" in world.why_not


@pytest.mark.parametrize("replicas", [5, 8])
def test_all_replicas_of_a_full_cluster_at_its_most_are_retuned_one_by_one_and_one_that_is_bad_goes_back(
    replicas: int,
) -> None:
    world, late = (World(replicas=replicas, free=0, wanted=replicas + 2.0, wants_more=True) for _ in range(2))
    world.run(4 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE, world.why_not
    assert moved(world) == replicas
    in_phase(Phase.VERIFYING, late).change = SLOWER
    late.run(HOUR)
    assert late.memory.past[0].outcome is Phase.FAILED
    assert moved(late) == 2 * replicas


class MissedNow(World):
    """While it is rolled out, a pod without the change is always just being made anew."""

    def scene(self) -> Scene:
        scene, step = super().scene(), self.memory.step
        if step is None or step.phase is not Phase.ROLLING:
            return scene
        return replace(scene, serving=replace(scene.serving, replicas=scene.serving.replicas[1:]))


def test_a_replica_that_is_missed_at_a_look_ends_no_roll_that_had_room_when_it_began():
    world = MissedNow(replicas=8, free=0)
    world.stored = codec.encode(RetuneMemory(restarts=(world.now,) * 8))
    world.run(4 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


def test_a_roll_that_has_become_larger_than_the_days_restarts_goes_back_within_them():
    world = judging(World(replicas=3, free=0, rules=SIX))
    world.replicas = 8
    world.run(3 * HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert "restarts" in world.memory.past[0].reason
    assert 2 <= moved(world) <= 6


def going_back(wanted: int = 3):
    """All replicas have the change, one of them came first, and now they go back."""
    world = in_phase(Phase.VERIFYING, World(change=GOOD, free=1, replicas=wanted)).run(300)
    world.consent = replace(world.consent, mode="off")
    world.tick()
    memory, scene = world.memory, world.scene()
    assert memory.step is not None
    assert (memory.step.phase, memory.step.surge, memory.restarts) == (Phase.ROLLING_BACK, True, ())

    def look(memory, *, changed: int, serving: int):
        with_it = tuple(replica(f"new-{i}", ReplicaState.READY, scene.now - 900) for i in range(changed))
        without = tuple(replica(f"old-{i}", ReplicaState.READY, scene.now) for i in range(serving))
        seen = replace(
            scene,
            now=scene.now + 60,
            changed=replace(scene.serving, replicas=with_it) if with_it else None,
            serving=replace(scene.serving, replicas=without, wanted=wanted),
        )
        return advance(seen, codec.decode(RetuneMemory, codec.encode(memory))).memory

    return memory, look


def test_a_surged_way_back_that_finds_no_room_counts_each_replica_that_went_first():
    memory, look = going_back()
    memory = look(memory, changed=3, serving=0)
    assert memory.restarts == (), "room for one more is waited for"
    memory = look(memory, changed=2, serving=0)
    memory = look(memory, changed=2, serving=0)
    assert len(memory.restarts) == 1, "each is counted once"
    memory = look(memory, changed=2, serving=1)
    memory = look(memory, changed=1, serving=1)
    memory = look(memory, changed=0, serving=2)
    assert memory.step is None
    assert len(memory.restarts) == 3


def test_a_surged_way_back_for_which_others_come_first_is_no_restart():
    memory, look = going_back()
    for changed, serving in ((3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3)):
        memory = look(memory, changed=changed, serving=serving)
    assert memory.step is None
    assert memory.restarts == ()
