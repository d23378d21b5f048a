"""How fast a planned replica is taken to be when it is simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Correction, Load
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, believed, step_times
from tests.planning.speed.test_performance import model, replica
from tests.render.cases import entry

NAME, GPU = "Qwen/Qwen3-32B", "H100-SXM-80GB"
ALONE = Load(input_tokens=512, output_tokens=128, concurrency=1)
LIMITS = Limits(
    blocks=4000, block_size=16, max_num_seqs=1024, max_num_batched_tokens=8192, max_model_len=40_000
)
SLOWER = Correction(ttft=1.6, tpot=0.7, ttft_spread=1.5, tpot_spread=1.2, taught_by="a ramp")


def answered(taught: Correction | None) -> tuple[float, float]:
    """Seconds to the first token and for each further one, of a request that nobody is beside."""
    place = replica(NAME, GPU, Layout())
    performance = replace(place.at(ALONE), learned=taught)
    chosen = replace(entry(), settings=place.settings, load=ALONE, performance=performance)
    times = believed(chosen, model=model(NAME), gpu=gpu_named(GPU), engine=engine_facts(), limits=LIMITS)
    engine = Engine(times, LIMITS)
    asked = Request(0.0, ALONE.input_tokens, ALONE.output_tokens)
    assert engine.submit(asked, 0.0)
    engine.advance(1000.0)
    first = asked.first_at - asked.arrival
    return first, (asked.finished_at - asked.first_at) / (ALONE.output_tokens - 1)


def test_what_a_ramp_has_taught_moves_the_simulated_engine_as_it_moves_the_plan():
    first, each = answered(None)
    slower_first, faster_each = answered(SLOWER)
    assert slower_first == pytest.approx(SLOWER.ttft * first, rel=0.02)
    assert faster_each == pytest.approx(SLOWER.tpot * each, rel=0.02)


@pytest.mark.parametrize("layout", [Layout(tensor=4), Layout(tensor=4, pipeline=2), Layout(pipeline=4)])
def test_a_lone_prompt_passes_through_all_stages_and_delays_the_others_by_one(layout: Layout) -> None:
    place = replica(NAME, GPU, layout)
    load = Load(input_tokens=4000, output_tokens=100, concurrency=1)
    planned = place.at(load)
    times = step_times(place, prompt_tokens=4000, context=4050)
    engine = Engine(times, LIMITS)
    alone = Request(0.0, 4000, 100)
    engine.submit(alone, 0.0)
    engine.advance(1000.0)
    assert 1000 * alone.first_at == pytest.approx(planned.ttft_ms.mid, rel=0.15)

    begin = engine.now
    for _ in range(20):
        engine.submit(Request(begin, 4000, 1), begin)
    engine.advance(begin + 1000.0)
    prompts = layout.pipeline * (engine.now - begin) / 20
    outside = times.outside(4000, 4000, beside=1) - (layout.pipeline - 1) * times.chunk
    assert prompts + outside == pytest.approx(alone.first_at, rel=0.05)


@pytest.mark.parametrize("layout", [Layout(tensor=4), Layout(tensor=4, pipeline=2), Layout(pipeline=4)])
def test_a_simulated_replica_carries_at_least_about_what_is_planned(layout: Layout) -> None:
    place = replica(NAME, GPU, layout)
    users, given, asked = 64, 4000, 100
    planned = place.at(Load(input_tokens=given, output_tokens=asked, concurrency=users))
    engine = Engine(
        step_times(place, prompt_tokens=given, context=given + asked / 2),
        replace(LIMITS, blocks=40_000, max_num_batched_tokens=8192 * layout.pipeline),
    )
    for place_of in range(users):
        engine.submit(Request(0.1 * place_of, given, asked), 0.1 * place_of)
    done = 0
    while done < 10 * users:
        engine.advance(engine.now + 0.02)
        ended, engine.finished = engine.finished, []
        done += len(ended)
        for one in ended:
            again = max(engine.now, one.finished_at)
            engine.submit(Request(again, given, asked), again)
    assert done / engine.now > 0.9 * planned.requests_per_second
