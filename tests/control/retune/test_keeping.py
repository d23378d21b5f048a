"""A change that stays, and whose engines end after that: it goes out of the plan again, unless it is not to blame or time is over."""

from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.record import acts_of
from plimsoll.control.retune import Phase, RetuneMemory, abandoned, advance, effect_of
from plimsoll.control.retune.allowed import barred
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.control.situation import ReplicaState
from plimsoll.planning import codec
from plimsoll.status.live import retuning
from tests.control.retune.world import GOOD, World, in_phase, replica

HOUR = 3600.0
FEW_PREEMPTED = replace(GOOD, preempted=0.02)


def kept(**more) -> World:
    """The change is done, part of the plan, and good so far."""
    world = in_phase(Phase.DONE, World(change=FEW_PREEMPTED, **more))
    world.run(600)
    assert world.memory.step is None
    assert world.memory.kept is not None
    assert world.knobs.max_sequences < 32
    return world


def stays(world: World) -> bool:
    world.run(600)
    return world.knobs.max_sequences < 32 and world.memory.past[0].outcome is Phase.DONE


def crashes(world: World) -> None:
    world.crashed = 1


def never_starts(world: World) -> None:
    world.fails = replica("old-9", ReplicaState.FAILED, world.now)


@pytest.mark.parametrize("happens", [crashes, never_starts])
@pytest.mark.parametrize("hours", [0.0, 5.0])
def test_engines_that_end_with_a_change_that_was_to_stay_put_the_setting_back_and_that_is_told(
    happens, hours
):
    world = kept().run(hours * HOUR)
    after = str(world.knobs.max_sequences)
    (done,) = world.memory.past
    happens(world)
    world.run(120)
    assert (world.knobs.max_sequences, world.memory.step, world.memory.kept) == (32, None, None)
    (past,) = world.memory.past
    assert (past.id, past.outcome, past.before, past.after) == (done.id, Phase.FAILED, "32", after)
    assert "with the change" in past.reason
    assert "minutes after it was done" in past.reason
    assert (past.requests, world.memory.failures) == (done.requests, 1)
    back, over = world.events[-2:]
    assert (back.reason, back.warning) == ("RetuneRollingBack", True)
    assert f"maxSequences goes back to 32, by a rollout: {past.reason}" == back.message
    assert (over.reason, over.warning) == ("RetuneFailed", True)
    assert over.message.startswith("maxSequences 32 stands again in the plan")
    told = retuning(world.memory)
    assert told is not None
    assert (told.status, told.reason) == ("False", "RolledBack")


def test_what_goes_back_late_is_not_tried_again_for_a_day_and_counts_for_the_pause():
    world = kept(rules=Restarts(failures_until_pause=1))
    crashes(world)
    world.run(120)
    assert world.memory.paused_at is not None
    assert "maxSequences" in barred(world.scene(), world.memory, Symptom.PREEMPTION)


def test_what_goes_back_late_may_be_tried_again_once_prompts_are_of_another_length():
    world = kept()
    crashes(world)
    world.run(120)
    (past,) = (one for one in world.memory.past if one.outcome is Phase.FAILED)
    assert (past.requests.prompt, past.requests.output) == (250, 440)


def test_time_is_over_once_the_setting_may_be_turned_the_other_way_anyhow():
    world = kept(rules=Restarts(reverse_after_seconds=7200)).run(2 * HOUR)
    assert world.memory.kept is None
    crashes(world)
    assert stays(world)


@pytest.mark.parametrize("state", [ReplicaState.FAILED, ReplicaState.UNSCHEDULABLE, ReplicaState.STARTING])
def test_a_replica_that_lost_its_node_or_its_image_or_was_evicted_says_nothing_of_the_change(state):
    world = kept()
    lost = replica("old-9", state, world.now)
    world.fails = replace(lost, outside=state is ReplicaState.FAILED)
    assert stays(world)


@pytest.mark.parametrize("edited", ["spec", "serves"])
def test_after_an_edit_nobody_knows_whether_it_is_the_change(edited):
    world = kept()
    setattr(world, edited, "chat-0009")
    crashes(world)
    assert stays(world)
    assert world.memory.kept is None


