"""The comparison's own arithmetic, and one small cell scored from end to end without any file."""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import autoscaling
import autoscaling_figures as figures
import autoscaling_kept
import plimsoll
from autoscaling_cells import SYNTHETIC, Cell, Size, content_of, scenario_for, scored, stage_of, tuned
from plimsoll.simulate.fidelity import belief_error
from plimsoll.simulate.router import Routing

CELL = Cell(trace=SYNTHETIC[0], model="Qwen/Qwen3-32B", gpu="H100")
SIZE = Size(replicas=2, days=0.02, routing=Routing.SERVICE)

FIGURES = ("ttft_p99_ms", "itl_p99_ms", "preemptions_per_1000", "actions_per_day", "reversals_per_day")
MEASURES = {"slo_pct", "gpu_hours", *FIGURES}


def row(policy: str, hours: float, slo: float, parameter: float = 1.0, **others: object) -> dict[str, Any]:
    return {
        "trace": CELL.trace,
        "model": CELL.model,
        "gpu": CELL.gpu,
        "policy": policy,
        "gpu_hours": hours,
        "slo_pct": slo,
        "parameter": parameter,
        "second": 300.0,
        "seed": 1,
        "swept": False,
        "reachable_pct": 100.0,
        "span_s": 1728.0,
        **others,
    }


def test_a_curve_rises_with_cost_and_is_read_between_its_points():
    points = figures.curve(
        [row("hpa", 10, 90, 0.7), row("hpa", 20, 98, 0.5), row("hpa", 30, 97, 0.3), row("hpa", 12, 92, 0.7)]
    )
    assert points == [(11, 91), (20, 98), (30, 98)]
    assert figures.at_equal_hours(points, 15.5) == pytest.approx(94.5)
    assert figures.at_equal_hours(points, 99) == 98
    assert figures.at_equal_hours(points, 5) is None


def test_ours_is_ahead_only_where_no_baseline_is_better_at_the_same_cost():
    rows = [row("plimsoll", 15, 99), row("static_peak", 20, 99.2), row("oracle", 14, 99.1)]
    better = [row("wva2", 10, 99, swept=True), row("wva2", 20, 99.5, 2, swept=True)]
    worse = [row("wva2", 10, 90, swept=True), row("wva2", 20, 99.5, 2, swept=True)]
    assert not figures.verdict(CELL, rows + better)["ahead"]
    said = figures.verdict(CELL, rows + worse)
    assert said["ahead"]
    assert (said["of_static_peak"], said["of_oracle"]) == (0.75, pytest.approx(1.0714, abs=1e-3))


def test_no_saving_is_told_against_who_does_not_keep_the_goal_with_every_seed(capsys):
    ours = [row("plimsoll", 50, 99, seed=seed, requests=10) for seed in (1, 2)]
    peak = [row("static_peak", 100, slo, seed=seed) for seed, slo in ((1, 99.9), (2, 98.9))]
    oracle = [row("oracle", 40, 99.1, seed=seed) for seed in (1, 2)]
    said = figures.verdict(CELL, [*ours, *peak, *oracle])
    assert (said["of_static_peak"], said["of_oracle"]) == (None, 1.25)
    autoscaling.print_summary([said], ours, None)
    told = capsys.readouterr().out
    assert "GPU-hours over static_peak" not in told
    assert "static_peak itself keeps less than 99% with some seed in 1 of 1 cells, which are left out" in told
    assert "GPU-hours over oracle: median 125%" in told
    assert "oracle itself" not in told


def test_a_baseline_is_compared_with_the_seeds_with_which_it_is_as_cheap():
    """One of five is cheaper than the baseline ever is: the other four say that it is better."""
    ours = [row("plimsoll", 99 if seed == 5 else 100, 99, seed=seed) for seed in range(1, 6)]
    tried = [
        row("hpa", hours, 99.9, parameter, seed=seed, swept=True)
        for seed in range(1, 6)
        for parameter, hours in ((0.8, 99.5), (0.7, 110))
    ]
    said = figures.verdict(CELL, [*ours, *tried])
    assert said["baselines_at_equal_gpu_hours"]["hpa"] == pytest.approx(99.9)
    assert (said["seeds_at_equal_gpu_hours"], said["seeds_swept"]) == ({"hpa": 4}, 5)
    assert not said["ahead"]


