"""The errors that stand beside simulated figures are those of the model that runs, and are read from where the benchmark writes them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

import fidelity_kept
from fidelity_kept import FILE, answers, write, write_gpu
from fidelity_report import TIMES
from plimsoll.planning.speed.rates import committed
from plimsoll.simulate import fidelity
from plimsoll.simulate.fidelity import Fidelity, belief_error, kept

LOOP = "openai/gpt-oss-120b b200_sxm 128"
TODAY = date(2027, 1, 2)
LOOPS = {
    "rows": 7,
    "all": {"points": 3, "ttft_median_pct": 1.5, "ttft_p90_pct": 2.5, "tpot_median_pct": 3.5, "tpot_p90_pct": 4.5},
}  # fmt: skip


def cell(noise: float | None, *loads: float, preemptions: float | None = None) -> dict[str, Any]:
    return {
        "noise_pct": dict.fromkeys(TIMES, noise),
        "load_average": list(loads),
        "preemptions_err": preemptions,
    }


def measured(*, cells: bool) -> dict[str, Any]:
    errors = {f"{name}_err_pct": 10.0 * place for place, name in enumerate(TIMES)}
    summary = {"left_out": errors | {"kv_err_pp": 6.5, "preemptions_err": 12.5}}
    listed = [cell(2.0, 1.0, 3.0), cell(None, 2.0, 2.0), cell(9.0, 0.5, 1.0, preemptions=-12.5)]
    return {"cells": listed if cells else None, "summary": summary, "pairs": LOOPS}


@pytest.fixture
def points(tmp_path: Path) -> Path:
    file = tmp_path / "points.csv"
    file.write_text("model\n")
    return file


def test_the_errors_that_are_told_are_of_the_model_that_runs() -> None:
    again = "the engine model is another one: run benchmarks/standin_fidelity.py --latencies FILE --write"
    assert answers().keys() == kept().answers.keys(), again
    for name, values in answers().items():
        assert values == pytest.approx(kept().answers[name], rel=0.005), f"{name}: {again}"


def test_the_points_that_they_were_told_on_are_those_of_the_constants() -> None:
    assert kept().loops.file in committed().fitted.files
    assert kept().loops.rows == committed().fitted.rows


def test_what_is_written_is_what_is_told(
    tmp_path: Path, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fidelity.yaml"
    file.write_bytes(FILE.read_bytes())
    write(measured(cells=True), points, engine="0.99.0", today=TODAY, file=file)
    found = Fidelity.model_validate(yaml.safe_load(file.read_text()))
    assert "&" not in file.read_text(), "of a date that stands twice too"
    assert (found.real.noise_pct, found.real.load_average, found.real.turns) == ((2.0, 9.0), (0.5, 3.0), 2)
    assert (found.loops.file, found.loops.points, found.loops.measured) == ("points.csv", 3, TODAY)
    monkeypatch.setattr(fidelity, "kept", lambda: found)
    said = belief_error()
    assert (
        "3.5% (median) and 4.5% (p90) for TPOT and 1.5% and 2.5% for TTFT (3 points, compared on 2027-01-02"
        in said
    )
    assert "0% and 10% off for TTFT, 20% and 30% for ITL, and the cache in use by 6.5 points" in said
    assert "6.5 points, preemptions by 12.5 for 100 requests (cells with any: 1) (3 cells of" in said
    assert "3 cells of vLLM 0.99.0, measured on 2027-01-02 on a machine at a load average of 0.5 to 3" in said


def test_each_model_on_each_gpu_is_told_and_takes_the_place_of_what_was_measured_of_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fidelity.yaml"
    file.write_bytes(FILE.read_bytes())
    first = kept().gpu[0].model_dump()
    for gpu, crowded in (("a-gpu", 3), ("another-gpu", 4), ("a-gpu", 5)):
        write_gpu({**first, "gpu": gpu, "crowded": crowded}, file)
    found = Fidelity.model_validate(yaml.safe_load(file.read_text()))
    assert found.gpu[: len(kept().gpu)] == kept().gpu
    assert [(one.gpu, one.crowded) for one in found.gpu[-2:]] == [("a-gpu", 5), ("another-gpu", 4)]
    monkeypatch.setattr(fidelity, "kept", lambda: found)
    for gpu, crowded in (("a-gpu", 5), ("another-gpu", 4)):
        told = belief_error().partition(
            f"Instruct on {gpu}, a pair that nothing was fitted on, it is off by "
        )[2]
        assert f" and {crowded} runs that a short pool crowds" in told.partition("; from ")[0]


def test_preemptions_that_nobody_had_are_said_not_to_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    real = kept().real.model_copy(update={"preemptions_err": None, "preempting_cells": 0})
    found = kept().model_copy(update={"real": real})
    monkeypatch.setattr(fidelity, "kept", lambda: found)
    assert "points, preemptions were not measured (6 cells" in belief_error()


def test_what_was_not_measured_this_time_stays_while_the_model_is_the_same(
    tmp_path: Path, points: Path
) -> None:
    file = tmp_path / "fidelity.yaml"
    file.write_bytes(FILE.read_bytes())
    write(measured(cells=False), points, engine="0.99.0", today=TODAY, file=file)
    found = Fidelity.model_validate(yaml.safe_load(file.read_text()))
    assert (found.real, found.loops.points) == (kept().real, 3)
    write(measured(cells=True), None, engine="0.99.0", today=TODAY, file=file)
    found = Fidelity.model_validate(yaml.safe_load(file.read_text()))
    assert (found.real.engine, found.loops.points) == ("0.99.0", 3)


@pytest.mark.parametrize(
    ("other", "cells", "refused"),
    [
        ("crowded", False, "with a real engine$"),
        ("crowded", True, None),
        (LOOP, True, "with --latencies FILE$"),
        (LOOP, False, None),
    ],
    ids=[
        "another pool, not measured",
        "another pool, measured",
        "other loops, not measured",
        "other loops, measured",
    ],
)
def test_errors_of_a_model_that_answers_otherwise_since_are_not_kept(
    other: str, cells: bool, refused: str | None, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = points.with_name("fidelity.yaml")
    file.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(fidelity_kept, "answers", lambda: dict(kept().answers) | {other: (1.0,)})

    def written() -> None:
        write(measured(cells=cells), None if cells else points, engine="0.99.0", today=TODAY, file=file)

    if refused is None:
        written()
        assert Fidelity.model_validate(yaml.safe_load(file.read_text())).answers[other] == (1.0,)
    else:
        with pytest.raises(SystemExit, match=refused):
            written()
        assert file.read_bytes() == FILE.read_bytes()
