"""How large a step is, which rung is taken, and what a judge says: figures against those that were measured."""

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.retune import Consent, Knobs, Past, Phase, RetuneMemory, sizing
from plimsoll.control.retune.allowed import barred, refusal
from plimsoll.control.retune.figures import Figures
from plimsoll.control.retune.judging import Answer, judge
from plimsoll.control.retune.ladder import choose
from plimsoll.control.retune.scene import KNOBS, applied, knobs_of
from plimsoll.control.retune.symptoms import Symptom, seen
from plimsoll.control.signals import Spread
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.planning.settings import EngineSettings
from tests.control.retune.world import OLD, PROMPTS, Behaviour, World, said

SETTINGS = EngineSettings(max_model_len=8192, max_num_seqs=32, max_num_batched_tokens=2048, utilization=0.9)
FIXED = Spread(p50=250, p95=250, p99=250, worst=250, mean=250, samples=5000)
MEASURED = sizing.Live(mean=571, deviation=284, output=500)
"""Prompts of 100 to 400 tokens, answers log-normal around 500: what the measured engine ran."""


def test_a_small_pool_holds_as_many_requests_as_were_measured_to_be_best():
    # Of 8,192 tokens: 12 at once left 46% of the preemptions, 10 left 5%, 8 none but lost a tenth of the output.
    assert sizing.sequences(8192, MEASURED) in {9, 10}


@pytest.mark.parametrize(("permille", "left"), [(50, 0.62), (100, 0.33), (200, 0.12)])
def test_a_watermark_leaves_the_share_of_preemptions_that_was_measured(permille, left):
    asked = sizing.watermark(8192, 128, MEASURED, preempted=1.0, aim=left, now_permille=0)
    assert asked == pytest.approx(permille, rel=0.35)


def test_a_large_pool_needs_a_small_watermark():
    asked = sizing.watermark(400_000, 16, MEASURED, preempted=0.2, aim=0.02, now_permille=0)
    assert asked <= 5


@given(st.floats(100, 1e6), st.floats(10, 1e4), st.floats(0, 1e4), st.floats(1.01, 4))
def test_a_larger_pool_never_holds_fewer_and_what_is_held_leaves_room(pool, mean, deviation, larger):
    live = sizing.Live(mean=mean, deviation=deviation, output=100)
    count = sizing.sequences(pool, live)
    assert sizing.sequences(larger * pool, live) >= count
    if count > 1:
        assert count * mean + sizing.SPREADS * deviation * count**0.5 <= pool * 1.0001


def test_lengths_become_what_a_live_request_holds():
    live = sizing.live_of(said(OLD, 2, 0.0))
    assert live is not None
    assert live.mean == pytest.approx(MEASURED.mean, rel=0.1)
    assert live.deviation == pytest.approx(MEASURED.deviation, rel=0.25)


BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, math.inf)


@pytest.mark.parametrize("odd", [0, 400], ids=["all alike", "a few of one token"])
@pytest.mark.parametrize(("median", "sigma"), [(400, 0.6), (150, 0.6), (700, 0.4), (300, 1.0)])
def test_lengths_are_as_wide_as_they_are_however_coarse_the_buckets(median, sigma, odd):
    known = NormalDist(math.log(median), sigma)
    counts = [odd + 1e4 * (known.cdf(math.log(bound)) if bound < math.inf else 1.0) for bound in BUCKETS]
    seen = Histogram(BUCKETS, tuple(counts), odd + 1e4 * median * math.exp(sigma**2 / 2))
    quiet = said(OLD, 2, 0.0)
    drawn = replace(quiet, latencies=replace(quiet.latencies, output=Spread.of(seen), prompt=FIXED))
    live = sizing.live_of(drawn)
    assert live is not None
    mean = median * math.exp(sigma**2 / 2)
    held = mean * math.exp(sigma**2) / 2
    wide = math.sqrt(mean**2 * math.exp(3 * sigma**2) / 3 - held**2)
    assert live.mean == pytest.approx(250 + held, rel=0.1)
    assert live.deviation == pytest.approx(wide, rel=0.25)