def test_ours_is_compared_with_the_same_seeds_as_a_baseline():
    ours = [row("plimsoll", 90, 80, seed=1), row("plimsoll", 100, 99.5, seed=2)]
    tried = [row("hpa", 100, 99, 0.8, seed=seed, swept=True) for seed in (1, 2)]
    said = figures.verdict(CELL, [*ours, *tried])
    assert said["ahead"], "89.75 of both seeds would be behind"


def test_a_cell_without_a_baseline_that_is_as_cheap_is_none_in_which_ours_is_ahead(capsys):
    ours = row("plimsoll", 90, 99)
    said = figures.verdict(CELL, [ours, row("hpa", 100, 99.9, swept=True)])
    assert not said["ahead"]
    assert autoscaling.left_out_in([said]) == {"hpa": 1}
    autoscaling.print_cell(CELL, [{**ours, **dict.fromkeys(FIGURES)}], said)
    autoscaling.print_summary([said], [{**ours, "requests": 10}], 1.0)
    told = capsys.readouterr().out
    assert "hpa - → nothing to compare with" in told
    assert "left out, as they never get by with our GPU-hours: hpa in 1 of 1 cells" in told
    assert "ahead of every baseline at equal GPU-hours in 0 of 1 cells" in told
    assert (
        "each baseline has two parameters (reference one), tuned on the first 3 hours of another trace; at equal GPU-hours the main one "
        "is swept and the second stays; nobody retunes engines; plimsoll's law sees latencies and lengths as old as the operator does, the "
        "others each scrape of them"
    ) in told


def test_intervals_are_wide_with_few_seeds_and_absent_with_one():
    rows = [row("hpa", hours, 99) for hours in (9, 10, 11)]
    assert figures.half_width(rows, "gpu_hours") == pytest.approx(4.303 / 3**0.5)
    assert figures.half_width(rows[:1], "gpu_hours") is None


@pytest.mark.parametrize(
    ("seeds", "quantile"), [(5, 2.776), (10, 2.262), (11, 2.228), (20, 2.093), (61, 2.0)]
)
def test_intervals_are_students_by_however_many_seeds(seeds: int, quantile: float):
    assert figures.student(seeds) == pytest.approx(quantile, abs=0.005)


def test_every_measure_is_told_with_its_interval(capsys):
    rows = [
        {**row("plimsoll", 10 + seed, 99 + seed / 10, seed=seed), **dict.fromkeys(FIGURES, 10.0 * seed)}
        for seed in (1, 2, 3)
    ]
    told = figures.interval(CELL, rows, "plimsoll")
    assert told is not None
    assert set(told) >= MEASURES
    assert told["gpu_hours"] == {"mean": 12.0, "half_width": pytest.approx(4.303 / 3**0.5)}
    assert told["ttft_p99_ms"]["half_width"] == pytest.approx(43.03 / 3**0.5)
    assert (told["seeds"], figures.interval(CELL, rows, "hpa")) == (3, None)
    autoscaling.print_cell(CELL, rows, {})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  plimsoll")]
    assert line.count("±") == len(MEASURES)


def test_what_favours_whom_is_said_of_tables_without_ours_too(capsys):
    hpa = row("hpa", 80, 96, requests=10)
    autoscaling.print_summary([figures.verdict(CELL, [hpa])], [hpa], 1.0)
    told = capsys.readouterr().out
    assert autoscaling.CAVEATS in told
    assert belief_error() in told
    assert "ahead of" not in told


