"""What is played in a cell: requests that a client would send, and those of a trace as they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from autoscaling_cells import LEAPS, PUBLISHED, SYNTHETIC, Cell, Size, scenario_for, scored, stage_of
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


@pytest.mark.parametrize(("name", "lengths"), PUBLISHED.items())
def test_a_published_run_is_played_at_its_own_size_from_one_replica_on(
    name: str, lengths: tuple[int, int]
) -> None:
    played = Cell(trace=name, model="Qwen/Qwen3-32B", gpu="H100")
    scenario, scale = scenario_for(played, SIZE)
    arrivals = stage_of(played, SIZE, 1).arrivals
    assert (scale, scenario.most, scenario.hardware.ready) == (1.0, 10, 10)
    assert scenario.limits.max_queued is None, "nobody was refused there"
    assert len(arrivals) == pytest.approx(12_000, rel=0.03)
    assert {*zip(arrivals.inputs, arrivals.outputs, strict=True)} == {lengths}
    usual = {"wva1": {"kv_full": 0.8, "queue_full": 5.0}}
    (row,) = scored(played, SIZE, 1, usual, ["wva1"], sweep=False)
    assert row["replicas_mean"] < row["replicas_most"] <= 4, "one more at a time, from one on"
    begun = replace(SIZE, begin=9)
    (row,) = scored(played, begun, 1, usual, ["wva1"], sweep=False)
    assert row["replicas_mean"] > 5
