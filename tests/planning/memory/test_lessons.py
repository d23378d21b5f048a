from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import brought_in, engine_facts
from plimsoll.facts.gpus import GIB, gpu_named
from plimsoll.facts.learned import (
    MOST_BYTES,
    ONE_START,
    Learned,
    export_learned,
    forgotten,
    import_learned,
    taught,
)
from plimsoll.facts.model import Certainty
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.ledger import build_ledger
from plimsoll.planning.memory.lessons import Start, lessons
from plimsoll.planning.settings import EngineSettings

GPU = gpu_named("H100-SXM-80GB")
SETTINGS = EngineSettings(
    max_model_len=8192,
    max_num_seqs=256,
    max_num_batched_tokens=8192,
    utilization=0.92,
    kv_dtype=Dtype.BFLOAT16,
)


def situation(model="Qwen/Qwen3-32B", *, tensor=2, version="0.33.0", image="", **settings):
    return {
        "model": lookup(model),
        "gpu": GPU,
        "layout": Layout(tensor=tensor),
        "engine": brought_in(engine_facts("vllm", version), image),
        "settings": replace(SETTINGS, **settings),
        "device_bytes": GPU.memory_bytes,
    }


def start(off_kv=0.0, off_weights=0.0, *, cold=False, **about):
    """A start that had so many GiB less for its cache, and so many more in its weights, than the formulas say."""
    where = situation(**about)
    ledger = build_ledger(**where)
    return Start(
        **where,
        kv_bytes=round(ledger.left.mid - off_kv * GIB),
        weights_bytes=round(ledger.term("weights").bytes.mid + off_weights * GIB),
        cold=cold,
    )


def after(*starts, **about):
    known = Learned()
    for one in starts:
        known = taught(known, lessons(one))
    return build_ledger(**situation(**about), learned=import_learned(export_learned(known)))


def test_the_next_start_of_the_same_words_is_predicted_as_the_first_was_measured():
    plain, ledger = build_ledger(**situation()), after(start(1.5, 0.5))
    assert plain.left.mid - ledger.left.mid == pytest.approx(1.5 * GIB, abs=4)
    assert ledger.term("weights").bytes.mid - plain.term("weights").bytes.mid == pytest.approx(GIB / 2, abs=4)
    assert ledger.term("weights").certainty is ledger.term("activation").certainty is Certainty.LEARNED
    assert ledger.left.high - ledger.left.low < plain.left.high - plain.left.low


def test_a_longer_context_profits_wholly():
    plain = build_ledger(**situation(max_model_len=4096))
    assert plain.left.mid - after(start(1.5), max_model_len=4096).left.mid == pytest.approx(1.5 * GIB, abs=4)


@pytest.mark.parametrize("other", [{"model": "Qwen/Qwen3-32B-FP8"}, {"max_num_seqs": 32}])
def test_another_precision_or_batch_profits_by_what_passes_the_noise_and_stays_as_uncertain(other):
    plain, ledger = build_ledger(**situation(**other)), after(start(1.5), **other)
    assert plain.left.mid - ledger.left.mid == pytest.approx(1.5 * GIB - ONE_START, abs=4)
    assert ledger.left.high - ledger.left.low == pytest.approx(plain.left.high - plain.left.low, rel=0.01)


@pytest.mark.parametrize("other", [{"tensor": 4}, {"version": "0.30.0"}])
def test_swollen_weights_are_swollen_in_every_layout_and_version_and_nothing_else_is(other):
    plain, ledger = build_ledger(**situation(**other)), after(start(3.0, 1.0), **other)
    grown = ledger.term("weights").bytes.mid - plain.term("weights").bytes.mid
    ranks = situation(**other)["layout"].tensor / 2
    assert grown == pytest.approx((GIB - ONE_START) / ranks, rel=0.02)
    assert ledger.term("activation") == plain.term("activation")


OWN_IMAGE = "own.example/serving/vllm:patched"


@pytest.mark.parametrize("other", ["", "own.example/serving/vllm:newer", "else.example/vllm:patched"])
def test_what_an_owner_s_image_has_taught_moves_no_plan_with_another_image(other):
    where = {"image": other}
    assert after(start(3.0, 1.0, image=OWN_IMAGE), **where) == build_ledger(**situation(**where))


def test_an_owner_s_image_is_believed_to_be_like_the_release_by_what_passes_the_noise_until_it_is_measured():
    own = {"image": OWN_IMAGE}
    plain, ledger = build_ledger(**situation()), after(start(1.5), **own)
    assert plain.left.mid - ledger.left.mid == pytest.approx(1.5 * GIB - ONE_START, abs=4)
    assert ledger.left.high - ledger.left.low == pytest.approx(plain.left.high - plain.left.low, rel=0.01)
    measured = after(start(1.5), start(0.5, **own), **own)
    assert plain.left.mid - measured.left.mid == pytest.approx(GIB / 2, abs=4)


def test_owners_images_of_one_name_are_told_apart_and_forgotten_by_it():
    known = Learned()
    for registry in ("a.example", "b.example"):
        known = taught(known, lessons(start(1.0, 0.5, image=f"{registry}/vllm:1")))
    assert len(known.residuals) == 2 * len(lessons(start()))
    assert forgotten(known, words=["@vllm:1#"]).residuals == ()


