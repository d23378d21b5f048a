"""Amounts of work have the right units and the right shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import Architecture, Attention, DenseFfn, Layer, MoeFfn, Part
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.speed.formats import compute_format, is_native, peak, stored_format
from plimsoll.planning.speed.layer_work import launches
from plimsoll.planning.speed.roofline import (
    NETWORK_BYTES_PER_SECOND,
    TimeCost,
    Work,
    decode_step,
    link_rate,
    prompt,
    share_of_experts_hit,
)

H100, B200, A100 = gpu_named("H100-SXM-80GB"), gpu_named("B200-SXM"), gpu_named("A100-SXM-80GB")
ATTENTION = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)


def dense(layers: int = 4, mixer: Attention = ATTENTION) -> Architecture:
    return Architecture(
        name="X",
        layers=(Layer(mixer=mixer, ffn=DenseFfn(intermediate=14_336)),) * layers,
        hidden=4_096,
        vocab=128_000,
        max_positions=8_192,
        dtype=Dtype.BFLOAT16,
    )


def work(arch: Architecture, layout: Layout | None = None, gpu=H100) -> Work:
    return Work.of(arch, gpu, layout or Layout(), None)


def test_a_dense_step_reads_every_weight_once_over_the_bandwidth():
    attention = 4_096 * (32 + 8 + 8) * 128 + 32 * 128 * 4_096
    parameters = 4 * (attention + 3 * 4_096 * 14_336) + 128_000 * 4_096
    seconds = decode_step(work(dense()), 1, 100)[TimeCost.DENSE_WEIGHTS]
    assert seconds == pytest.approx(2 * parameters / H100.bandwidth, rel=0.001)


def test_the_cache_is_read_by_every_sequence_and_cut_over_ranks_until_kv_heads_run_out():
    def read(tensor: int) -> float:
        return decode_step(work(dense(), Layout(tensor=tensor)), 10, 1_000)[TimeCost.CACHE_READ]

    assert read(1) == pytest.approx(10 * 1_000 * 4 * 2 * 8 * 128 * 2 / H100.bandwidth)
    assert read(8) == pytest.approx(read(1) / 8)
    assert read(16) == read(8)


def test_twice_the_prompt_is_twice_the_products_and_four_times_the_attention():
    one, two = prompt(work(dense()), 1_000), prompt(work(dense()), 2_000)
    assert two[TimeCost.PROMPT_DENSE] == pytest.approx(2 * one[TimeCost.PROMPT_DENSE])
    assert two[TimeCost.PROMPT_ATTENTION] == pytest.approx(4 * one[TimeCost.PROMPT_ATTENTION])


def test_what_comes_after_a_cached_prefix_still_attends_to_it():
    fresh, after = prompt(work(dense()), 1_000), prompt(work(dense()), 1_000, before=1_000)
    assert after[TimeCost.PROMPT_DENSE] == fresh[TimeCost.PROMPT_DENSE]
    assert after[TimeCost.PROMPT_ATTENTION] == pytest.approx(3 * fresh[TimeCost.PROMPT_ATTENTION])


@given(st.integers(1, 16), st.integers(16, 512), st.floats(0, 10_000), st.floats(0, 10_000))
def test_the_share_of_experts_hit_grows_from_one_tokens_choice_to_all(top_k, experts, few, more):
    ffn = MoeFfn(experts=experts, top_k=top_k, intermediate=1)
    assert share_of_experts_hit(ffn, 1) == pytest.approx(top_k / experts)
    assert 0 <= share_of_experts_hit(ffn, few) <= share_of_experts_hit(ffn, few + more) <= 1


def test_only_layouts_with_ranks_to_reduce_over_communicate():
    alone = decode_step(work(dense()), 8, 100)
    assert alone[TimeCost.ALL_REDUCE] == alone[TimeCost.ALL_REDUCE_BYTES] == 0
    pair = decode_step(work(dense(), Layout(tensor=2)), 8, 100)
    assert pair[TimeCost.ALL_REDUCE] == 2 * 4
    assert pair[TimeCost.ALL_REDUCE_BYTES] == pytest.approx(
        8 * 8 * 4_096 * 2 / 2 / H100.link.bytes_per_second
    )


def test_a_pipeline_of_one_sequence_reads_all_stages_one_after_the_other():
    whole, staged = (decode_step(work(dense(), Layout(pipeline=p)), 1, 100) for p in (1, 4))
    assert staged[TimeCost.DENSE_WEIGHTS] == whole[TimeCost.DENSE_WEIGHTS]
    assert staged[TimeCost.LAUNCH] == whole[TimeCost.LAUNCH]


@pytest.mark.parametrize(("ranks", "rate"), [(8, H100.link.bytes_per_second), (16, NETWORK_BYTES_PER_SECOND)])
def test_ranks_beyond_the_fabric_talk_over_the_network(ranks, rate):
    assert link_rate(H100, ranks) == rate


@pytest.mark.parametrize(
    ("name", "gpu", "part", "stored", "multiplied"),
    [
        ("Qwen/Qwen3-32B", H100, Part.FFN, Dtype.BFLOAT16, Dtype.BFLOAT16),
        ("openai/gpt-oss-120b", H100, Part.EXPERTS, Dtype.MXFP4, Dtype.BFLOAT16),
        ("openai/gpt-oss-120b", B200, Part.EXPERTS, Dtype.MXFP4, Dtype.MXFP4),
        ("openai/gpt-oss-120b", B200, Part.ATTENTION, Dtype.BFLOAT16, Dtype.BFLOAT16),
        ("deepseek-ai/DeepSeek-R1", H100, Part.EXPERTS, Dtype.FP8, Dtype.FP8),
        ("deepseek-ai/DeepSeek-R1", A100, Part.EXPERTS, Dtype.FP8, Dtype.BFLOAT16),
        ("moonshotai/Kimi-K2.5", B200, Part.EXPERTS, Dtype.INT4, Dtype.BFLOAT16),
    ],
)
def test_weights_are_multiplied_in_what_the_device_has(name, gpu, part, stored, multiplied):
    model = lookup(name)
    assert model is not None
    assert stored_format(model.architecture, part) is stored
    assert compute_format(model.architecture, part, gpu) is multiplied
    assert is_native(stored, gpu) is (stored is multiplied)
    assert peak(gpu, multiplied) == gpu.flops[multiplied]


def test_unpacked_experts_take_the_cores_time_instead_of_the_memorys():
    model = lookup("openai/gpt-oss-120b")
    assert model is not None
    unpacked, native = (decode_step(work(model.architecture, gpu=gpu), 8, 100) for gpu in (H100, B200))
    assert unpacked[TimeCost.UNPACKING] > 0 == unpacked[TimeCost.EXPERT_WEIGHTS]
    assert native[TimeCost.EXPERT_WEIGHTS] > 0 == native[TimeCost.UNPACKING]


def test_layers_that_do_more_launch_more():
    plain = Layer(mixer=ATTENTION, ffn=DenseFfn(intermediate=8))
    shared = Layer(mixer=ATTENTION, ffn=MoeFfn(experts=8, top_k=2, intermediate=8, shared_intermediate=8))
    assert launches(Layer(mixer=ATTENTION, ffn=None)) < launches(plain) < launches(shared)
