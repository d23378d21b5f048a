"""The cache arithmetic against what engines printed, to the block, and its invariants."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import (
    NO_DRAFT,
    CacheRules,
    DraftLayers,
    cache_layers,
    kv_bytes_per_token,
    stage_sizes,
)
from plimsoll.planning.memory.kv_groups import plan_cache
from tests.planning import architectures as known

GIB = 2**30
POOL_LINE = CacheRules(request_line=False, in_flight_tokens=8192)
REQUEST_LINE = CacheRules(request_line=True, in_flight_tokens=8192)


def planned(arch, layout=None, rules=POOL_LINE, dtype=Dtype.BFLOAT16, draft=NO_DRAFT):
    layout = layout or Layout()
    layers = cache_layers(arch, layout, rules, dtype=dtype, draft=draft)
    return plan_cache(layers, rules, stages=layout.pipeline, decode_context=layout.decode_context)


@pytest.mark.parametrize(
    ("arch", "layout", "dtype", "expected"),
    [
        (known.llama_70b(), Layout(), Dtype.BFLOAT16, 327_680),
        (known.llama_70b(), Layout(tensor=4), Dtype.BFLOAT16, 81_920),
        (known.llama_70b(), Layout(tensor=8), Dtype.BFLOAT16, 40_960),
        (known.llama_70b(), Layout(tensor=8), Dtype.FP8, 20_480),
        (known.llama_8b(), Layout(), Dtype.BFLOAT16, 131_072),
        (known.qwen3_235b(), Layout(tensor=4), Dtype.BFLOAT16, 48_128),
        (known.qwen3_235b(), Layout(tensor=8), Dtype.BFLOAT16, 48_128),
        (known.qwen3_30b(), Layout(), Dtype.BFLOAT16, 98_304),
        (known.deepseek_r1(), Layout(tensor=8), Dtype.BFLOAT16, 70_272),
        (known.deepseek_v32(), Layout(tensor=8), Dtype.BFLOAT16, 78_324),
        (known.deepseek_v32(), Layout(tensor=8), Dtype.FP8, 43_188),
        (known.llama_70b(), Layout(pipeline=2), Dtype.BFLOAT16, 163_840),
    ],
)
def test_a_token_costs_what_the_layers_of_a_rank_keep_of_it(arch, layout, dtype, expected):
    assert kv_bytes_per_token(arch, layout, dtype) == expected


@pytest.mark.parametrize(
    ("arch", "layout", "dtype", "gib", "groups", "tokens", "near"),
    [
        (known.gemma3_27b(), Layout(), Dtype.BFLOAT16, 109.86, 7, 205_696, 32),
        (known.gemma4_31b(), Layout(), Dtype.BFLOAT16, 69.75, 6, 76_176, 16),
        (known.exaone4_32b(), Layout(tensor=1), Dtype.BFLOAT16, 10.31, 4, 42_224, 32),
        (known.llama4_maverick(), Layout(tensor=8), Dtype.BFLOAT16, 26.13, 4, 1_141_712, 256),
        (known.qwen35_35b(), Layout(), Dtype.BFLOAT16, 89.91, 4, 1_178_496, 1056),
        (known.nemotron3_nano(), Layout(), Dtype.FP8, 95.04, 5, 6_644_016, 4176),
        (known.llama_8b(), Layout(), Dtype.BFLOAT16, 51.38, 1, 420_904, 128),
    ],
)
def test_the_pool_line_counts_blocks_over_groups(*, arch, layout, dtype, gib, groups, tokens, near):
    plan = planned(arch, layout, dtype=dtype)
    assert len(plan.groups) == groups
    assert abs(plan.tokens_line(plan.blocks([gib * GIB]), 8192) - tokens) <= near


@pytest.mark.parametrize(
    ("arch", "dtype", "blocks", "length", "expected"),
    [
        (known.gemma3_27b(), Dtype.BFLOAT16, 89_994, 4096, 50.05),
        (known.gemma4_31b(), Dtype.BFLOAT16, 28_569, 8192, 10.13),
        (known.gemma4_31b(), Dtype.BFLOAT16, 28_569, 10_000, 8.93),
        (known.qwen35_35b(), Dtype.BFLOAT16, 4_464, 8192, 405.8),
        (known.qwen35_35b(), Dtype.BFLOAT16, 4_464, 10_000, 343.4),
        (known.nemotron3_nano(), Dtype.FP8, 7_955, 8192, 1325.8),
        (known.nemotron3_nano(), Dtype.FP8, 7_955, 10_000, 1136.43),
        (known.qwen3_coder_next(), Dtype.BFLOAT16, 3_958, 8192, 208.3),
    ],
)
def test_a_request_costs_whole_blocks_of_every_group(arch, dtype, blocks, length, expected):
    assert float(planned(arch, dtype=dtype).concurrency(blocks, length)) == pytest.approx(expected, abs=0.05)


def test_gemma_4_gives_its_thin_layers_longer_blocks():
    plan = planned(known.gemma4_31b())
    assert sorted({group.spec.block_tokens for group in plan.groups}) == [16, 32]


@pytest.mark.parametrize(
    ("arch", "dtype", "block"),
    [
        (known.qwen35_35b(), Dtype.BFLOAT16, 1056),
        (known.nemotron3_nano(), Dtype.FP8, 4176),
        (known.qwen3_coder_next(), Dtype.BFLOAT16, 544),
    ],
)
def test_a_hybrid_raises_its_attention_block_until_a_page_holds_the_state(arch, dtype, block):
    assert planned(arch, dtype=dtype).block_tokens == block


def test_compressed_latent_attention_packs_pages_of_several_sizes():
    rules = replace(REQUEST_LINE, in_flight_tokens=16_384)
    plan = planned(known.deepseek_v4_flash(), rules=rules, dtype=Dtype.FP8)
    blocks = plan.blocks([77.53 * GIB])
    assert float(plan.concurrency(blocks, 131_072)) == pytest.approx(11.55, abs=0.005)
    assert plan.tokens_line(blocks, 131_072) == pytest.approx(1_513_358, rel=1e-4)


def test_a_pooled_scorer_packs_its_keys_beside_the_latents():
    rules = replace(REQUEST_LINE, state_cached=True, block_tokens=64)
    plan = planned(known.glm_53_flash(), Layout(tensor=8), rules)
    assert plan.block_tokens == 640
    blocks = plan.blocks([81.79 * GIB])
    assert blocks == pytest.approx(11_802, abs=1)
    assert plan.tokens_line(blocks, 131_072) == pytest.approx(7_228_559, rel=2e-4)


def test_a_request_line_of_fixed_costs_grows_with_the_length_it_is_printed_for():
    rules = replace(REQUEST_LINE, in_flight_tokens=16_384)
    plan = planned(known.deepseek_v4_flash(), rules=rules, dtype=Dtype.FP8)
    assert plan.tokens_line(10_000, 8192) * 20 < plan.tokens_line(10_000, 800_000)


def test_caching_states_costs_a_request_one_more_block_of_each_group():
    plain = planned(known.qwen35_35b())
    cached = planned(known.qwen35_35b(), rules=replace(POOL_LINE, state_cached=True))
    states = 3
    assert cached.blocks_for(8192) - plain.blocks_for(8192) == states


def test_a_hybrid_needs_a_block_for_every_sequence_it_may_run():
    plan = planned(known.qwen35_35b())
    assert plan.admits(1024, 8192, max_num_seqs=1024)
    assert not plan.admits(1023, 8192, max_num_seqs=1024)


def test_a_draft_layer_shares_the_pool():
    plain, drafting = planned(known.llama_8b()), planned(known.llama_8b(), draft=DraftLayers(count=1))
    assert (plain.block_bytes, drafting.block_bytes) == ((32 * 65_536,), (33 * 65_536,))
    assert drafting.tokens_line(drafting.blocks([51.63 * GIB]), 8192) == pytest.approx(410_128, rel=1e-3)


def test_decode_context_parallel_ranks_share_the_tokens_of_a_request():
    plan = planned(known.deepseek_r1(), Layout(tensor=8, decode_context=8))
    blocks = plan.blocks([46.8 * GIB])
    whole = planned(known.deepseek_r1(), Layout(tensor=8))
    assert plan.tokens_line(blocks, 8192) == 8 * whole.tokens_line(blocks, 8192)


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [(64, 2, (32, 32)), (61, 4, (15, 15, 16, 15)), (62, 4, (15, 16, 16, 15)), (63, 4, (16, 16, 16, 15))],
)
def test_layers_left_over_go_to_late_stages_but_not_the_last(layers, stages, expected):
    assert stage_sizes(layers, stages) == expected


def test_the_poorest_stage_binds_all():
    plan = planned(known.llama_70b(), Layout(pipeline=2))
    assert plan.blocks([10 * GIB, 5 * GIB]) == plan.blocks([5 * GIB, 10 * GIB]) == plan.blocks([5 * GIB] * 2)


ARCHITECTURES = [
    known.llama_8b(),
    known.deepseek_v32(),
    known.gemma4_31b(),
    known.qwen35_35b(),
    known.nemotron3_nano(),
    known.deepseek_v4_flash(),
    known.glm_53_flash(),
]


@given(
    arch=st.sampled_from(ARCHITECTURES),
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.sampled_from([1, 2, 3]),
    have=st.integers(0, 2**37),
    more=st.integers(0, 2**35),
    length=st.integers(1, 200_000),
    line=st.booleans(),
)
def test_more_memory_is_never_fewer_tokens(*, arch, tensor, pipeline, have, more, length, line):
    layout = Layout(tensor=tensor, pipeline=pipeline)
    plan = planned(arch, layout, replace(POOL_LINE, request_line=line))
    less = plan.blocks([have] * pipeline)
    assert 0 <= less <= plan.blocks([have + more] * pipeline)
    assert plan.tokens_line(less, length) <= plan.tokens_line(plan.blocks([have + more] * pipeline), length)


@given(arch=st.sampled_from(ARCHITECTURES), tensor=st.sampled_from([1, 2, 4]), length=st.integers(1, 200_000))
def test_every_layer_is_in_exactly_one_group_and_a_request_fits_where_it_is_admitted(arch, tensor, length):
    layout = Layout(tensor=tensor)
    layers = cache_layers(arch, layout, POOL_LINE, dtype=Dtype.BFLOAT16)
    plan = plan_cache(layers, POOL_LINE)
    assert sum(len(group.layers) for group in plan.groups) == len(layers)
    assert plan.admits(plan.blocks([plan.bytes_for(length)]), length)
    assert not plan.admits(plan.blocks([plan.bytes_for(length) - 1]), length)


@given(arch=st.sampled_from(ARCHITECTURES), blocks=st.integers(0, 100_000), limit=st.integers(1, 500_000))
def test_the_longest_admitted_length_is_the_longest(arch, blocks, limit):
    plan = planned(arch)
    longest = plan.longest(blocks, limit)
    assert longest == 0 or plan.admits(blocks, longest)
    assert longest == limit or not plan.admits(blocks, longest + 1)