@pytest.mark.parametrize("mode", ["off", "dryRun"])
def test_what_a_person_has_turned_off_takes_nothing_back(mode):
    world = kept()
    world.consent = replace(world.consent, mode=mode)
    crashes(world)
    assert stays(world)


def test_another_set_that_is_looked_at_is_not_blamed_and_the_one_with_the_change_is_when_it_is_looked_at_again():
    world = kept(kind="tp1 on H100", about="tp1 on H100")
    scene, memory = world.scene(), world.memory
    crashed = replace(
        scene.serving, replicas=tuple(replace(one, restarts=2) for one in scene.serving.replicas)
    )
    other = replace(scene, kind="tp1 on A100", about="tp1 on A100", serving=crashed, serves="chat-a100")
    memory = advance(other, memory).memory
    assert memory.step is None
    assert memory.kept is not None
    turned = advance(replace(scene, serving=crashed), memory)
    assert turned.memory.step is not None
    assert turned.memory.past[0].reason.startswith("tp1 on H100: engines with the change ended")


@pytest.mark.parametrize("stays_s", [0, 300])
def test_who_dies_before_it_is_seen_or_before_it_is_in_the_plan_finds_it_written_down(stays_s):
    """As it is done and not yet part of the plan, or when it is; and then once more while it goes out again."""
    died: list[str] = []
    world = in_phase(Phase.DONE, World(change=FEW_PREEMPTED)).run(stays_s)
    world.crashed = 1

    def dies(_, now):
        died.append(now)
        return len(died) <= 4 or (now == "Done" and died.count("Done") < 8)

    world.dies = dies
    world.run(900)
    assert len(died) > 4
    assert world.knobs.max_sequences == 32
    assert world.memory.past[0].outcome is Phase.FAILED


def test_the_way_back_is_asked_for_of_all_replicas_as_a_part_of_the_plan_and_only_after_it_is_stored():
    world = kept(free=0)
    made = len(world.memory.restarts)
    crashes(world)
    turned = advance(replace(world.scene(), scaled=True), world.memory)
    effect = effect_of(codec.decode(RetuneMemory, codec.encode(turned.memory)))
    assert effect is not None
    assert (effect.set, effect.setting, effect.value, effect.replicas) == ("set-a", "maxSequences", "32", 3)
    assert effect.adopt
    assert len(turned.memory.restarts) == made + 3, "each is made anew, and none comes first"
    (act,) = acts_of(world.now, world.memory, turned)
    assert (act.reason, act.before, act.after) == ("RetuneRollingBack", str(world.knobs.max_sequences), "32")


def test_a_plan_made_anew_at_that_moment_ends_the_way_back_as_any_step():
    world = kept()
    crashes(world)
    memory = advance(world.scene(), world.memory).memory
    assert memory.step is not None
    assert advance(replace(world.scene(), spec="the plan was made anew"), memory).memory.step is None


def test_where_nobody_looks_any_more_nothing_is_kept_in_mind():
    world = kept()
    assert abandoned(world.memory, world.now, until_pause=3).memory.kept is None


def test_a_change_that_stays_and_then_ends_engines_day_after_day_comes_to_a_pause():
    world = World(change=FEW_PREEMPTED)
    for failures in (1, 2, 3):
        while world.memory.kept is None or world.memory.step is not None:
            world.tick()
        assert world.memory.failures == 0, "it was done, and has gone well so far"
        crashes(world)
        world.run(600)
        assert world.memory.failures == failures
        assert (world.memory.paused_at is not None) is (failures == 3)
        world.run(25 * HOUR)
    assert [past.outcome for past in world.memory.past] == 3 * [Phase.FAILED]


def test_whoever_clears_failures_clears_those_before_a_change_that_stays_too():
    world = kept()
    memory = replace(world.memory, paused_at=world.now - 60, failures_before=2)
    cleared = advance(replace(world.scene(), cleared_at=world.now), memory).memory
    assert (cleared.failures, cleared.failures_before) == (0, 0)
