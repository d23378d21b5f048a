"""Weight bytes of a rank against what engines loaded, and what no layout may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import Mamba, MoeFfn, Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from tests.planning import architectures as known
from tests.planning.situations import GIB, model

ARCHITECTURES = [
    known.llama_8b(),
    known.llama_70b(),
    known.qwen3_235b(),
    known.deepseek_r1(),
    known.gemma4_31b(),
    known.qwen35_35b(),
    known.nemotron3_nano(),
]


@pytest.mark.parametrize(
    ("arch", "layout", "gib"),
    [
        (known.llama_70b(), Layout(), 131.4),
        (known.llama_70b(), Layout(tensor=4), 32.86),
        (known.qwen3_235b(), Layout(tensor=4), 109.6),
        (known.llama_8b(), Layout(), 14.96),
    ],
)
def test_a_rank_holds_what_logs_say_it_loaded(arch, layout, gib):
    assert rank_weight_bytes(model(arch), layout).largest / GIB == pytest.approx(gib, rel=0.005)


def test_every_rank_holds_the_way_to_narrow_experts_and_back_whole():
    """Of Nemotron 3 Ultra the engine's own classes make 140,538,433,728 bytes a rank of eight."""
    facts = lookup("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16")
    assert facts is not None
    assert rank_weight_bytes(facts, Layout(tensor=8)).largest == pytest.approx(140_538_433_728, rel=0.001)


def test_one_rank_holds_the_whole_checkpoint():
    for arch in ARCHITECTURES:
        facts = model(arch)
        whole = rank_weight_bytes(facts, Layout())
        padding = 64 * arch.hidden * 2 * 2
        assert 0 <= whole.largest - (facts.weights.total - facts.weights.mtp) <= padding


def test_key_value_heads_stop_shrinking_where_ranks_outnumber_them():
    facts = model(known.qwen3_235b())
    four, eight = (rank_weight_bytes(facts, Layout(tensor=ranks)) for ranks in (4, 8))
    keys_and_values = 94 * 4096 * 4 * 128 * 2 * 2
    others = four.largest - keys_and_values / 4
    assert eight.largest - keys_and_values / 4 == pytest.approx(others / 2, rel=0.01)


def test_every_rank_holds_the_only_group_of_a_state_space_mixer():
    """On four ranks the engine makes four groups of one, so that each has as much as where there were four."""

    def on_a_rank(groups: int, ranks: int) -> int:
        mixer = Mamba(
            heads=64, head_dim=64, groups=groups, state_size=128, conv_kernel=4, state_dtype=Dtype.FLOAT32
        )
        return rank_weight_bytes(model(known.architecture([mixer] * 8)), Layout(tensor=ranks)).largest

    assert on_a_rank(1, 4) == pytest.approx(on_a_rank(4, 4), rel=1e-4)
    assert on_a_rank(1, 1) < on_a_rank(4, 1)


def test_experts_are_cut_over_data_parallel_ranks_and_attention_is_not():
    facts = model(known.deepseek_r1())
    apart = rank_weight_bytes(facts, Layout(tensor=1, data=8, expert_parallel=True))
    together = rank_weight_bytes(facts, Layout(tensor=8))
    assert apart.experts == together.experts
    assert apart.largest > together.largest + 7 / 8 * facts.weights.attention_sharded * 0.9


def test_the_fullest_rank_counts_where_experts_do_not_divide():
    arch = known.architecture(
        [known.attention()] * 4, ffn=MoeFfn(experts=10, top_k=2, intermediate=1024), hidden=1024
    )
    facts = model(arch)
    ranks = rank_weight_bytes(facts, Layout(tensor=4, expert_parallel=True))
    assert ranks.experts[0] == pytest.approx(facts.weights.experts * 3 / 10, abs=2)


def test_stages_hold_their_layers_and_the_ends_the_vocabulary():
    facts = model(known.llama_70b())
    first, middle, last = rank_weight_bytes(facts, Layout(pipeline=3)).stages
    vocabulary = 128_256 * 8192 * 2
    layer = (facts.weights.total - 2 * vocabulary) / 80
    assert first - middle == pytest.approx(vocabulary, rel=0.001)
    assert first - last == pytest.approx(layer, rel=0.001)


def test_both_ends_of_a_pipeline_hold_tied_embeddings():
    facts = model(known.architecture([known.attention()] * 8, tied_embeddings=True))
    stages = rank_weight_bytes(facts, Layout(pipeline=2)).stages
    assert stages[0] == stages[1]


@given(
    arch=st.sampled_from(ARCHITECTURES),
    power=st.integers(0, 4),
    pipeline=st.integers(1, 4),
    experts=st.booleans(),
)
def test_more_tensor_parallel_ranks_never_hold_more_each(arch, power, pipeline, experts):
    facts = model(arch)
    fewer = Layout(tensor=2**power, pipeline=pipeline, expert_parallel=experts and arch.is_moe)
    more = Layout(tensor=2 ** (power + 1), pipeline=pipeline, expert_parallel=experts and arch.is_moe)
    assert rank_weight_bytes(facts, more).largest <= rank_weight_bytes(facts, fewer).largest


@given(arch=st.sampled_from(ARCHITECTURES), tensor=st.sampled_from([1, 2, 4, 8]), pipeline=st.integers(1, 4))
def test_ranks_together_hold_at_least_the_checkpoint(arch, tensor, pipeline):
    facts = model(arch)
    stages = rank_weight_bytes(facts, Layout(tensor=tensor, pipeline=pipeline)).stages
    assert sum(stages) * tensor >= facts.weights.total - facts.weights.mtp


def test_quantized_weights_take_their_own_bytes():
    plain = known.llama_70b()
    eight = known.architecture(
        [known.attention()] * 80,
        ffn=plain.layers[0].ffn,
        hidden=8192,
        quantization=Quantization(method="fp8", weights=Dtype.FP8),
    )
    assert rank_weight_bytes(model(eight), Layout(tensor=4)).largest / GIB == pytest.approx(16.95, rel=0.005)