def test_too_few_lengths_size_nothing():
    quiet = said(OLD, 2, 0.0)
    few = Spread(p50=1, p95=2, p99=3, worst=3, mean=1, samples=10)
    assert sizing.live_of(replace(quiet, latencies=replace(quiet.latencies, output=few))) is None


ROWS = [
    (Behaviour(preempted=0.3), {}, Symptom.STORM),
    (Behaviour(preempted=0.08), {}, Symptom.PREEMPTION),
    (Behaviour(preempted=0.0, itl=0.2, kv=0.4), {"knobs": Knobs(max_sequences=32)}, Symptom.SLOW_TOKENS),
    (Behaviour(preempted=0.0, itl=0.2, kv=0.4), {"knobs": Knobs(max_sequences=64)}, None),
    (
        Behaviour(preempted=0.0, itl=0.2, kv=0.4, itl_median=0.02),
        {"knobs": Knobs(max_sequences=64)},
        Symptom.CUT_IN,
    ),
    (
        Behaviour(preempted=0.0, itl=0.2, kv=0.4, itl_median=0.02),
        {"knobs": Knobs(max_sequences=32)},
        Symptom.CUT_IN,
    ),
    (
        Behaviour(preempted=0.1, itl=0.2, kv=0.4, itl_median=0.02),
        {"knobs": Knobs(max_sequences=64)},
        Symptom.PREEMPTION,
    ),
    (Behaviour(preempted=0.0, waiting=9, kv=0.4), {"knobs": Knobs(max_sequences=32)}, Symptom.CAPPED),
    (Behaviour(preempted=0.0, waiting=9, kv=0.4), {"knobs": Knobs(max_sequences=64)}, None),
    (Behaviour(preempted=0.0), {}, None),
]


@pytest.mark.parametrize(("how", "changed", "symptom"), ROWS)
def test_each_row_of_the_table_is_told_from_the_others(how, changed, symptom):
    scene = World(old=how, **changed).scene()
    found = seen(scene, changed_before=False)
    assert (found.symptom if found else None) == symptom


CALM_POOL = Behaviour(preempted=0.0, kv=0.3)


@pytest.mark.parametrize(
    ("how", "told", "relaxed"),
    [
        (CALM_POOL, {}, True),
        (CALM_POOL, {"preemptions": None}, False),
        (CALM_POOL, {"preemptions": 0.0, "finished": 0.0}, True),
        (replace(CALM_POOL, itl=0.2), {}, False),
    ],
    ids=["calm", "nobody counts preemptions", "nothing finishes", "gaps are too long"],
)
def test_a_change_is_no_longer_needed_where_all_is_known_to_be_calm(how, told, relaxed):
    scene = World(old=how, knobs=Knobs(max_sequences=64)).scene()
    replicas = tuple(replace(each, **told) for each in scene.signals.replicas)
    found = seen(replace(scene, signals=replace(scene.signals, replicas=replicas)), changed_before=True)
    assert (found is not None and found.symptom is Symptom.RELAXED) is relaxed


def chosen(how=OLD, **changed):
    scene = World(old=how, **changed).scene()
    what = seen(scene, changed_before=True)
    assert what is not None
    return choose(scene, what, barred={})


@pytest.mark.parametrize(
    ("allowed", "setting"),
    [
        (("watermark", "maxSequences"), "maxSequences"),
        (("watermark",), "watermark"),
        (("maxBatchedTokens",), None),
    ],
)
def test_the_cheapest_rung_that_is_allowed_and_helps_is_taken(allowed, setting):
    choice = chosen(Behaviour(preempted=0.25), consent=Consent(allowed=allowed))
    assert (choice.change.setting if choice.change else None) == setting
    assert all(": " in refused for refused in choice.refused)


def test_the_floor_of_the_user_is_never_passed():
    choice = chosen(consent=Consent(allowed=("maxSequences",), least_sequences=20))
    assert choice.change is not None
    assert choice.change.after == "20"
    none = chosen(consent=Consent(allowed=("maxSequences",), least_sequences=32))
    assert none.change is None


