"""What is played in a cell: requests that a client would send, and those of a trace as they are."""

from pathlib import Path

import pytest

from autoscaling_cells import LEAPS, SYNTHETIC, Cell, Size, scenario_for, stage_of
from plimsoll.simulate.arrivals import draw_arrivals
from plimsoll.simulate.router import Routing
from plimsoll.simulate.traces import load_trace

SIZE = Size(replicas=2, days=0.1, routing=Routing.SERVICE)


def cell(trace: str) -> Cell:
    return Cell(trace=trace, model="meta-llama/Llama-3.1-8B-Instruct", gpu="H100")


@pytest.mark.parametrize("trace", [SYNTHETIC[0], LEAPS])
def test_lengths_that_are_drawn_are_no_longer_than_the_context(trace: str):
    scenario, _ = scenario_for(cell(trace), SIZE)
    played = stage_of(cell(trace), SIZE, 1).arrivals
    assert played.shortened > 0
    assert max(map(sum, zip(played.inputs, played.outputs, strict=True))) <= scenario.longest


def test_lengths_of_a_trace_are_played_as_they_are(tmp_path: Path):
    file = tmp_path / "requests.csv"
    rows = [f"{at},{tokens},200" for at, tokens in enumerate([*[300, 900] * 300, 200_000] * 2)]
    file.write_text("\n".join(("arrival_s,input_tokens,output_tokens", *rows)) + "\n")
    scenario, scale = scenario_for(cell(str(file)), SIZE)
    played = stage_of(cell(str(file)), SIZE, 1).arrivals
    assert max(played.inputs) > scenario.longest, "so that the bound would show"
    assert played == draw_arrivals(load_trace(file), scenario.lengths, seed=1, scale=scale)
