"""A retune from what asks for it to what stays: good rungs stay, bad ones go, at whatever step they show and whoever dies."""

from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Knobs, Phase, RetuneMemory, advance, effect_of
from tests.control.retune.world import GOOD, OLD, START_S, TICK, Behaviour, World, judging

HOUR = 3600.0
ALL = ["Idle", "Planned", "Canary", "Judging", "Rolling", "Verifying", "Done"]
BAD = {
    "out of memory": Behaviour(starts=False),
    "slower tokens": replace(GOOD, itl=1.3 * OLD.itl),
    "a longer gap": replace(GOOD, gap=2 * OLD.gap),
    "no gain": OLD,
    "no traffic": replace(GOOD, rate=0.0),
    "errors": replace(GOOD, errors=0.05),
    "longer answers": replace(GOOD, e2e=1.1 * OLD.e2e),
    "less output": replace(GOOD, tokens=0.8 * OLD.tokens, waiting=5),
    "first token beyond what is promised": replace(GOOD, ttft=3.0),
}


def test_a_good_rung_goes_through_every_state_and_stays():
    world = World().run(3 * HOUR)
    assert world.phases[: len(ALL)] == ALL
    (past,) = world.memory.past
    assert (past.outcome, past.setting) == (Phase.DONE, "maxSequences")
    assert world.knobs.max_sequences == int(past.after) < 32
    assert not world.in_flight


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_rung_ends_at_the_old_settings(name):
    world = World(change=BAD[name]).run(2 * HOUR)
    assert world.memory.past, world.why_not
    assert world.memory.past[0].outcome is Phase.FAILED
    assert world.knobs.max_sequences == 32
    assert world.at_old_settings
    assert world.most_changed == 1, "no second replica was given a change that was not good"


@pytest.mark.parametrize("phase", ["Canary", "Judging", "Rolling", "Verifying"])
@pytest.mark.parametrize("name", ["out of memory", "slower tokens", "no gain"])
def test_a_rung_that_turns_bad_late_is_undone_from_every_state(phase, name):
    world = World()
    for _ in range(400):
        world.tick()
        step = world.memory.step
        if step is not None and step.phase.value == phase:
            world.change = BAD[name]
        if world.memory.past:
            break
    assert world.memory.past[0].outcome is Phase.FAILED
    world.run(60)
    assert world.at_old_settings
    assert world.knobs.max_sequences == 32


@pytest.mark.parametrize("phase", ["Planned", "Canary", "Judging", "Rolling", "Verifying", "Done"])
def test_who_dies_in_any_state_resumes_there(phase):
    died: list[str] = []

    def dies(_, now):
        if now == phase and len(died) < 4:
            died.append(now)
            return True
        return False

    world = World(dies=dies).run(3 * HOUR)
    assert len(died) == 4
    assert world.memory.past[0].outcome is Phase.DONE
    assert world.knobs.max_sequences < 32