@pytest.mark.parametrize("image", ["a.example/" + "x" * 400, "a.example/vllm@sha256:" + "0" * 64])
def test_a_long_name_of_an_image_can_be_kept(image):
    found = lessons(start(1.0, image=image))
    assert import_learned(export_learned(taught(Learned(), found))).residuals == tuple(sorted(found))


def test_room_that_others_had_is_not_counted_on_at_the_unfavourable_end():
    other = {"max_num_seqs": 32}
    plain, ledger = build_ledger(**situation(**other)), after(start(-2.0), **other)
    assert ledger.left.mid > plain.left.mid
    assert ledger.left.low <= plain.left.low


def test_a_cold_compile_cache_teaches_no_more_than_weights():
    terms = {residual.term for residual in lessons(start(2.0, 0.5, cold=True))}
    assert terms == {"weights"}


def test_a_pool_of_fixed_size_says_nothing_about_what_is_beside_it():
    fixed = start(1.0, 0.5, kv_cache_bytes=8 * GIB)
    assert {residual.term for residual in lessons(fixed)} == {"weights"}


def test_of_a_pipeline_the_weights_are_not_learned():
    where = situation() | {"layout": Layout(tensor=1, pipeline=2)}
    told = Start(**where, kv_bytes=20 * GIB, weights_bytes=31 * GIB)
    assert {residual.term for residual in lessons(told)} == {"activation"}


def test_a_start_that_told_nothing_teaches_nothing():
    assert lessons(replace(start(1.0), kv_bytes=None, weights_bytes=None)) == ()


@pytest.mark.parametrize(
    "figures",
    [
        {"kv_bytes": 2**50, "weights_bytes": 1},
        {"kv_bytes": 2**50, "weights_bytes": None},
        {"kv_bytes": 60 * GIB},
        {"weights_bytes": 1},
        {"weights_bytes": 15 * GIB},
        {"weights_bytes": 70 * GIB, "kv_bytes": None},
    ],
)
def test_figures_that_cannot_be_teach_nothing(figures):
    assert lessons(replace(start(), **figures)) == ()


@pytest.mark.parametrize("pair", [(0.5, 2.5), (2.5, 0.5), (-1.0, 3.0)])
def test_replicas_that_disagree_meet_in_the_middle_of_a_range_that_holds_both(pair):
    plain, ledger = build_ledger(**situation()), after(*map(start, pair))
    one, other = (plain.left.mid - off * GIB for off in pair)
    assert ledger.left.mid == pytest.approx((one + other) / 2, abs=4)
    assert ledger.left.low <= min(one, other) <= max(one, other) <= ledger.left.high


@pytest.mark.parametrize("wild", [-20.0, 60.0])
def test_one_odd_start_after_twenty_counts_a_twentieth_of_what_it_is_off_and_never_more_than_the_bound(wild):
    odd = replace(start(wild), weights_bytes=None)
    assert lessons(odd), "it could be"
    steady = [start(1.0)] * 20
    moved = after(*steady).left.mid - after(*steady, odd).left.mid
    told = max(-MOST_BYTES, min(MOST_BYTES, wild * GIB))
    assert moved == pytest.approx((told - GIB) / 20, rel=0.01)


def test_what_a_start_shows_that_was_poisoned_is_forgotten_by_those_that_follow():
    odd = replace(start(60.0), weights_bytes=None)
    off = [after(odd, *[start(1.0)] * times).left.mid - after(start(1.0)).left.mid for times in (0, 1, 3, 15)]
    assert off == pytest.approx([off[0] / parts for parts in (1, 2, 4, 16)], rel=0.01)
    assert abs(off[0]) <= MOST_BYTES


def test_many_starts_give_their_mean_and_what_they_vary():
    varied = [start(1.0), start(2.0), start(3.0)]
    plain, ledger = build_ledger(**situation()), after(*varied)
    assert plain.left.mid - ledger.left.mid == pytest.approx(2 * GIB, rel=0.01)
    assert ledger.left.mid - ledger.left.low > 0.5 * GIB


@given(st.lists(st.floats(-2, 30), min_size=1, max_size=30))
def test_no_residual_leaves_what_was_seen_or_its_bound(offs):
    known = Learned()
    for off in offs:
        known = taught(known, lessons(start(off)))
    least, most = min(0.0, *offs), max(0.0, *offs)
    for residual in known.residuals:
        if residual.term == "activation":
            assert least * GIB - 4 <= residual.bytes <= most * GIB + 4
            assert abs(residual.bytes) <= 16 * GIB
            assert residual.starts == len(offs)


def test_what_was_learned_of_a_model_is_forgotten_by_its_name():
    known = taught(Learned(), [*lessons(start(1.0)), *lessons(start(1.0, model="Qwen/Qwen3-0.6B"))])
    left = forgotten(known, words=["qwen3-32b", "h100"])
    assert {residual.name for residual in left.residuals} == {situation("Qwen/Qwen3-0.6B")["model"].source}
    assert forgotten(known, words=[]) == Learned()