def test_what_nobody_can_keep_is_said(capsys):
    ours = row("plimsoll", 90, 97, reachable_pct=97.5)
    said = figures.verdict(CELL, [ours, row("hpa", 80, 96, swept=True)])
    assert said["reachable_pct"] == 97.5
    autoscaling.print_cell(CELL, [{**ours, **dict.fromkeys(FIGURES)}], said)
    assert "first tokens of 97.50% can be in time" in capsys.readouterr().out


def test_a_cell_is_scaled_to_its_size():
    scenario, scale = scenario_for(CELL, SIZE)
    assert scenario.most == 10
    assert (scenario.hardware.ready, scenario.hardware.growing) == (3, 7)
    assert scale > 0
    assert stage_of(CELL, SIZE, 1).arrivals.span_s == pytest.approx(1728)


def test_nobody_retunes_the_engines_of_a_cell():
    """The baselines could not, and the number of replicas is what is compared."""
    scenario, _ = scenario_for(CELL, SIZE)
    assert scenario.tunable is not None
    assert scenario.tunable.consent.mode == "off"


def test_a_cell_is_scored_in_the_form_that_is_promised():
    settings = {"hpa": {"target_kv": 0.4, "down_window_s": 60.0}}
    rows = scored(CELL, SIZE, 1, settings, ("plimsoll", "static_peak", "hpa", "oracle"), sweep=False)
    assert [one["policy"] for one in rows] == ["plimsoll", "static_peak", "hpa", "oracle"]
    promised = {
        "trace", "model", "gpu", "policy", "seed", "slo_pct", "gpu_hours", "ttft_p99_ms", "itl_p99_ms",
        "preemptions_per_1000", "actions_per_day", "reversals_per_day",
    }  # fmt: skip
    assert all(promised <= set(one) for one in rows)
    assert (rows[2]["parameter"], rows[2]["second"]) == (0.4, 60.0)
    assert rows[2]["settings"].items() >= settings["hpa"].items()


def test_a_sweep_is_over_the_main_parameter_and_leaves_the_second_as_tuned():
    settings = {"hpa": {"target_kv": 0.4, "down_window_s": 60.0}, "reference": {"target": 0.6}}
    rows = scored(CELL, SIZE, 1, settings, ("plimsoll", "hpa", "reference"), sweep=True)
    (chosen, *swept) = [one for one in rows if one["policy"] == "hpa"]
    assert (chosen["parameter"], chosen["swept"]) == (0.4, False)
    assert len({one["parameter"] for one in swept}) == len(swept) > 1
    assert {one["settings"]["down_window_s"] for one in swept} == {60.0}


def test_each_baseline_is_tuned_by_both_parameters_and_tells_them_by_name_also_once_kept(tmp_path: Path):
    found = tuned(CELL, SIZE, ("keda", "reference"))
    assert {name: list(one) for name, one in found.items()} == {
        "keda": ["waiting_per_replica", "down_window_s"],
        "reference": ["target"],
    }
    autoscaling_kept.Kept(tmp_path / "kept", "size").add(("tuned", "cell"), found)
    again = autoscaling_kept.Kept(tmp_path / "kept", "size")["tuned", "cell"]
    assert str(again) == str(found), "what was scored with them is found by this"


def test_both_parameters_of_a_setting_are_printed(capsys: pytest.CaptureFixture[str]):
    hpa = [
        {**row("hpa", 10, 99, 0.4, seed=seed, second=window), **dict.fromkeys(FIGURES, 1.0)}
        for seed, window in ((1, 60.0), (2, 60.0), (3, 900.0))
    ]
    plain = {**row("reference", 10, 99, 0.6), **dict.fromkeys(FIGURES, 1.0)}
    autoscaling.print_cell(CELL, [*hpa, plain], {})
    told = capsys.readouterr().out
    assert "  target_kv 0.4, down_window_s 60; target_kv 0.4, down_window_s 900\n" in told
    assert "  target 0.6\n" in told


