"""A cell that cannot be played is left out and told with its reason, and the others lose nothing by it."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import autoscaling
from autoscaling_cells import SYNTHETIC, Cell, Size
from plimsoll.simulate.router import Routing
from tests.benchmarks.test_autoscaling import FIGURES, row

MODEL = "Qwen/Qwen3-8B"
"""Made for 40,960 tokens."""
WHY = "default/benchmark: the plan is invalid, so nothing would run: workload.contextTokens is 100,352, but the model is made for 40,960 tokens"


@pytest.fixture
def traces(tmp_path: Path) -> tuple[str, str]:
    """One with prompts that are too long for the model, and one without."""
    for name, tokens in (("long.csv", 100_000), ("short.csv", 1000)):
        lines = (f"{at},{tokens},200" for at in range(600))
        (tmp_path / name).write_text("\n".join(("arrival_s,input_tokens,output_tokens", *lines)) + "\n")
    return str(tmp_path / "long.csv"), str(tmp_path / "short.csv")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The program, in which cells are scored without being played."""

    def once(cell: Cell, *_: object, **_more: object) -> list[dict[str, Any]]:
        told = {"trace": Path(cell.trace).name, "model": cell.model, "gpu": cell.gpu, "requests": 10}
        return [{**row("plimsoll", 10, 99.5), **dict.fromkeys(FIGURES, 1.0), **told}]

    monkeypatch.setattr(autoscaling, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(autoscaling, "tuned", lambda *_: {})
    monkeypatch.setattr(autoscaling, "scored", once)
    fixed = ("--gpus", "H100", "--seeds", "1", "--policies", "plimsoll")
    monkeypatch.setattr("sys.argv", ["autoscaling.py", *words, *fixed])
    return autoscaling.main()


def test_it_is_told_and_the_others_are_played(
    traces: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *traces, "--models", MODEL) == 0
    told = capsys.readouterr()
    assert f"note: left out: {MODEL} on H100, long.csv: {WHY}" in told.err
    assert f"\n  left out: long.csv · {MODEL} · H100: {WHY}" in told.out
    assert f"\nshort.csv · {MODEL} · H100\n" in told.out


def test_data_lists_it_too_and_nothing_is_tuned_on_it(
    traces: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *traces, "--models", MODEL, "--json", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    (left_out,) = found["left_out"]
    assert (left_out["trace"], left_out["model"], left_out["gpu"]) == ("long.csv", MODEL, "H100")
    assert left_out["why"].startswith(WHY)
    assert [one["trace"] for one in found["cells"]] == ["short.csv"]
    assert [one["on"] for one in found["tuned"].values()] == [SYNTHETIC[0]]


def test_where_none_can_be_played_that_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, SYNTHETIC[0], "--models", "BAAI/bge-m3") == 3
    told = capsys.readouterr().err
    assert told.startswith(
        "error: BAAI/bge-m3 on H100, synthetic-day: default/benchmark: the plan is invalid"
    )
    assert told.count("\n") == 1


def test_a_trace_for_which_nothing_can_be_tuned_is_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(trace="some.csv", model=MODEL, gpu="H100")
    monkeypatch.setattr(
        autoscaling,
        "unplannable",
        lambda cells, _: {one: "it is too long" for one in cells if one.trace in SYNTHETIC},
    )
    size = Size(replicas=2, days=None, routing=Routing.SERVICE)
    why = {cell: f"nothing is tuned on {SYNTHETIC[0]}: it is too long"}
    assert autoscaling.left_out_of([cell], size) == why
