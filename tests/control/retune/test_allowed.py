"""What may be retuned, and when: consent, what was tried before, budgets and windows."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.retune import Consent, Knobs, Past, Phase, RetuneMemory
from plimsoll.control.retune.allowed import barred, refusal, remembered
from plimsoll.control.retune.scene import KNOBS
from plimsoll.control.retune.steps import UNKNOWN, Requests
from plimsoll.control.retune.symptoms import Symptom
from tests.control.retune import world as played
from tests.control.retune.world import OLD, OUTPUTS, PROMPTS, World, said


def test_consent_is_read_from_the_resource():
    allowed = tuple(KNOBS)
    tuning = Tuning.model_validate({"allow": allowed, "mode": "dryRun", "floors": {"maxSequences": 4}})
    assert Consent.of(tuning) == Consent(mode="dryRun", allowed=allowed, least_sequences=4)
    assert Consent.of(Tuning.model_validate({})) == Consent()
    assert Consent.of(Tuning.model_validate({"allow": []})).allowed == ()


def test_what_a_person_has_set_is_fixed_until_it_is_named_as_what_may_be_retuned():
    assert Consent.of(Tuning(), fixed=("maxSequences",)).fixed == ("maxSequences",)
    named = Tuning.model_validate({"allow": ["maxSequences"]})
    assert Consent.of(named, fixed=("maxSequences",)).fixed == ()


@pytest.mark.parametrize(
    ("replicas", "free", "wanted", "disruption", "waits"),
    [
        (2, 0, 1.6, False, True),
        (2, 0, 1.2, False, False),
        (2, 0, 1.6, True, False),
        (2, 1, 1.6, False, False),
        (6, 0, 6.0, False, False),
        (6, 0, 6.5, False, True),
        (2, 0, None, False, False),
    ],
)
def test_none_restarts_in_its_place_where_the_others_would_drown_meanwhile(
    replicas, free, wanted, disruption, waits
):
    rules = Restarts(restarts_per_day=100)
    world = World(replicas=replicas, free=free, rules=rules, consent=Consent(disruption=disruption))
    no = refusal(replace(world.scene(), wanted=wanted), RetuneMemory(), Symptom.CAPPED)
    assert (no is not None and "more than the others carry" in no.message) is waits, no


@pytest.mark.parametrize(
    ("replicas", "beside", "wanted", "no"),
    [
        (4, 3.0, 5.0, None),
        (4, 3.0, 7.6, "more than the others carry"),
        (4, 0.0, 5.0, "more than the others carry"),
        (1, 1.0, 1.2, None),
        (1, 0.8, 1.2, "more than the others carry"),
        (1, 2.0, None, None),
        (1, 0.0, None, "the only replica"),
    ],
)
def test_what_the_plan_s_other_sets_carry_is_left_too(replicas, beside, wanted, no):
    world = World(replicas=replicas, free=0, rules=Restarts(restarts_per_day=100))
    found = refusal(replace(world.scene(), wanted=wanted, beside=beside), RetuneMemory(), Symptom.CAPPED)
    assert (found is None) is (no is None), found
    assert found is None or (no is not None and no in found.message)


def test_consent_can_be_given_to_what_is_retuned_and_to_nothing_else():
    assert Tuning.model_json_schema(by_alias=True)["properties"]["allow"]["items"]["enum"] == list(KNOBS)
    with pytest.raises(ValidationError):
        Tuning.model_validate({"allow": ["tensor"]})


def past(outcome=Phase.FAILED, symptom=Symptom.PREEMPTION, hours=1.0, tried=True, requests=UNKNOWN):
    at = World().now - hours * 3600
    return Past(
        id="x", setting="maxSequences", before="32", after="16", symptom=symptom, outcome=outcome, began=at,
        ended=at, reason="no gain", tried=tried, requests=requests,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "symptom", "is_barred"),
    [
        (past(), Symptom.PREEMPTION, True),
        (past(), Symptom.STORM, True),
        (past(symptom=Symptom.STORM), Symptom.PREEMPTION, True),
        (past(), Symptom.SLOW_TOKENS, False),
        (past(hours=25), Symptom.PREEMPTION, False),
        (past(tried=False), Symptom.PREEMPTION, False),
        (past(outcome=Phase.DONE), Symptom.PREEMPTION, False),
        (past(outcome=Phase.DONE), Symptom.CAPPED, True),
        (past(outcome=Phase.DONE, hours=7), Symptom.CAPPED, False),
    ],
)
def test_failures_are_remembered_and_nothing_is_turned_back_at_once(entry, symptom, is_barred):
    assert bool(barred(World().scene(), RetuneMemory(past=(entry,)), symptom)) is is_barred


@pytest.mark.parametrize(
    ("prompt", "output", "is_barred"),
    [
        (PROMPTS.p50, OUTPUTS.p50, True),
        (1.9 * PROMPTS.p50, 0.6 * OUTPUTS.p50, True),
        (2.1 * PROMPTS.p50, OUTPUTS.p50, False),
        (PROMPTS.p50, 0.4 * OUTPUTS.p50, False),
        (None, OUTPUTS.p50, True),
        (None, None, True),
    ],
)
def test_a_failure_is_remembered_of_requests_of_such_lengths_and_of_others_nothing_is_known(
    prompt, output, is_barred
):
    entry = past(requests=Requests(prompt=prompt, output=output))
    assert bool(barred(World().scene(), RetuneMemory(past=(entry,)), Symptom.PREEMPTION)) is is_barred


def test_what_failed_is_tried_again_the_same_day_once_requests_are_others_and_not_before(monkeypatch):
    world = World(change=OLD, rules=Restarts(retunes_per_day=9), consent=Consent(allowed=("maxSequences",)))
    world.run(4 * 3600)
    assert [one.outcome for one in world.memory.past] == [Phase.FAILED]
    assert world.memory.past[0].requests == Requests(prompt=PROMPTS.p50, output=OUTPUTS.p50)
    longer = replace(PROMPTS, p50=3 * PROMPTS.p50)
    monkeypatch.setattr(played, "PROMPTS", longer)
    world.run(4 * 3600)
    assert [one.requests.prompt for one in world.memory.past] == [longer.p50, PROMPTS.p50]


def changes(*newest_first: tuple[str, str, Symptom]) -> RetuneMemory:
    """Of maxSequences, all done, long ago."""
    entries = (
        replace(
            past(outcome=Phase.DONE, symptom=symptom, hours=30.0 + i), id=f"m-{i}", before=before, after=after
        )
        for i, (before, after, symptom) in enumerate(newest_first)
    )
    return RetuneMemory(past=tuple(entries))


@pytest.mark.parametrize(
    ("newest_first", "kept"),
    [
        ([("32", "16", Symptom.SLOW_TOKENS)], True),
        ([("32", "16", Symptom.PREEMPTION)], False),
        ([("24", "16", Symptom.PREEMPTION), ("32", "24", Symptom.SLOW_TOKENS)], True),
        ([("24", "16", Symptom.RELAXED), ("32", "24", Symptom.SLOW_TOKENS)], False),
        # A plan that was made anew came between, or since.
        ([("64", "16", Symptom.PREEMPTION), ("32", "24", Symptom.SLOW_TOKENS)], False),
        ([("32", "24", Symptom.SLOW_TOKENS)], False),
    ],
)
def test_a_calm_pool_gives_nothing_back_that_was_taken_for_the_gaps_between_tokens(newest_first, kept):
    memory, scene = changes(*newest_first), World(knobs=Knobs(max_sequences=16)).scene()
    assert bool(barred(scene, memory, Symptom.RELAXED)) is kept
    assert not barred(scene, memory, Symptom.CAPPED), "a queue that waits beside short gaps does"


@pytest.mark.parametrize("later", [19, 20, 90])
def test_what_keeps_gaps_short_is_remembered_however_many_retunes_of_other_settings_come_after_it(later):
    scene = World(knobs=Knobs(max_sequences=16)).scene()
    for_gaps = changes(("24", "16", Symptom.PREEMPTION), ("32", "24", Symptom.SLOW_TOKENS)).past
    others = tuple(replace(past(hours=48.0), id=f"w-{i}", setting="watermark") for i in range(later))
    memory = RetuneMemory(past=(*others, *for_gaps))
    memory = replace(memory, past=remembered(scene, memory))
    assert "maxSequences" in barred(scene, memory, Symptom.RELAXED)
    assert len(memory.past) <= 22


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"data": False}, "MetricsMissing"),
        ({"busy": "a rollout"}, "Busy"),
        ({"fleet_retuning": 8.0}, "FleetBusy"),
        ({"fleet_retuning": 6.0}, None),
        ({"restarts": Restarts(retunes_per_day=0)}, "BudgetSpent"),
        ({"free_replicas": 0, "restarts": Restarts(restarts_per_day=1)}, "BudgetTooSmall"),
        ({"signals": said(replace(OLD, rate=0.01), 3, World().now)}, "TooLittleTraffic"),
    ],
)
def test_each_budget_and_window_can_hold_a_retune_back(changed, reason):
    no = refusal(replace(World().scene(), **changed), RetuneMemory(), Symptom.STORM)
    assert (no.reason if no else None) == reason


@pytest.mark.parametrize(
    ("replicas", "free", "allowed", "used", "reason"),
    [
        (3, 0, 6, 0, None),
        (3, 0, 6, 1, "BudgetSpent"),
        (4, 0, 6, 0, "BudgetTooSmall"),
        (4, 0, 8, 0, None),
        (4, 0, 8, 1, "BudgetSpent"),
        (1, 0, 0, 0, "BudgetTooSmall"),
        (2, 0, None, 2, None),
        (2, 0, None, 3, "BudgetSpent"),
        (8, 0, None, 8, None),  # after one that stayed
        (8, 0, None, 9, "BudgetSpent"),
        (8, 1, 6, 6, None),  # with a further one before each that goes, none is a restart
    ],
)
def test_where_none_can_come_first_the_whole_way_and_back_has_to_fit_into_the_days_restarts(
    replicas, free, allowed, used, reason
):
    rules = Restarts(restarts_per_day=allowed)
    world = World(replicas=replicas, free=free, rules=rules, consent=Consent(disruption=True))
    no = refusal(world.scene(), RetuneMemory(restarts=(world.now - 60,) * used), Symptom.PREEMPTION)
    assert (no.reason if no else None) == reason


def test_a_budget_that_no_day_has_room_in_is_told_with_the_setting_and_the_number_that_would_do():
    world = World(replicas=4, free=0, rules=Restarts(restarts_per_day=6))
    no = refusal(world.scene(), RetuneMemory(), Symptom.PREEMPTION)
    assert no is not None
    assert no.message == (
        "all replicas there and, if need be, back are 8 restarts, and the admin's restarts.restartsPerDay allows 6 a day: 8 would "
        "do, or a free GPU for one more replica"
    )


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("replicas", range(1, 9))
def test_a_full_pool_is_retuned_by_default_where_no_more_replicas_can_be_had_and_the_others_can_do_without_one(
    replicas, scaled, free
):
    """At their most, and the load asks for one more than that; or their number is fixed."""
    world = World(replicas=replicas, free=free, wanted=replicas + 1.0 if scaled else None, wants_more=scaled)
    needs_one = not free and replicas <= (4 if scaled else 1)
    for symptom in (Symptom.STORM, Symptom.PREEMPTION):
        no = refusal(world.scene(), RetuneMemory(), symptom)
        assert (no.reason if no else None) == ("WouldDisrupt" if needs_one else None), no
        consent = Consent(disruption=True)
        assert refusal(replace(world.scene(), consent=consent), RetuneMemory(), symptom) is None


@pytest.mark.parametrize(
    ("replicas", "wanted", "times"), [(2, 3.0, "2 "), (3, 9.0, "1.5 "), (4, 5.0, "1.33 ")]
)
def test_where_the_others_would_get_more_than_a_quarter_more_it_is_told_what_helps(replicas, wanted, times):
    world = World(replicas=replicas, free=0, wanted=wanted)
    no = refusal(world.scene(), RetuneMemory(), Symptom.PREEMPTION)
    assert no is not None
    assert f"{times}times as many as are left" in no.message
    assert "spec.tuning.allowDisruption" in no.message
    beside = replace(world.scene(), beside=5.0 - replicas)
    assert refusal(beside, RetuneMemory(), Symptom.PREEMPTION) is None


@pytest.mark.parametrize(
    ("symptom", "changed"),
    [
        (Symptom.CAPPED, {}),
        (Symptom.SLOW_TOKENS, {}),
        (Symptom.LATE_FIRST, {}),
        (Symptom.PREEMPTION, {"more_replicas": True}),
    ],
)
def test_no_replica_is_spared_for_what_replicas_or_the_time_of_day_may_cure(symptom, changed):
    world = World(replicas=5, free=0, wanted=6.0)
    no = refusal(replace(world.scene(), **changed), RetuneMemory(), symptom)
    assert no is not None
    assert no.reason == "WouldDisrupt"