def test_a_run_goes_on_from_what_the_same_program_worked_out_and_from_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = autoscaling_kept.Kept(tmp_path / "kept", "size")
    kept.add(("scored", "cell"), [1, 2])
    assert autoscaling_kept.Kept(tmp_path / "kept", "size")[("scored", "cell")] == [1, 2]
    assert ("scored", "cell") not in autoscaling_kept.Kept(tmp_path / "kept", "another size")
    monkeypatch.setattr(autoscaling_kept, "program", lambda: "another law")
    assert ("scored", "cell") not in autoscaling_kept.Kept(tmp_path / "kept", "size")


def test_a_run_that_was_stopped_in_the_midst_of_a_line_goes_on_from_the_whole_ones(tmp_path: Path) -> None:
    kept = autoscaling_kept.Kept(tmp_path / "kept", "size")
    kept.add(("scored", "cell 1"), [1, 2])
    with (tmp_path / "kept").open("a", encoding="utf-8") as file:
        file.write('["size", "scored", "cell 2", [3,')
    again = autoscaling_kept.Kept(tmp_path / "kept", "size")
    assert ("scored", "cell 2") not in again
    again.add(("scored", "cell 3"), [5])
    whole = autoscaling_kept.Kept(tmp_path / "kept", "size")
    assert [whole["scored", "cell 1"], whole["scored", "cell 3"]] == [[1, 2], [5]]


