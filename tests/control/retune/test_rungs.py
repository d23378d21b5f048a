"""Which symptom is seen, which rung is taken for it, and how far."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Knobs
from plimsoll.control.retune.ladder import choose
from plimsoll.control.retune.scene import applied, knobs_of
from plimsoll.control.retune.symptoms import Symptom, scaling_first, symptom_of
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.settings import EngineSettings, LoraSlots, Speculation
from tests.control.retune.world import OLD, PROMPTS, Behaviour, World

SETTINGS = EngineSettings(max_model_len=8192, max_num_seqs=32, max_num_batched_tokens=2048, utilization=0.9)

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
    (
        Behaviour(preempted=0.0, ttft=3.0, waiting=9, kv=0.4),
        {"knobs": Knobs(max_sequences=64)},
        Symptom.LATE_FIRST,
    ),
    (
        Behaviour(preempted=0.0, ttft=3.0, waiting=9, kv=0.4),
        {"knobs": Knobs(max_sequences=32)},
        Symptom.CAPPED,
    ),
    (Behaviour(preempted=0.0, ttft=3.0, waiting=0, kv=0.4), {"knobs": Knobs(max_sequences=64)}, None),
    (Behaviour(preempted=0.0, ttft=3.0, waiting=9, kv=0.8), {"knobs": Knobs(max_sequences=64)}, None),
]


@pytest.mark.parametrize(("how", "changed", "symptom"), ROWS)
def test_each_row_of_the_table_is_told_from_the_others(how, changed, symptom):
    scene = World(old=how, **changed).scene()
    found = symptom_of(scene, changed_before=False)
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
    found = symptom_of(replace(scene, signals=replace(scene.signals, replicas=replicas)), changed_before=True)
    assert (found is not None and found.symptom is Symptom.RELAXED) is relaxed


def test_that_a_change_is_no_longer_needed_is_told_of_this_moment_and_with_how_long_it_has_been_so():
    world = World(old=CALM_POOL, planned={"watermark": "50"}, knobs=Knobs(max_sequences=64)).run(600)
    assert world.why_not == (
        "an earlier change is not needed now: 0.0% of requests are preempted, and 30% of the pool is in use, for 570 of 86400 s"
    )


@pytest.mark.parametrize(("rules", "hours"), [({}, 24), ({"releaseAfterSeconds": 7200}, 2)])
def test_a_change_goes_back_after_a_day_of_calm_or_as_long_as_the_admin_says(rules, hours):
    world = World(
        old=CALM_POOL,
        change=CALM_POOL,
        planned={"watermark": "0"},
        knobs=Knobs(max_sequences=64, watermark_permille=50),
        consent=Consent(),
        rules=Restarts.model_validate(rules),
    )
    assert world.run(3600 * hours - 60).memory.step is None
    step = world.run(120).memory.step
    assert step is not None
    assert (step.setting, step.after) == ("watermark", "0")


def chosen(how=OLD, **changed):
    scene = World(old=how, **changed).scene()
    what = symptom_of(scene, changed_before=True)
    assert what is not None
    return choose(scene, what, barred={})


@pytest.mark.parametrize(
    ("allowed", "setting"),
    [
        (("watermark", "maxSequences"), "watermark"),
        (("maxSequences",), "maxSequences"),
        (("maxBatchedTokens",), None),
    ],
)
def test_the_cheapest_rung_that_is_allowed_and_helps_is_taken(allowed, setting):
    choice = chosen(Behaviour(preempted=0.25), consent=Consent(allowed=allowed))
    assert (choice.change.setting if choice.change else None) == setting
    assert all(": " in refused for refused in choice.refused)


def test_a_setting_that_a_person_has_set_is_passed_over_and_told_unless_it_is_only_spoken_of():
    fixed = ("watermark",)
    choice = chosen(Behaviour(preempted=0.25), consent=Consent(fixed=fixed))
    assert choice.change is not None
    assert choice.change.setting == "maxSequences"
    assert choice.refused == (
        "watermark: spec.engine.watermarkPermille sets it, and spec.tuning.allow does not name it",
    )
    spoken = chosen(Behaviour(preempted=0.25), consent=Consent(mode="dryRun", fixed=fixed))
    assert spoken.change is not None
    assert spoken.change.setting == "watermark"


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
    what = symptom_of(scene, changed_before=False)
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
    what = symptom_of(scene, changed_before=False)
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
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    change = choose(scene, what, barred={}).change
    assert change is not None
    assert change.after == "280", "30 that run, and a tenth of a second of 2,500 tokens"


@pytest.mark.parametrize(
    ("cached", "prompts", "after"),
    [
        (0.0, 9000.0, None),
        (0.8, 9000.0, "210"),  # 30 that run, and a fifth of a tenth of a second of 9,000 tokens
        (0.8, 500.0, "160"),  # half of a fifth of the longest prompt, of 1,600 tokens
        (None, 9000.0, None),
    ],
)
def test_what_the_prefix_cache_has_is_in_no_step_and_keeps_none_from_being_smaller(cached, prompts, after):
    how = replace(CUT_IN, prompts=prompts)
    scene = World(old=how, consent=MAY_CUT, knobs=Knobs(max_sequences=64)).scene()
    known = scene.signals.latencies
    long = replace(known, prompt=replace(PROMPTS, p99=800.0 if cached is None or not cached else 1600.0))
    hit = {} if cached is None else {"prefix_hits": 1000 * cached, "prefix_queries": 1000.0}
    replicas = tuple(replace(each, **hit) for each in scene.signals.replicas)
    scene = replace(scene, signals=replace(scene.signals, replicas=replicas, latencies=long))
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    choice = choose(scene, what, barred={})
    assert (choice.change.after if choice.change else None) == after, choice.refused


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


def test_beside_adapters_a_step_holds_every_guess_of_all_that_are_let_run():
    waiting = Behaviour(preempted=0.0, waiting=9, kv=0.4)
    choice = chosen(waiting, knobs=Knobs(max_sequences=6, batched_tokens=28, tokens_each=4))
    assert choice.change is not None
    assert choice.change.after == "7"
    settings = replace(
        SETTINGS,
        max_num_batched_tokens=28,
        lora=LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1),
        speculation=Speculation(method="ngram", tokens=3),
    )
    assert knobs_of(settings, Layout()).held == 7
    assert knobs_of(replace(settings, lora=None), Layout()).held == 28


LATE_FIRST = Behaviour(preempted=0.0, ttft=3.0, waiting=9, kv=0.4, itl=0.05, itl_median=0.02)


@pytest.mark.parametrize(
    ("how", "planned", "after", "why"),
    [
        (LATE_FIRST, {}, None, "memory was planned for"),
        (LATE_FIRST, {"maxBatchedTokens": "256"}, None, "memory was planned for"),
        (LATE_FIRST, {"maxBatchedTokens": "900"}, "900", "the plan's own value"),
        (
            LATE_FIRST,
            {"maxBatchedTokens": "2048"},
            str(int(512 * (0.09 - 0.02) / (0.05 - 0.02))),
            "within 100 ms",
        ),
        (replace(LATE_FIRST, itl=0.095), {"maxBatchedTokens": "2048"}, None, "no room"),
    ],
    ids=["as planned", "larger than planned", "to the plan's", "as far as gaps have room", "no room"],
)
def test_steps_that_were_cut_take_more_prompts_again_where_first_tokens_are_late_and_never_more_than_planned(
    how, planned, after, why
):
    choice = chosen(how, consent=MAY_CUT, planned=planned, knobs=Knobs(max_sequences=64, batched_tokens=512))
    assert (choice.change.after if choice.change else None) == after
    assert why in (choice.change.why if choice.change else choice.refused[0])


@pytest.mark.parametrize("itl", ["nobody says", "of a few"])
def test_steps_take_no_more_prompts_while_nobody_knows_the_gaps_that_are_promised(itl: str):
    scene = World(old=LATE_FIRST, consent=MAY_CUT).scene()
    scene = replace(
        scene,
        planned={"maxBatchedTokens": "2048"},
        knobs=Knobs(max_sequences=64, batched_tokens=512),
    )
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    assert choose(scene, what, barred={}).change is not None
    known = scene.signals.latencies
    gaps = None if itl == "nobody says" or known.itl is None else replace(known.itl, samples=9)
    scene = replace(scene, signals=replace(scene.signals, latencies=replace(known, itl=gaps)))
    choice = choose(scene, what, barred={})
    assert choice.change is None
    assert "nobody says how long gaps" in choice.refused[0]


def test_first_tokens_are_no_matter_of_steps_where_nobody_counts_preemptions():
    scene = World(old=LATE_FIRST, knobs=Knobs(max_sequences=64)).scene()
    silent = tuple(replace(each, preemptions=None) for each in scene.signals.replicas)
    assert symptom_of(scene, changed_before=False) is not None
    assert (
        symptom_of(replace(scene, signals=replace(scene.signals, replicas=silent)), changed_before=False)
        is None
    )


def test_first_tokens_that_are_late_are_cured_by_replicas_where_they_can_be_had():
    scene = World(old=LATE_FIRST, wants_more=True, more_replicas=True).scene()
    assert scaling_first(scene, Symptom.LATE_FIRST) is not None
    assert scaling_first(replace(scene, more_replicas=False), Symptom.LATE_FIRST) is None


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
    assert knobs_of(settings, Layout()).text(setting) == value


def test_what_is_not_retuned_is_no_change():
    with pytest.raises(ValueError, match="no setting that is retuned"):
        applied(SETTINGS, "tensor", "4")


def test_where_only_one_request_may_run_and_the_pool_holds_more_two_may():
    scene = World(old=Behaviour(preempted=0.0, waiting=9, kv=0.1), knobs=Knobs(max_sequences=1)).scene()
    found = symptom_of(scene, changed_before=False)
    assert found is not None
    change = choose(scene, found, barred={}).change
    assert change is not None
    assert (change.setting, change.after) == ("maxSequences", "2")


@pytest.mark.parametrize("p99", [0.0895, 0.0899, 0.08995])
def test_steps_that_could_be_longer_by_part_of_a_token_stay_as_they_are(p99):
    late = Behaviour(preempted=0.0, ttft=3.0, waiting=9, kv=0.4, itl=p99, itl_median=0.02)
    knobs = Knobs(max_sequences=64, batched_tokens=512)
    scene = World(
        old=late,
        knobs=knobs,
        planned={"maxBatchedTokens": "2048"},
        consent=Consent(allowed=("maxBatchedTokens",)),
    ).scene()
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    change = choose(scene, what, barred={}).change
    assert change is None or int(change.after) > 512
