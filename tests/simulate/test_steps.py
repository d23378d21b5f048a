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
from plimsoll.simulate.steps import Limits, believed
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