@pytest.mark.parametrize("file", ["control/part.py", "simulate/part.yaml", "cli/fleets.py", "names.py"])
def test_a_law_or_a_world_that_is_edited_is_another_program(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / file
    part.parent.mkdir(exist_ok=True)
    part.write_text("target = 0.8")
    monkeypatch.setattr(plimsoll, "__file__", str(tmp_path / "__init__.py"))
    before = autoscaling_kept.program()
    (tmp_path / "names.pyc").write_text("made by whoever runs it")
    assert autoscaling_kept.program() == before
    part.write_text("target = 0.7")
    assert autoscaling_kept.program() != before


def test_a_trace_that_holds_something_else_is_another_one_though_its_name_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def once(cell: Cell, _size: Size, seed: int, *_: object, sweep: bool) -> list[dict[str, Any]]:
        asked.append(seed)
        return [
            row("plimsoll", 10, 99, trace=Path(cell.trace).name, seed=seed, content=content_of(cell.trace))
        ]

    monkeypatch.setattr(autoscaling, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(autoscaling, "tuned", lambda *_: {})
    monkeypatch.setattr(autoscaling, "scored", once)
    trace = tmp_path / "day.csv"
    cell = Cell(trace=str(trace), model=CELL.model, gpu=CELL.gpu)

    def scored_with(text: str, seeds: int) -> list[int]:
        trace.write_text(text)
        content_of.cache_clear()
        asked.clear()
        options = argparse.Namespace(
            policies=["plimsoll"], resume=tmp_path / "kept", seeds=seeds, sweep_seeds=0, jobs=1
        )
        autoscaling.measure([cell], SIZE, options, lambda *_: None)
        return sorted(asked)

    assert scored_with("one", 2) == [1, 2]
    assert scored_with("one", 3) == [3]
    assert scored_with("another", 2) == [1, 2]
    rows = autoscaling_kept.last_of(tmp_path / "kept").rows
    assert [one["seed"] for one in rows] == [1, 2], "those of the newest trace alone"


def test_tables_are_printed_from_what_was_kept_of_the_last_program_each_seed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scored_rows(hours: float, seed: int) -> list[dict[str, Any]]:
        return [{**row("plimsoll", hours, 99.5, seed=seed), **dict.fromkeys(FIGURES, 1.0)}]

    kept = autoscaling_kept.Kept(tmp_path / "kept", "size")
    kept.add(("scored", "cell 1", "with other settings"), scored_rows(70, 1))
    kept.add(("scored", "cell 1", "settings"), scored_rows(80, 1))
    monkeypatch.setattr(autoscaling_kept, "program", lambda: "a newer law")
    newer = autoscaling_kept.Kept(tmp_path / "kept", "size")
    newer.add(("tuned", "cell", "names"), {"hpa": 0.5})
    for seed, hours in ((1, 10), (1, 20), (2, 30)):
        newer.add(("scored", f"cell {seed}", f"settings {hours}"), scored_rows(hours, seed))
    other = [{**one, "gpu": "A100-80GB"} for one in scored_rows(5, 1)]
    newer.add(("scored", "other 1", "settings"), other)

    assert autoscaling.print_kept(tmp_path / "kept") == 0
    told = capsys.readouterr().out
    assert told.startswith("kept by size by a newer law: 2 cells with 2 seeds; fewer: ")
    assert "Qwen/Qwen3-32B A100-80GB with 1" in told
    (first, second) = [line for line in told.splitlines() if line.startswith("  plimsoll ")]
    assert " 25.0 ±" in first
    assert " 5.0 " in second
    assert "SLO >= 99% in 2 of 2 cells" in told


@pytest.mark.parametrize(
    ("traces", "said"),
    [
        (["a/day.csv", "b/week.csv"], None),
        (["a/day.csv", "week.csv", "b/day.csv"], "a/day.csv and b/day.csv are of one file name"),
        (["day.csv", "day.csv"], "day.csv and day.csv are of one file name"),
    ],
)
def test_traces_of_one_file_name_are_refused_as_their_rows_would_be_taken_for_each_others(
    traces: list[str], said: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = autoscaling.named_twice(traces)
    assert found is None if said is None else found is not None and found.startswith(said)
    if said is not None:
        monkeypatch.setattr("sys.argv", ["autoscaling.py", *traces])
        assert autoscaling.main() == 3
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--days", "-1"], "--days: '-1' is not a number above 0"),
        (["--seeds", "x"], "--seeds: 'x' is not a whole number above 0"),
        (["--jobs", "0"], "--jobs: '0' is not a whole number above 0"),
    ],
)
def test_a_number_that_is_none_is_told_with_what_it_should_be(
    asked: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["autoscaling.py", SYNTHETIC[0], *asked])
    with pytest.raises(SystemExit):
        autoscaling.main()
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--models", "8b"], "--models: the catalogue knows no model 8b; name one as its hub does, as Qwen/Qwen3-8B"),
        (["--gpus", "H900"], "unknown GPU product 'H900': did you mean H800-SXM-80GB"),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_told_in_one_line_before_anything_is_played(
    asked: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["autoscaling.py", SYNTHETIC[0], "--seeds", "1", *asked])
    assert autoscaling.main() == 3
    assert said in (told := capsys.readouterr().err)
    assert told.count("\n") == 1


@pytest.mark.parametrize("option", ["--seeds", "--replicas", "--jobs"])
def test_none_of_what_is_counted_is_no_number(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["autoscaling.py", option, "0"])
    with pytest.raises(SystemExit):
        autoscaling.main()


def test_a_file_in_which_no_cell_was_finished_has_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    autoscaling_kept.Kept(tmp_path / "kept", "size").add(("tuned", "cell", "names"), {"hpa": 0.5})
    assert autoscaling.print_kept(tmp_path / "kept") == 3
    assert autoscaling.print_kept(tmp_path / "none") == 3
    assert "holds no cell that was scored to its end" in capsys.readouterr().err


def test_a_file_of_when_one_parameter_was_tuned_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tables would stand above a sentence that says two."""
    old = {**row("plimsoll", 10, 99.5), **dict.fromkeys(FIGURES, 1.0)}
    del old["second"]
    autoscaling_kept.Kept(tmp_path / "kept", "size").add(("scored", "cell 1", "settings"), [old])
    assert autoscaling.print_kept(tmp_path / "kept") == 3
    assert (
        "kept: was written when one parameter of each baseline was tuned, not two" in capsys.readouterr().err
    )