@pytest.mark.parametrize("phase", ["RollingBack", "Canary", "Judging"])
def test_who_dies_on_the_way_back_comes_back(phase):
    died: list[str] = []

    def dies(_, now):
        died.append(now)
        return now == phase and died.count(phase) < 4

    world = World(change=BAD["slower tokens"], dies=dies).run(3 * HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert world.at_old_settings


def test_nothing_is_touched_before_it_is_written_down():
    world = World()
    while world.memory.step is None:
        world.tick()
        assert world.asked is None
    assert world.memory.step.phase is Phase.PLANNED
    assert effect_of(world.memory) is None


@pytest.mark.parametrize("phase", ["Planned", "Canary", "Judging", "Rolling", "Verifying"])
def test_an_edit_of_the_spec_wins(phase):
    world = World()
    while world.memory.step is None or world.memory.step.phase.value != phase:
        world.tick()
    world.spec = "spec-2"
    world.tick()
    assert not world.in_flight
    assert (world.memory.past[0].tried, world.memory.failures) == (False, 0)
    assert effect_of(world.memory) is None


def test_what_was_found_good_and_is_edited_away_before_it_is_part_of_the_plan_is_over():
    world = World()
    while world.memory.step is None or world.memory.step.phase is not Phase.DONE:
        world.tick()
    turned = advance(replace(world.scene(), spec="spec-2"), world.memory)
    assert turned.memory.step is None


def test_turning_tuning_off_undoes_what_is_in_flight():
    world = World()
    while world.memory.step is None or world.memory.step.phase is not Phase.ROLLING:
        world.tick()
    world.consent = Consent(mode="off")
    world.run(10 * 60)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert world.at_old_settings


def test_a_dry_run_says_what_it_would_do_once_and_does_nothing():
    world = World(consent=Consent(mode="dryRun")).run(2 * HOUR)
    assert [event.reason for event in world.events] == ["RetuneSuggested"]
    assert world.memory.suggested is not None
    assert world.asked is None


def test_a_size_that_wavers_with_the_load_is_one_suggestion_a_day():
    world = World(consent=Consent(mode="dryRun"))
    for place in range(100):
        world.old = replace(OLD, preempted=0.25 + 0.02 * (place % 4), rate=2.0 + 0.1 * (place % 3))
        world.run(300)
    assert [event.reason for event in world.events] == ["RetuneSuggested"]


def test_off_looks_away():
    world = World(consent=Consent(mode="off")).run(HOUR)
    assert (world.events, world.memory.since) == ([], {})


def test_three_failures_pause_until_a_person_clears_them():
    rules = Restarts(retunes_per_day=100, retry_after_seconds=1)
    world = World(change=BAD["slower tokens"], rules=rules).run(12 * HOUR)
    assert world.memory.failures == 3
    assert world.memory.paused_at is not None
    assert "person" in world.why_not
    assert advance(
        replace(world.scene(), cleared_at=world.memory.paused_at - 60), world.memory
    ).memory.paused_at, "what was cleared before is not this"
    scene = replace(world.scene(), cleared_at=world.now)
    turned = advance(scene, world.memory)
    assert (turned.memory.paused_at, turned.memory.failures) == (None, 0)


@pytest.mark.parametrize(
    ("rate", "share", "minutes"),
    [
        (2.0, 0.3, 21),  # only the second ten minutes count
        (0.15, 0.3, 34),  # 200 requests of a full share take 22 minutes
        (0.1, 0.75, 38),  # 45 requests instead of 60 are chance: they count
    ],
)
def test_minutes_in_which_a_canary_is_given_less_do_not_count(rate, share, minutes):
    world = judging(World(old=replace(OLD, rate=rate), change=replace(GOOD, rate=share * rate)))
    began = world.now
    world.run(600)
    world.change = replace(GOOD, rate=rate)
    while world.memory.step is not None and world.memory.step.phase is Phase.JUDGING:
        world.tick()
    assert world.now - began <= minutes * 60
    world.run(2 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE
    assert world.knobs.max_sequences < 32


@pytest.mark.parametrize("rate", [0.7 * OLD.rate, 0.02 * OLD.rate])
def test_canaries_that_are_given_too_few_requests_are_no_failures(rate):
    rules = Restarts(retunes_per_day=100, retry_after_seconds=1)
    world = World(change=replace(GOOD, rate=rate), rules=rules).run(12 * HOUR)
    assert len(world.memory.past) > 3
    assert (world.memory.failures, world.memory.paused_at) == (0, None)
    assert "given too few requests" in world.memory.past[0].reason
    assert world.knobs.max_sequences == 32
    once = World(change=replace(GOOD, rate=rate), consent=Consent(allowed=("maxSequences",))).run(20 * HOUR)
    assert len(once.memory.past) == 1, "tried once a day, as any other"


@pytest.mark.parametrize("alone", [False, True], ids=["beside others", "in place of the only one"])
def test_a_canary_whose_requests_fail_goes_back_before_many_have_and_is_a_failure(alone):
    fails = replace(GOOD, rate=0.02 * OLD.rate, errors=49.0)
    world = World(change=fails)
    if alone:
        world = World(change=fails, replicas=1, free=0, consent=Consent(disruption=True))
    judging(world)
    began = world.now
    world.run(300)
    assert "requests fail with the change" in world.memory.past[0].reason
    assert (world.memory.past[0].outcome, world.memory.failures) == (Phase.FAILED, 1)
    assert world.memory.past[0].ended - began <= 240
    few = judging(World(change=replace(GOOD, errors=0.004))).run(2 * HOUR)
    assert few.memory.past[0].outcome is Phase.DONE, "chance, and no more than may be"


def test_a_roll_that_goes_back_for_want_of_restarts_says_nothing_of_the_change():
    world = judging(World(replicas=3, free=0, rules=Restarts(restarts_per_day=6)))
    world.replicas = 5
    world.run(3 * HOUR)
    past = world.memory.past[0]
    assert (past.outcome, world.memory.failures) == (Phase.FAILED, 0)
    assert "too few restarts are left for all" in past.reason


def test_a_canary_that_is_given_less_and_then_breaks_is_a_failure():
    world = judging(World(change=replace(GOOD, rate=0.3 * OLD.rate))).run(900)
    assert world.memory.step is not None
    assert world.memory.step.starved
    world.change = Behaviour(starts=False)
    world.run(300)
    assert (world.memory.past[0].outcome, world.memory.failures) == (Phase.FAILED, 1)


def test_a_failed_rung_is_not_tried_again_for_a_day_and_the_next_one_is():
    world = World(change=BAD["slower tokens"]).run(4 * HOUR)
    tried = [past.setting for past in reversed(world.memory.past)]
    assert tried == ["maxSequences"] or tried[0] != tried[1]
    again = World(change=BAD["slower tokens"], consent=Consent(allowed=("maxSequences",))).run(20 * HOUR)
    assert len(again.memory.past) == 1
    assert "was tried" in again.why_not


def test_the_only_replica_is_restarted_by_consent_only():
    alone = World(replicas=1, free=0).run(HOUR)
    assert alone.memory.step is None
    assert "allowDisruption" in alone.why_not
    agreed = World(replicas=1, free=0, consent=Consent(disruption=True)).run(3 * HOUR)
    assert agreed.memory.past[0].outcome is Phase.DONE


def test_one_replica_with_a_free_gpu_is_judged_beside_the_old_one():
    world = World(replicas=1, free=1).run(3 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE


@pytest.mark.parametrize(
    ("wanted", "to_be_had", "why"),
    [
        (True, True, "more replicas"),
        (True, False, ""),  # at scaling.max, or without a GPU
        (False, True, ""),  # the load asks for no more: they would never come
        (False, False, ""),
    ],
)
def test_more_replicas_come_before_a_restart_where_the_load_asks_for_them_and_they_can_be_had(
    wanted, to_be_had, why
):
    world = World(wants_more=wanted, more_replicas=to_be_had).run(300)
    assert (world.memory.step is None) is bool(why)
    assert why in world.why_not


@pytest.mark.parametrize("room", [True, False])
def test_after_a_step_up_a_restart_waits_until_it_has_shown_what_it_cures(room):
    world = World(more_replicas=room, scaled_at=World().now)
    world.run(START_S + 300 - 60)
    assert world.memory.step is None
    assert "just now" in world.why_not
    world.run(120)
    assert world.memory.step is not None


def test_in_a_tick_that_moves_replicas_no_retune_begins_and_none_takes_a_further_one():
    world = World(scaled=True).run(HOUR)
    assert (world.memory.step, world.asked) == (None, None)
    assert "at this tick" in world.why_not
    world.scaled = False
    while world.memory.step is None or world.memory.step.phase is not Phase.ROLLING:
        world.tick()
    rolled, world.scaled = world.memory.step.rolled, True
    world.run(HOUR)
    assert world.memory.step is not None
    assert world.memory.step.rolled == rolled
    world.change = BAD["out of memory"]
    world.run(120)
    assert world.memory.past[0].outcome is Phase.FAILED, "the way back waits for nothing"


@pytest.mark.parametrize("phase", ["Canary", "Judging", "Rolling", "Verifying"])
def test_an_engine_that_ends_with_the_change_and_serves_again_at_once_is_undone_at_once(phase):
    world = World()
    while world.memory.step is None or world.memory.step.phase.value != phase:
        world.tick()
    world.died = 1
    world.run(2 * TICK)
    assert any(event.reason == "RetuneRollingBack" for event in world.events)
    world.run(2 * TICK)
    (past,) = world.memory.past
    assert past.outcome is Phase.FAILED
    assert "ended" in past.reason
    assert world.at_old_settings


def test_a_symptom_must_last():
    world = World(old=replace(OLD, preempted=0.1)).run(240)
    assert world.memory.step is None
    assert "of 300 s" in world.why_not
    storm = World(old=replace(OLD, preempted=0.3)).run(180)
    assert storm.memory.step is None
    assert storm.run(60).memory.step is not None


def test_without_metrics_nothing_begins_and_what_was_begun_is_undone_in_time():
    world = World()
    scene = replace(world.scene(), data=False)
    assert advance(scene, RetuneMemory()).memory.step is None
    while world.memory.step is None or world.memory.step.phase is not Phase.JUDGING:
        world.tick()
    memory, now, phases = world.memory, world.now, set()
    for _ in range(60):
        now += 60
        memory = advance(replace(world.scene(), now=now, data=False), memory).memory
        phases.add(memory.step.phase if memory.step else None)
    assert phases == {Phase.JUDGING, Phase.ROLLING_BACK}


def test_what_is_no_longer_needed_is_released_after_a_day():
    world = World(rules=Restarts(retunes_per_day=5)).run(3 * HOUR)
    low = world.knobs.max_sequences
    world.old = world.change = Behaviour(preempted=0.0, kv=0.3, gap=0.5, itl=0.03)
    world.run(30 * HOUR)
    assert (low < 32, world.knobs.max_sequences) == (True, 32)
    assert world.memory.past[0].symptom == "relaxed"


def test_every_step_is_told():
    world = World().run(3 * HOUR)
    reasons = [event.reason for event in world.events]
    assert reasons == [
        "RetunePlanned",
        "RetuneCanary",
        "RetuneJudging",
        "RetuneRolling",
        "RetuneRolling",
        "RetuneVerifying",
        "RetuneDone",
    ]
    assert "passed over: watermark" in world.events[0].message


def test_an_engine_without_a_watermark_has_one_rung_less():
    world = World(has_watermark=False, consent=Consent(allowed=("watermark",))).run(HOUR)
    assert "this engine version has none" in world.why_not


CUT_IN = Behaviour(preempted=0.0, kv=0.4, itl=0.13, itl_median=0.02, gap=0.13)
MAY_CUT = Consent(allowed=("maxBatchedTokens",), least_batched=64)


def cut_in(change):
    return World(old=CUT_IN, change=change, consent=MAY_CUT, knobs=Knobs(max_sequences=64))


def test_steps_that_are_cut_smaller_stay_where_the_gaps_become_shorter_and_no_calm_day_takes_them_back():
    world = cut_in(replace(CUT_IN, itl=0.09, gap=0.09)).run(3 * HOUR)
    (past,) = world.memory.past
    assert (past.outcome, past.setting, past.symptom) == (Phase.DONE, "maxBatchedTokens", "prompts cut in")
    assert world.knobs.batched_tokens == int(past.after) < 397
    world.run(30 * HOUR)
    assert len(world.memory.past) == 1


@pytest.mark.parametrize(
    "change",
    [
        CUT_IN,
        replace(CUT_IN, itl=0.09, gap=0.09, ttft=3.0),
        replace(CUT_IN, itl=0.09, gap=0.09, tokens=0.8 * CUT_IN.tokens, waiting=5),
        Behaviour(starts=False),
    ],
    ids=["no gain", "first token beyond what is promised", "less output", "does not start"],
)
def test_steps_that_are_cut_smaller_for_nothing_are_made_as_large_as_before(change):
    world = cut_in(change).run(2 * HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert (world.knobs.batched_tokens, world.most_changed) == (2048, 1)
    assert world.at_old_settings
