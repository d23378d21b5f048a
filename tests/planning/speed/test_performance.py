"""Predictions obey what physics and queueing oblige them to, whatever the constants are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import Gpu, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load, Performance
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.speed.performance import Replica

MODELS = (
    "Qwen/Qwen3-32B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-R1",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
)
GPUS = ("H100-SXM-80GB", "B200-SXM", "L40S-48GB", "MI300X")
LAYOUTS = (
    Layout(),
    Layout(tensor=4),
    Layout(tensor=2, pipeline=2),
    Layout(data=8, expert_parallel=True),
    Layout(tensor=8),
)

FULL_STEPS = 0.02
"""How much a token may gain from prompts that push out a part of one sequence: `running` is printed whole. And how much a
request may where far more are in flight than steps can feed, so that fewer decode in the step it waits for."""

models = st.sampled_from(MODELS)
gpus = st.sampled_from(GPUS)
layouts = st.sampled_from(LAYOUTS)
lengths = st.integers(1, 20_000)
loads = st.builds(
    lambda i, o, c: Load(input_tokens=i, output_tokens=o, concurrency=c),
    lengths,
    lengths,
    st.integers(1, 2_000),
)
pools = st.one_of(st.none(), st.floats(1_000, 5_000_000))


def model(name: str) -> ModelFacts:
    found = lookup(name)
    assert found is not None
    return found


def replica(
    name: str, gpu: Gpu | str, layout: Layout, kv_tokens: float | None = None, **changed: object
) -> Replica:
    engine = EngineSettings(
        max_model_len=40_000, max_num_seqs=1_024, max_num_batched_tokens=8_192, utilization=0.9
    )
    return Replica.of(
        model=model(name),
        gpu=gpu_named(gpu) if isinstance(gpu, str) else gpu,
        layout=layout,
        engine=engine_facts(),
        settings=replace(engine, **changed),  # type: ignore[arg-type]
        kv_tokens=kv_tokens,
    )


def at(place: Replica, load: Load) -> Performance:
    return place.at(load)


@given(models, gpus, layouts, loads, pools)
def test_every_answer_is_positive_and_its_intervals_are_ordered(name, gpu, layout, load, pool):
    answer = at(replica(name, gpu, layout, pool), load)
    assert 0 < answer.ttft_ms.low <= answer.ttft_ms.mid <= answer.ttft_ms.high
    assert 0 < answer.tpot_ms.low <= answer.tpot_ms.mid <= answer.tpot_ms.high
    assert 1 <= answer.running <= max(1, load.concurrency)
    assert answer.bound in {"memory", "compute", "communication", "overhead", "cache"}


@given(models, gpus, layouts, loads, pools)
def test_throughput_is_what_a_closed_loop_of_these_times_makes(name, gpu, layout, load, pool):
    answer = at(replica(name, gpu, layout, pool), load)
    cycle = (answer.ttft_ms.mid + load.output_tokens * answer.tpot_ms.mid) / 1_000
    assert answer.requests_per_second * cycle == pytest.approx(load.concurrency)
    assert answer.output_tokens_per_second == pytest.approx(answer.requests_per_second * load.output_tokens)


@given(models, gpus, layouts, loads, st.floats(1, 4))
def test_more_bandwidth_is_never_a_slower_token(name, gpu, layout, load, factor):
    slow = gpu_named(gpu)
    fast = replace(slow, bandwidth=int(slow.bandwidth * factor))
    assert at(replica(name, fast, layout), load).tpot_ms.mid <= at(
        replica(name, slow, layout), load
    ).tpot_ms.mid * (1 + 1e-9)


@given(st.tuples(models, gpus, layouts, pools), loads, st.integers(0, 500))
@example(
    ("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(), None),
    Load(input_tokens=1, output_tokens=1, concurrency=1),
    1,
)
def test_more_requests_in_flight_are_never_faster(where, load, more):
    place = replica(*where)
    few, many = at(place, load), at(place, replace(load, concurrency=load.concurrency + more))
    assert many.tpot_ms.mid >= few.tpot_ms.mid * (1 - 1e-9)
    assert many.ttft_ms.mid >= few.ttft_ms.mid * (1 - 1e-9)


short_answers = st.builds(
    lambda i, o, c: Load(input_tokens=i, output_tokens=o, concurrency=c),
    st.integers(1, 2_048),
    st.integers(1, 100),
    st.integers(1, 2_000),
)


@given(
    st.tuples(models, gpus, layouts, pools),
    short_answers,
    st.sampled_from([512, 2_048, 8_192]),
    st.integers(1, 2_000),
)
@example(
    ("openai/gpt-oss-120b", "B200-SXM", Layout(tensor=2, pipeline=2), None),
    Load(input_tokens=9, output_tokens=2, concurrency=54),
    512,
    9,
)
@example(
    ("openai/gpt-oss-120b", "H100-SXM-80GB", Layout(tensor=4), 2_000.0),
    Load(input_tokens=1, output_tokens=2, concurrency=1_024),
    2_048,
    1,
)
@example(
    ("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(), None),
    Load(input_tokens=256, output_tokens=1, concurrency=16),
    2_048,
    1,
)
def test_requests_never_get_more_with_longer_prompts_where_fewer_of_them_fit_a_step(
    where, load, budget, more
):
    place = replica(*where, max_num_batched_tokens=budget)
    long = replace(load, input_tokens=load.input_tokens + more)
    assert at(place, long).requests_per_second <= at(place, load).requests_per_second * (1 + FULL_STEPS)


@given(models, gpus, layouts, loads, st.integers(0, 10_000))
def test_longer_prompts_make_faster_tokens_only_where_they_leave_room_for_fewer(
    name, gpu, layout, load, more
):
    place = replica(name, gpu, layout)
    short, long = at(place, load), at(place, replace(load, input_tokens=load.input_tokens + more))
    assert long.requests_per_second <= short.requests_per_second * (1 + FULL_STEPS)
    assert long.running < short.running or long.tpot_ms.mid >= short.tpot_ms.mid * (1 - FULL_STEPS)


@given(models, gpus, layouts, loads, st.floats(0, 1))
@example(
    "Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(), Load(input_tokens=1, output_tokens=1, concurrency=1), 1.0
)
def test_a_shared_prefix_is_never_slower_where_it_is_cached(name, gpu, layout, load, share):
    shared = replace(load, shared_prefix_share=share)
    place = replica(name, gpu, layout)
    own, cached = at(place, load), at(place, shared)
    assert cached.requests_per_second >= own.requests_per_second * (1 - 1e-9)
    assert cached.running > own.running or cached.tpot_ms.mid <= own.tpot_ms.mid * (1 + FULL_STEPS)
    uncached = replica(name, gpu, layout, prefix_caching=False)
    assert at(uncached, shared) == at(uncached, load)


def test_a_pool_that_holds_half_the_requests_makes_the_other_half_wait_a_lifetime():
    load = Load(input_tokens=1_000, output_tokens=1_000, concurrency=64)
    ample = at(replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=2)), load)
    scarce = at(replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=2), 32 * 1_500.0), load)
    assert scarce.bound == "cache"
    assert scarce.running == 32
    assert scarce.tpot_ms.mid < ample.tpot_ms.mid
    lifetime = load.output_tokens * scarce.tpot_ms.mid
    assert lifetime < scarce.ttft_ms.mid < 1.2 * lifetime
    assert scarce.ttft_ms.low < 0.6 * scarce.ttft_ms.mid, (
        "a slightly larger pool would make the wait far shorter"
    )


def test_each_data_parallel_rank_has_a_pool_of_its_own():
    load = Load(input_tokens=1_000, output_tokens=1_000, concurrency=64)
    ranks = Layout(data=8, expert_parallel=True)
    assert at(replica("deepseek-ai/DeepSeek-R1", "B200-SXM", ranks, 6_000.0), load).running == 32


def test_max_num_seqs_caps_what_runs_together():
    load = Load(input_tokens=1_000, output_tokens=1_000, concurrency=64)
    answer = at(replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=2), max_num_seqs=16), load)
    assert answer.running == 16
    assert answer.bound == "cache"


@pytest.mark.parametrize(
    ("gpu", "name", "said"),
    [
        ("H100-SXM-80GB", "Qwen/Qwen3-32B", ()),
        ("L40S-48GB", "Qwen/Qwen3-32B", ("gpu ada",)),
        ("MI300X", "Qwen/Qwen3-32B", ("gpu cdna3",)),
    ],
)
def test_hardware_that_nothing_was_fitted_on_is_said_and_has_wider_intervals(gpu, name, said):
    answer = at(
        replica(name, gpu, Layout(tensor=2)), Load(input_tokens=500, output_tokens=500, concurrency=8)
    )
    assert answer.unfitted == said
    known = at(
        replica("Qwen/Qwen3-32B", "H200-SXM-141GB", Layout()),
        Load(input_tokens=500, output_tokens=500, concurrency=8),
    )
    width = answer.tpot_ms.high / answer.tpot_ms.mid
    assert width >= known.tpot_ms.high / known.tpot_ms.mid * (1.2 if said else 1 - 1e-9)


def test_an_eight_bit_cache_is_read_faster():
    load = Load(input_tokens=8_000, output_tokens=1_000, concurrency=32)
    wide = at(replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=4)), load)
    narrow = at(replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=4), kv_dtype=Dtype.FP8), load)
    assert narrow.tpot_ms.mid < wide.tpot_ms.mid


def test_steps_that_prompts_fill_feed_no_more_than_they_carry():
    load = Load(input_tokens=8_000, output_tokens=500, concurrency=64)
    small, large = (replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout(tensor=4), max_num_batched_tokens=tokens)
                    for tokens in (512, 8_192))  # fmt: skip
    # A request brings 16 prompt tokens for each that it is answered, so 512 tokens a step do for 30 requests.
    assert (at(small, load).running, at(large, load).running) == (30, 64)
    assert at(small, load).output_tokens_per_second < at(large, load).output_tokens_per_second
    assert at(small, load).ttft_ms.mid > at(large, load).ttft_ms.mid
    assert at(small, load).bound != "cache"


@given(models, gpus, layouts, loads, st.sampled_from([128, 256, 512, 2_048]))
def test_no_more_tokens_are_computed_in_a_step_than_it_takes(name, gpu, layout, load, tokens):
    answer = at(replica(name, gpu, layout, max_num_batched_tokens=tokens, max_num_seqs=tokens), load)
    each = 1 + load.input_tokens / load.output_tokens
    assert answer.running <= max(1, round(layout.data * layout.pipeline * tokens / each))
