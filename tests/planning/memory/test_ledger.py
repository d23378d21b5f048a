"""The ledger's verdicts, terms and invariants."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.learned import ONE_START, Residual, learned
from plimsoll.facts.model import Certainty
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.constants import fitted_constants
from plimsoll.planning.memory.learned_key import learned_key, shape_key
from plimsoll.planning.memory.ledger import OomRisk, Verdict, build_ledger
from plimsoll.planning.settings import LoraSlots, Speculation
from tests.planning import architectures as known
from tests.planning.situations import GIB, inputs

NAMES = ("weights", "context", "lora", "draft", "encoder", "activation", "graphs", "kv", "headroom")


def ledger(arch=None, **others):
    extra = {
        key: others.pop(key)
        for key in ("device_bytes", "share", "learned", "workload_tokens")
        if key in others
    }
    return build_ledger(**inputs(arch, **others), **extra)


def test_the_terms_of_a_bar_add_up_to_the_device():
    found = ledger()
    assert tuple(term.name for term in found.terms) == NAMES
    assert sum(term.bytes.mid for term in found.terms) == pytest.approx(found.device_bytes, rel=1e-6)


def test_graphs_outside_the_budget_do_not_take_from_the_cache():
    inside, outside = ledger(version="0.20.0"), ledger(version="0.19.0")
    assert outside.left.mid - inside.left.mid == pytest.approx(inside.term("graphs").bytes.mid)


def test_every_term_says_its_formula_and_where_it_comes_from():
    for term in ledger(lora=LoraSlots(max_loras=2, max_rank=16, max_cpu_loras=2)).terms:
        assert term.formula
        assert term.certainty in Certainty


@pytest.mark.parametrize(
    ("arch", "gpu", "layout", "verdict"),
    [
        (known.llama_8b(), "H100-SXM-80GB", Layout(), Verdict.FITS),
        (known.llama_70b(), "H100-SXM-80GB", Layout(), Verdict.DOES_NOT_FIT),
        (known.llama_70b(), "H100-SXM-80GB", Layout(tensor=4), Verdict.FITS),
        (known.llama_70b(), "H100-SXM-80GB", Layout(pipeline=4), Verdict.FITS),
        (known.llama_8b(), "RTX-4090", Layout(), Verdict.FITS),
        (known.qwen3_30b(), "RTX-4090", Layout(), Verdict.DOES_NOT_FIT),
    ],
)
def test_a_model_fits_where_its_bytes_do(arch, gpu, layout, verdict):
    found = ledger(arch, gpu=gpu, layout=layout)
    assert found.verdict is verdict
    assert (found.risk is OomRisk.CERTAIN) == (verdict is Verdict.DOES_NOT_FIT)


def test_terms_share_the_spread_that_was_measured_of_all_together():
    found = ledger(known.qwen3_30b())
    spreads = [
        (term.bytes.high - term.bytes.low) / 2 for term in found.terms if term.name not in {"kv", "headroom"}
    ]
    measured = fitted_constants()["unexplainedMoe"].spread * GIB
    assert sum(spreads) == pytest.approx(measured)
    assert all(
        found.term(name).bytes.high > found.term(name).bytes.low for name in ("weights", "context", "graphs")
    )


def test_what_does_not_fit_says_what_is_missing():
    found = ledger(known.llama_70b())
    assert found.capacity is None
    assert "are missing before any cache" in found.reason


def test_a_length_that_does_not_fit_names_the_longest_that_would():
    found = ledger(gpu="RTX-4090", max_model_len=131_072)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert "would do for" in found.reason
    longest = int(found.reason.rsplit("would do for ", 1)[1].split()[0])
    assert ledger(gpu="RTX-4090", max_model_len=longest).verdict is not Verdict.DOES_NOT_FIT


def test_an_interval_that_holds_both_outcomes_is_tight():
    lengths = range(8192, 131_072, 1024)
    verdicts = [ledger(gpu="RTX-4090", max_model_len=length).verdict for length in lengths]
    assert list(dict.fromkeys(verdicts)) == [Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT]


def test_more_sequences_than_states_have_blocks_do_not_start():
    found = ledger(known.qwen35_35b(), gpu="RTX-4090", version="0.33.0", max_num_seqs=1024)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert "max_num_seqs must be at most" in found.reason


def test_a_fixed_pool_is_exactly_what_was_set_whatever_the_utilization():
    one = ledger(kv_cache_bytes=20 * GIB, utilization=0.5)
    other = ledger(kv_cache_bytes=20 * GIB, utilization=0.95)
    assert one.left.mid == one.left.low == 20 * GIB
    assert one.capacity == other.capacity
    assert one.term("kv").certainty is Certainty.EXACT


def test_a_share_of_a_device_bounds_the_budget():
    half = ledger(kv_cache_bytes=10 * GIB, share=Fraction(1, 2))
    assert half.budget_bytes == pytest.approx(half.device_bytes / 2, abs=1)
    assert half.verdict is Verdict.FITS
    assert ledger(kv_cache_bytes=10 * GIB, share=Fraction(1, 4)).verdict is Verdict.DOES_NOT_FIT


def test_a_slice_has_its_own_memory():
    assert ledger(device_bytes=20 * GIB).device_bytes == 20 * GIB


def test_what_was_learned_replaces_the_unknown_of_a_term():
    given_ = inputs()
    key = learned_key(given_["model"], given_["gpu"], given_["layout"], given_["engine"], given_["settings"])
    residual = Residual(key=key, term="activation", bytes=GIB, half_width=GIB // 10, starts=3)
    plain = build_ledger(**given_)
    taught = build_ledger(**given_, learned=learned([residual]))
    assert plain.left.mid - taught.left.mid == pytest.approx(GIB)
    assert taught.term("activation").certainty is Certainty.LEARNED
    assert taught.left.high - taught.left.low < plain.left.high - plain.left.low


def test_checkpoints_of_a_shape_teach_one_another_what_passes_the_noise_where_nothing_else_is_known():
    given_ = inputs()
    situation = (given_["model"], given_["gpu"], given_["layout"], given_["engine"], given_["settings"])
    own, shape = learned_key(*situation), shape_key(*situation)
    of_shape = Residual(key=shape, term="activation", bytes=GIB + ONE_START, half_width=0, starts=9)
    of_own = Residual(key=own, term="activation", bytes=2 * GIB, half_width=0, starts=1)
    plain = build_ledger(**given_).left.mid
    assert plain - build_ledger(**given_, learned=learned([of_shape])).left.mid == pytest.approx(GIB)
    assert plain - build_ledger(**given_, learned=learned([of_shape, of_own])).left.mid == pytest.approx(
        2 * GIB
    )
    quiet = replace(of_shape, bytes=ONE_START)
    assert build_ledger(**given_, learned=learned([quiet])) == build_ledger(**given_)


def test_a_budget_that_leaves_nothing_to_the_driver_is_tight():
    found = ledger(gpu="RTX-4090", utilization=0.99)
    assert found.verdict is Verdict.TIGHT
    assert "outside the budget" in found.reason


def test_a_model_that_keeps_no_cache_fits_where_its_weights_do():
    arch = known.architecture([replace(known.attention(), shares_cache=True)] * 12, encoder=True, hidden=768)
    found = ledger(arch)
    assert found.verdict is Verdict.FITS
    assert "keeps no cache" in found.reason
    assert ledger(arch, device_bytes=GIB).verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize(
    ("speculation", "less"),
    [
        (None, False),
        (Speculation(method="ngram", tokens=4), False),
        (Speculation(method="eagle", tokens=4, draft_weight_bytes=GIB), True),
    ],
)
def test_a_draft_takes_its_weights_and_its_layers_from_the_cache(speculation, less):
    plain, drafted = ledger(), ledger(speculation=speculation)
    assert (drafted.capacity.tokens.mid < plain.capacity.tokens.mid) is less


def test_adapter_slots_cost_what_was_measured():
    """Two slots of rank 16 on an 8B model: 0.186 GiB."""
    found = ledger(lora=LoraSlots(max_loras=2, max_rank=16, max_cpu_loras=2))
    assert found.term("lora").bytes.mid / GIB == pytest.approx(0.186, rel=0.2)


ARCHITECTURES = [
    known.llama_8b(),
    known.llama_70b(),
    known.qwen3_30b(),
    known.deepseek_r1(),
    known.gemma3_27b(),
    known.nemotron3_nano(),
]
FLEET = ["H100-SXM-80GB", "H200-SXM-141GB", "MI300X", "L40S-48GB", "RTX-4090"]
CHOICES = {
    "arch": st.sampled_from(ARCHITECTURES),
    "gpu": st.sampled_from(FLEET),
    "tensor": st.sampled_from([1, 2, 4, 8]),
    "pipeline": st.sampled_from([1, 2]),
    "version": st.sampled_from(["0.11.0", "0.18.0", "0.20.0", "0.33.0"]),
    "length": st.integers(256, 131_072),
    "sequences": st.integers(1, 1024),
    "percent": st.integers(30, 98),
    "dtype": st.sampled_from([None, Dtype.FP8]),
}


def drawn(choice):
    return ledger(
        choice["arch"],
        gpu=choice["gpu"],
        version=choice["version"],
        layout=Layout(tensor=choice["tensor"], pipeline=choice["pipeline"]),
        max_model_len=choice["length"],
        max_num_seqs=choice["sequences"],
        utilization=choice["percent"] / 100,
        kv_dtype=choice["dtype"],
        device_bytes=choice.get("device"),
    )


@settings(deadline=None)
@given(choice=st.fixed_dictionaries(CHOICES))
def test_a_ledger_that_fits_never_exceeds_its_gpu(choice):
    found = drawn(choice)
    if found.verdict is not Verdict.FITS:
        return
    assert found.left.low >= 0
    assert sum(term.bytes.mid for term in found.terms) <= found.device_bytes * (1 + 1e-9)
    block_bytes = int(found.term("kv").inputs["block"].split()[0])
    assert found.capacity.blocks.high * block_bytes <= found.left.high + 1
    highs = {term.name: term.bytes.high for term in found.terms if term.name not in {"kv", "headroom"}}
    assert sum(highs.values()) <= found.device_bytes
    assert sum(highs.values()) - highs["graphs"] + found.left.low <= found.budget_bytes * (1 + 1e-9)


@settings(deadline=None)
@given(choice=st.fixed_dictionaries(CHOICES), more=st.integers(1, 64))
def test_more_memory_is_never_fewer_tokens_and_never_a_worse_verdict(choice, more):
    device = gpu_named(choice["gpu"]).memory_bytes
    small = drawn({**choice, "device": device})
    large = drawn({**choice, "device": device + more * GIB})
    tokens = [found.capacity.tokens.mid if found.capacity else 0 for found in (small, large)]
    assert tokens[0] <= tokens[1]
    assert small.left.mid <= large.left.mid


@settings(deadline=None)
@given(choice=st.fixed_dictionaries(CHOICES))
def test_the_same_inputs_give_the_same_ledger_and_ordered_intervals(choice):
    found = drawn(choice)
    assert found == drawn(choice)
    if found.capacity:
        assert 0 <= found.capacity.blocks.low <= found.capacity.blocks.mid <= found.capacity.blocks.high
        assert found.capacity.tokens.low <= found.capacity.tokens.mid <= found.capacity.tokens.high
