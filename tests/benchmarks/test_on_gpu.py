"""What an H100 showed, kept below benchmarks/measured, and what is said of it without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import on_gpu
from on_gpu_said import summary
from plimsoll.simulate.fidelity import OnGpu, kept

DOCS = Path(on_gpu.__file__).parents[1] / "docs" / "simulate.md"
KEPT = Path(on_gpu.__file__).parent / "measured" / "h100"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return on_gpu.compared(KEPT)


def test_the_cache_of_a_real_engine_is_within_one_percent_of_the_ledgers(report: dict[str, Any]) -> None:
    (start,) = report["start"]
    assert abs(start["ledger_error_pct"]) < 1


def test_a_short_pool_preempts_in_the_engine_model_as_it_does_on_the_gpu(report: dict[str, Any]) -> None:
    crowded = [run for run in report["turns"] if run["load"].endswith("at once")]
    assert {run["side"] for run in crowded} == {"before", "after"}
    for run in crowded:
        assert run["played"]["preemptions"] == pytest.approx(run["preemptions"], rel=0.1)
        assert run["played"]["tokens_s"] == pytest.approx(run["tokens_s"], rel=0.05)
        assert run["played"]["e2e_p99_s"] == pytest.approx(run["e2e_p99_s"], rel=0.05)


def test_output_of_closed_loops_is_within_an_eighth_of_the_measured_one(report: dict[str, Any]) -> None:
    for point in report["speed"]:
        assert point["played_tokens_s"] == pytest.approx(float(point["output_tokens_s"]), rel=0.125)
        assert point["played_tpot_ms"] == pytest.approx(float(point["tpot_ms"]), rel=0.125)


def test_what_was_measured_is_compared_without_a_gpu() -> None:
    argv = [sys.executable, on_gpu.__file__, "--kept", str(KEPT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"```\n{done.stdout}```" in DOCS.read_text(), "docs/simulate.md shows what it prints"


def test_the_errors_that_are_told_are_of_the_model_that_runs(report: dict[str, Any]) -> None:
    told = summary(report)
    assert told is not None, "run benchmarks/on_gpu.py --kept benchmarks/measured/h100 --write"
    assert OnGpu.model_validate(told) in kept().gpu


def test_what_is_not_measured_whole_tells_no_errors(report: dict[str, Any]) -> None:
    assert [summary({**report, part: []}) for part in report] == [None, None, None]


def test_a_folder_in_which_nothing_was_measured_is_said_to_be_one(tmp_path: Path) -> None:
    argv = [sys.executable, on_gpu.__file__, "--kept", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert "nothing that was measured stands in" in done.stderr
