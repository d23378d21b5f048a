"""What an H100 and an H200 showed, kept below benchmarks/measured, and what is said of them without one."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import on_gpu
from on_gpu_said import rows_of, summary
from plimsoll.simulate.fidelity import OnGpu, kept

DOCS = Path(on_gpu.__file__).parents[1] / "docs" / "simulate.md"
MEASURED = Path(on_gpu.__file__).parent / "measured"
KEPT = {each.name: each for each in sorted(MEASURED.iterdir())}
QUICK = {
    "decode": [0.0, *[0.002] * 1024],
    "kv_token": 0.0,
    "chunk": 0.0,
    "prompt_token": 0.0,
    "seen_token": 0.0,
}
"""Step times."""
MOE = "Qwen/Qwen3-30B-A3B"


@pytest.fixture(scope="module", params=KEPT)
def folder(request: pytest.FixtureRequest) -> Path:
    return KEPT[request.param]


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return on_gpu.compared(folder)


def test_the_cache_of_a_real_engine_is_within_one_percent_of_the_ledgers(report: dict[str, Any]) -> None:
    (start,) = report["start"]
    assert abs(start["ledger_error_pct"]) < 1


def test_a_short_pool_preempts_in_the_engine_model_as_it_does_on_the_gpu(report: dict[str, Any]) -> None:
    for side in ("before", "after"):
        runs = [run for run in report["turns"] if run["side"] == side and run["load"].endswith("at once")]
        played = sum(run["played"]["preemptions"] for run in runs)
        assert played == pytest.approx(sum(run["preemptions"] for run in runs), rel=0.125)
        for name in ("tokens_s", "e2e_p99_s"):
            assert median(run["played"][name] / run[name] for run in runs) == pytest.approx(1, rel=0.05)


def test_a_watermark_spares_four_fifths_of_preemptions_and_costs_nothing(report: dict[str, Any]) -> None:
    runs = [run for run in report["turns"] if run["load"].endswith("at once")]
    before, after = ([run for run in runs if run["side"] == side] for side in ("before", "after"))
    assert sum(run["preemptions"] for run in after) <= 0.2 * sum(run["preemptions"] for run in before)
    for old, new in zip(by_seed(before), by_seed(after), strict=True):
        assert new["tokens_s"] >= old["tokens_s"]
        assert new["e2e_p99_s"] <= old["e2e_p99_s"]
        assert new["max_gap_s"] <= old["max_gap_s"]


def by_seed(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(runs, key=lambda run: int(run["seed"]))


def test_output_of_closed_loops_is_within_a_quarter_of_the_measured_one(report: dict[str, Any]) -> None:
    for point in report["speed"]:
        assert point["played_tokens_s"] == pytest.approx(float(point["output_tokens_s"]), rel=0.25)
        assert point["played_tpot_ms"] == pytest.approx(float(point["tpot_ms"]), rel=0.3)


def test_what_was_measured_is_compared_without_a_gpu(folder: Path) -> None:
    argv = [sys.executable, on_gpu.__file__, "--kept", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"```\n{done.stdout}```" in DOCS.read_text(), "docs/simulate.md shows what it prints"


def test_the_errors_that_are_told_are_of_the_model_that_runs(folder: Path, report: dict[str, Any]) -> None:
    told = summary(report)
    assert told is not None, f"run benchmarks/on_gpu.py --kept benchmarks/measured/{folder.name} --write"
    assert OnGpu.model_validate(told) in kept().gpu


def test_what_is_not_measured_whole_tells_no_errors(report: dict[str, Any]) -> None:
    assert [summary({**report, part: []}) for part in report] == [None, None, None]


def test_a_folder_in_which_nothing_was_measured_is_said_to_be_one(tmp_path: Path) -> None:
    argv = [sys.executable, on_gpu.__file__, "--kept", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert "nothing that was measured stands in" in done.stderr


def measured(out: Path, *words: str, engine: str = "") -> subprocess.CompletedProcess[str]:
    """By a stand-in for the engine, which goes by step times of its own."""
    root, times = Path(on_gpu.__file__).parents[1], out / "times.json"
    times.write_text(json.dumps(QUICK))
    here = f"{sys.executable} -m standin --times={times} {engine}"
    named = ("--gpu=H200", f"--engine={here}", f"--model={MOE}", f"--out={out}", "--length=2048")
    return subprocess.run(
        [sys.executable, on_gpu.__file__, *named, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"PATH": os.defpath, "PYTHONPATH": f"{root / 'operator'}:{root / 'e2e'}"},
    )


def test_no_point_begins_after_the_seconds_that_are_given(tmp_path: Path) -> None:
    words = ("--only", "start", "speed", "--shapes=64:32", "--users", "1", "2", "--seconds=0.001")
    done = measured(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    with (tmp_path / on_gpu.POINTS).open(newline="") as lines:
        assert [row["concurrency"] for row in csv.DictReader(lines)] == ["1"], "which took longer than that"
    assert "no time is left for 2 users of 64:32" in done.stderr


def test_a_crowd_alone_meets_both_engines_with_each_seed_in_turns(tmp_path: Path) -> None:
    words = ("--only=turns", "--crowded", "--crowd=4", "--requests=4", "--seeds=2", "--pool=2048")
    done = measured(tmp_path, *words, "--slo=ttft=60000,itl=60000")
    assert done.returncode == 0, done.stderr
    runs = rows_of(tmp_path / on_gpu.RUNS)
    order = [("before", 1), ("after", 1), ("after", 2), ("before", 2)]
    assert [(run["side"], run["seed"]) for run in runs] == order
    assert {(run["load"], run["slo_pct"]) for run in runs} == {("4 at once", 100.0)}
    assert all((run["watermark"] > 0) == (run["side"] == "after") for run in runs)
    assert "slo_pct" in done.stdout.partition("load, seed: watermark")[2]


def test_an_engine_that_does_not_start_in_time_is_given_up(tmp_path: Path) -> None:
    done = measured(tmp_path, "--only=start", "--ready=2", engine="--start-seconds=60")
    assert done.returncode == 1
    assert "ClusterFailed" in done.stderr
    assert not (tmp_path / on_gpu.STARTS).exists()


def test_a_short_pool_has_the_bytes_of_its_tokens_and_some_more() -> None:
    assert on_gpu.pool_bytes(MOE, 32768) == on_gpu.SPARE * 32768 * 48 * 2 * 4 * 128 * 2