CUT_IN = Behaviour(preempted=0.0, kv=0.4, itl=0.3, itl_median=0.02)
MAY_CUT = Consent(allowed=("maxBatchedTokens",), least_batched=64)


def test_prompts_that_cut_in_get_steps_that_last_as_long_as_is_promised():
    # The longest prompt, of 397 tokens, makes a long gap of one of 20 ms; 100 are promised, of which 90 are aimed at.
    choice = chosen(CUT_IN, consent=MAY_CUT, knobs=Knobs(max_sequences=64))
    assert choice.change is not None
    assert choice.change.after == "199", "half of what a step takes now at a time"
    mild = replace(CUT_IN, itl=0.13)
    choice = chosen(mild, consent=MAY_CUT, knobs=Knobs(max_sequences=64))
    assert choice.change is not None
    assert (choice.change.setting, choice.change.before) == ("maxBatchedTokens", "2048")
    assert int(choice.change.after) == math.ceil(397 * (0.9 * 0.1 - 0.02) / (0.13 - 0.02))


@given(
    median=st.floats(0.001, 0.049),
    slow=st.floats(0.101, 3.0),
    now=st.integers(64, 16384),
    arriving=st.floats(0, 20_000),
    floor=st.integers(1, 4096),
)
def test_smaller_steps_never_pass_a_floor_and_always_take_in_what_comes(median, slow, now, arriving, floor):
    how = replace(CUT_IN, itl=slow, itl_median=median, prompts=arriving)
    knobs = Knobs(max_sequences=48, batched_tokens=now)
    scene = World(old=how, knobs=knobs, consent=replace(MAY_CUT, least_batched=floor)).scene()
    what = seen(scene, changed_before=False)
    assert what is not None
    assert what.symptom is Symptom.CUT_IN
    change = choose(scene, what, barred={}).change
    if change is None:
        return
    value, full = int(change.after), min(now, PROMPTS.p99)
    assert max(floor, knobs.max_sequences, full / 2) <= value < full <= now
    assert value >= arriving * 0.1, "a second of steps as long as promised takes in a second of prompts"


def test_a_step_holds_a_block_of_the_cache():
    scene = World(old=CUT_IN, consent=MAY_CUT, knobs=Knobs(max_sequences=64)).scene()
    large = tuple(replace(each, block_size=300) for each in scene.signals.replicas)
    scene = replace(scene, signals=replace(scene.signals, replicas=large))
    what = seen(scene, changed_before=False)
    assert what is not None
    change = choose(scene, what, barred={}).change
    assert change is not None
    assert change.after == "300"


def test_steps_take_in_what_comes_to_the_busiest_replica_and_one_that_does_not_say_it_is_not_idle():
    how = replace(CUT_IN, prompts=2500.0)
    scene = World(old=how, consent=MAY_CUT, knobs=Knobs(max_sequences=64)).scene()
    first, *others = scene.signals.replicas
    mute = tuple(replace(each, prompt_tokens=None) for each in others)
    scene = replace(scene, signals=replace(scene.signals, replicas=(first, *mute)))
    what = seen(scene, changed_before=False)
    assert what is not None
    change = choose(scene, what, barred={}).change
    assert change is not None
    assert change.after == "280", "30 that run, and a tenth of a second of 2,500 tokens"


def test_no_more_are_let_run_than_a_step_takes():
    waiting = Behaviour(preempted=0.0, waiting=9, kv=0.4)
    choice = chosen(waiting, knobs=Knobs(max_sequences=6, batched_tokens=7))
    assert choice.change is not None
    assert choice.change.after == "7"
    calm = Behaviour(preempted=0.0, kv=0.2)
    knobs = Knobs(max_sequences=32, batched_tokens=40)
    choice = chosen(calm, knobs=knobs, planned={"maxSequences": "64"})
    assert choice.change is None
    assert "maxSequences: the engine refuses 64 while a step takes 40 tokens" in choice.refused
    choice = chosen(calm, knobs=knobs, planned={"maxSequences": "40"})
    assert choice.change is not None
    assert choice.change.after == "40"


def test_prompts_cut_in_only_by_leave():
    choice = chosen(replace(CUT_IN, itl=0.13), knobs=Knobs(max_sequences=64))
    assert choice.change is None
    assert choice.refused == ("maxBatchedTokens: spec.tuning.allow does not name it",)


def test_fewer_at_once_where_the_batch_is_too_large_and_more_where_the_cap_is_too_low():
    slow = chosen(Behaviour(preempted=0.0, itl=0.2, kv=0.4))
    assert slow.change is not None
    assert int(slow.change.after) == 16
    knobs = Knobs(max_sequences=6)
    capped = chosen(Behaviour(preempted=0.0, waiting=9, kv=0.3), knobs=knobs)
    assert capped.change is not None
    assert int(capped.change.after) == 9


def test_consent_is_read_from_the_resource():
    allowed = tuple(KNOBS)
    tuning = Tuning.model_validate({"allow": allowed, "mode": "dryRun", "floors": {"maxSequences": 4}})
    assert Consent.of(tuning) == Consent(mode="dryRun", allowed=allowed, least_sequences=4)
    assert Consent.of(Tuning.model_validate({})) == Consent()


def test_consent_can_be_given_to_what_is_retuned_and_to_nothing_else():
    assert Tuning.model_json_schema(by_alias=True)["properties"]["allow"]["items"]["enum"] == list(KNOBS)
    with pytest.raises(ValidationError):
        Tuning.model_validate({"allow": ["tensor"]})


@pytest.mark.parametrize(
    ("setting", "value", "field", "after"),
    [
        ("watermark", "50", "watermark_permille", 50),
        ("maxSequences", "10", "max_num_seqs", 10),
        ("maxBatchedTokens", "700", "max_num_batched_tokens", 700),
    ],
)
def test_a_change_is_one_field_of_the_settings(setting, value, field, after):
    settings = applied(SETTINGS, setting, value)
    assert replace(SETTINGS, **{field: after}) == settings
    assert knobs_of(settings).text(setting) == value


def test_what_is_not_retuned_is_no_change():
    with pytest.raises(ValueError, match="no setting that is retuned"):
        applied(SETTINGS, "tensor", "4")


OLD_FIGURES = Figures(
    preempted=0.3,
    finished=2,
    tokens=500,
    errors=0.0,
    ttft_p99=1.0,
    itl_p99=0.04,
    gap=4.0,
    e2e_p99=10,
    waiting=5,
)
BETTER = replace(OLD_FIGURES, preempted=0.05, gap=1.0)
PROMISED = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({}, Answer.GOOD),
        ({"preempted": 0.2}, Answer.BAD),
        ({"preempted": None}, Answer.OPEN),
        ({"itl_p99": 0.045}, Answer.BAD),
        ({"itl_p99": 0.043}, Answer.GOOD),
        ({"gap": 8.0}, Answer.BAD),
        ({"ttft_p99": 1.9}, Answer.GOOD),
        ({"ttft_p99": 2.1}, Answer.BAD),
        ({"errors": 0.004}, Answer.GOOD),
        ({"errors": 0.006}, Answer.BAD),
        ({"tokens": 480.0}, Answer.GOOD),
        ({"tokens": 470.0}, Answer.BAD),
        ({"tokens": 300.0, "waiting": 0.0}, Answer.GOOD),
    ],
)
def test_a_judge_wants_a_gain_and_no_harm(changed, answer):
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, **changed), OLD_FIGURES, PROMISED)
    assert verdict.answer is answer
    assert verdict.why


def test_a_replica_that_is_given_less_proves_nothing_by_preempting_less():
    assert OLD_FIGURES.finished is not None
    less = replace(BETTER, finished=0.5 * OLD_FIGURES.finished, waiting=0.0)
    assert judge(Symptom.PREEMPTION, less, OLD_FIGURES, PROMISED).answer is Answer.OPEN
    queued = replace(less, waiting=3.0, tokens=OLD_FIGURES.tokens)
    assert judge(Symptom.PREEMPTION, queued, OLD_FIGURES, PROMISED).answer is Answer.GOOD


def test_prompts_cut_less_into_a_replica_that_is_given_less_and_that_proves_nothing():
    quicker = replace(OLD_FIGURES, itl_p99=0.02)
    assert judge(Symptom.CUT_IN, quicker, OLD_FIGURES, PROMISED).answer is Answer.GOOD
    less = replace(quicker, finished=1.0, waiting=0.0)
    verdict = judge(Symptom.CUT_IN, less, OLD_FIGURES, PROMISED)
    assert (verdict.answer, verdict.given_less) == (Answer.OPEN, True)


@pytest.mark.parametrize("field", ["errors", "preempted"])
@pytest.mark.parametrize("symptom", [Symptom.CAPPED, Symptom.CUT_IN, Symptom.PREEMPTION])
def test_what_only_the_others_say_is_unknown_of_the_change_and_not_zero(field, symptom):
    mute: dict[str, Any] = {field: None}
    old = replace(OLD_FIGURES, preempted=0.0)
    better = replace(old, itl_p99=0.02, waiting=1.0, **mute)
    assert judge(symptom, better, old, PROMISED).answer is Answer.OPEN
    if symptom is not Symptom.PREEMPTION:
        both = replace(old, **mute)
        assert judge(symptom, better, both, PROMISED).answer is Answer.GOOD, "an engine may not count them"


def test_without_a_promise_the_whole_answer_is_compared_and_not_the_first_token():
    later = replace(BETTER, ttft_p99=9.0)
    assert judge(Symptom.PREEMPTION, later, OLD_FIGURES, Slo()).answer is Answer.GOOD
    slower = replace(BETTER, e2e_p99=12.0)
    assert judge(Symptom.PREEMPTION, slower, OLD_FIGURES, Slo()).answer is Answer.BAD


def past(outcome=Phase.FAILED, symptom=Symptom.PREEMPTION, hours=1.0, tried=True):
    at = World().now - hours * 3600
    return Past(
        id="x", setting="maxSequences", before="32", after="16", symptom=symptom, outcome=outcome, began=at,
        ended=at, reason="no gain", tried=tried,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "symptom", "is_barred"),
    [
        (past(), Symptom.PREEMPTION, True),
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
    ("newest_first", "kept"),
    [
        ([Symptom.SLOW_TOKENS], True),
        ([Symptom.PREEMPTION], False),
        ([Symptom.PREEMPTION, Symptom.SLOW_TOKENS], True),
        ([Symptom.RELAXED, Symptom.SLOW_TOKENS], False),
    ],
)
def test_a_calm_pool_gives_nothing_back_that_was_taken_for_the_gaps_between_tokens(newest_first, kept):
    entries = tuple(
        past(outcome=Phase.DONE, symptom=one, hours=30.0 + i) for i, one in enumerate(newest_first)
    )
    memory = RetuneMemory(past=entries)
    assert bool(barred(World().scene(), memory, Symptom.RELAXED)) is kept
    assert not barred(World().scene(), memory, Symptom.CAPPED), "a queue that waits beside short gaps does"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"data": False}, "MetricsMissing"),
        ({"busy": "a rollout"}, "Busy"),
        ({"fleet_retuning": 8.0}, "FleetBusy"),
        ({"fleet_retuning": 6.0}, None),
        ({"restarts": Restarts(retunes_per_day=0)}, "BudgetSpent"),
        ({"free_replicas": 0, "restarts": Restarts(restarts_per_day=1)}, "BudgetSpent"),
        ({"signals": said(replace(OLD, rate=0.01), 3, World().now)}, "TooLittleTraffic"),
    ],
)
def test_each_budget_and_window_can_hold_a_retune_back(changed, reason):
    no = refusal(replace(World().scene(), **changed), RetuneMemory())
    assert (no.reason if no else None) == reason
