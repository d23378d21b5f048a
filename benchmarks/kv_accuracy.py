"""How close the memory ledger comes to what engines printed at start: tokens, GiB, intervals and verdicts.

    python benchmarks/kv_accuracy.py FILE... [--json] [--rows] [--fit]

(a) given_gib: tokens from the GiB the log gives for the cache, by formula alone.
(b) from_config: GiB and tokens from model, GPU and flags alone. A row whose model helped to fit the constants is scored
    with constants fitted without that model (kv_left_out.yaml); all others with those that the project ships.
(c) fit: verdicts of starts that succeeded, or failed for memory or length; "tight" counts against either.

--fit fits the constants anew on the files and writes planning/data/overheads.yaml and benchmarks/kv_left_out.yaml.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

import kv_fit
from kv_fit import left_bytes
from observations import GIB, Case, Skipped, read
from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.constants import Constants, fitted_constants, parse_constants
from plimsoll.planning.interval import Interval
from plimsoll.planning.kv_rules import cache_plan
from plimsoll.planning.ledger import Verdict, build_ledger

HERE = Path(__file__).parent
LEFT_OUT = HERE / "kv_left_out.yaml"
SHIPPED = HERE.parent / "operator" / "plimsoll" / "planning" / "data" / "overheads.yaml"
ConstantsFor = Callable[[Case], Constants]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One scored row."""

    case: Case
    predicted: float
    observed: float
    unit: str
    low: float = 0.0
    high: float = 0.0
    predicted_gib: float | None = None

    @property
    def error_pct(self) -> float:
        return 100 * (self.predicted - self.observed) / self.observed

    @property
    def inside(self) -> bool:
        return self.low <= self.observed <= self.high

    @property
    def half_width_pct(self) -> float:
        return 100 * (self.high - self.low) / 2 / max(self.predicted, 1)


def given_gib(cases: Sequence[Case]) -> tuple[list[Point], Counter[str]]:
    """Tokens (or blocks, or concurrency where nothing else was printed) from the logged GiB."""
    points, skipped = [], Counter[str]()
    for case in cases:
        if case.available is None or case.available <= 0:
            skipped["no GiB in the log"] += 1
            continue
        plan = _plan(case)
        blocks = plan.blocks([case.available * GIB] * case.layout.pipeline)
        length = case.settings.max_model_len
        if case.tokens is not None:
            points.append(_point(case, plan.tokens_line(blocks, length), case.tokens, "tokens"))
        elif case.blocks is not None:
            points.append(_point(case, blocks, case.blocks, "blocks"))
        elif case.concurrency is not None:
            points.append(_point(case, float(plan.concurrency(blocks, length)), case.concurrency, "x"))
        else:
            skipped["GiB but no tokens in the log"] += 1
    return points, skipped


def from_config(cases: Sequence[Case], constants_for: ConstantsFor) -> tuple[list[Point], Counter[str]]:
    points, skipped = [], Counter[str]()
    for case in cases:
        if case.gpu is None:
            skipped["no GPU named and no memory stated"] += 1
            continue
        if case.failure is not None and not (case.available and case.available > 0):
            skipped["failed before it had a cache"] += 1
            continue
        point = _from_config(case, constants_for(case))
        if point is None:
            skipped["no tokens, blocks or GiB in the log"] += 1
        else:
            points.append(point)
    return points, skipped


def _from_config(case: Case, constants: Constants) -> Point | None:
    ledger = _ledger(case, constants)
    length = case.settings.max_model_len
    plan = _plan(case)
    capacity = ledger.capacity
    tokens = capacity.tokens if capacity else Interval(0, 0, max(0.0, ledger.left.high))
    blocks = capacity.blocks if capacity else Interval.exact(0)
    gib = ledger.left.mid / GIB
    if case.tokens is not None:
        found, observed, unit = tokens, float(case.tokens), "tokens"
    elif case.blocks is not None:
        found, observed, unit = blocks, float(case.blocks), "blocks"
    elif case.available is not None:
        seen = plan.blocks([case.available * GIB] * case.layout.pipeline)
        found, observed, unit = tokens, float(plan.tokens_line(seen, length)), "tokens"
    elif case.concurrency is not None and capacity:
        ranks = case.layout.data if case.layout.data > 1 else 1
        each = capacity.concurrency_at_max_len
        found, observed, unit = each, case.concurrency / ranks, "x"
    else:
        return None
    return Point(
        case=case,
        predicted=found.mid,
        observed=observed,
        unit=unit,
        low=found.low,
        high=found.high,
        predicted_gib=gib,
    )


def verdicts(
    cases: Sequence[Case], constants_for: ConstantsFor
) -> tuple[list[tuple[Case, Verdict]], Counter[str]]:
    """Each start's verdict; failures that memory and length cannot explain are counted by name."""
    found, skipped = [], Counter[str]()
    for case in cases:
        if case.gpu is None:
            skipped["no GPU named and no memory stated"] += 1
        elif case.failure is not None and not case.failed_for_memory:
            skipped[f"failed otherwise: {case.failure[:60]}"] += 1
        else:
            found.append((case, _ledger(case, constants_for(case)).verdict))
    return found, skipped


def _ledger(case: Case, constants: Constants) -> Any:
    assert case.gpu is not None
    return build_ledger(
        model=case.model,
        gpu=case.gpu,
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
        device_bytes=case.device_bytes,
        constants=constants,
    )


def _plan(case: Case) -> Any:
    # Without a GPU the pool is that of a data-centre card: only latent attention's block size depends on it.
    return cache_plan(
        case.model.architecture,
        gpu=case.gpu or gpu_named("H100-SXM-80GB"),
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
    )


def _point(case: Case, predicted: float, observed: float, unit: str) -> Point:
    return Point(case=case, predicted=predicted, observed=observed, unit=unit)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    if not ordered:
        return 0.0
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def scores(points: Sequence[Point]) -> dict[str, Any]:
    errors = [abs(point.error_pct) for point in points]
    classes = sorted({point.case.kind for point in points})
    return {
        "rows": len(points),
        "median_pct": _two(median(errors) if errors else 0),
        "p90_pct": _two(quantile(errors, 0.9)),
        "in_interval_pct": _two(100 * sum(point.inside for point in points) / max(1, len(points))),
        "half_width_pct": _two(median([point.half_width_pct for point in points]) if points else 0),
        "by_class": {
            name: {
                "rows": sum(point.case.kind == name for point in points),
                "median_pct": _two(median([abs(p.error_pct) for p in points if p.case.kind == name])),
                "p90_pct": _two(quantile([abs(p.error_pct) for p in points if p.case.kind == name], 0.9)),
            }
            for name in classes
        },
    }


def _two(value: float) -> float:
    return round(value, 2)


def gib_errors(points: Sequence[Point]) -> dict[str, Any]:
    """GiB of cache predicted against logged, in percent of the logged."""
    pairs = [
        (p.predicted_gib, p.case.available)
        for p in points
        if p.predicted_gib is not None and p.case.available
    ]
    errors = [100 * abs(predicted - observed) / observed for predicted, observed in pairs]
    return {
        "rows": len(errors),
        "median_pct": _two(median(errors) if errors else 0),
        "p90_pct": _two(quantile(errors, 0.9)),
    }


def report(
    cases: Sequence[Case], skipped: Counter[str], constants_for: ConstantsFor
) -> tuple[dict[str, Any], list[str]]:
    """The object that --json prints, and the lines that --rows adds."""
    given, given_skipped = given_gib(cases)
    planned, planned_skipped = from_config(cases, constants_for)
    seen, _ = from_config(cases, lambda _: fitted_constants())
    judged, judged_skipped = verdicts(cases, constants_for)
    failed = [(case, verdict) for case, verdict in judged if case.failure is not None]
    started = [(case, verdict) for case, verdict in judged if case.failure is None]
    hybrids = [point for point in given if point.case.kind == "hybrid"]
    result = {
        "given_gib": {
            "rows": len(given),
            "rows_within_0_5pct": sum(abs(point.error_pct) <= 0.5 for point in given),
            "hybrids": len(hybrids),
            "hybrids_exact_in_blocks": sum(_exact(point) for point in hybrids),
        },
        "from_config": {**scores(planned), "gib": gib_errors(planned), "in_sample": scores(seen)},
        "fit": {
            "rows": len(judged),
            "failed": len(failed),
            "failed_called_fitting": sum(verdict is not Verdict.DOES_NOT_FIT for _, verdict in failed),
            "failed_called_fits": sum(verdict is Verdict.FITS for _, verdict in failed),
            "fitting_called_failing": sum(verdict is not Verdict.FITS for _, verdict in started),
            "started_called_not_fitting": sum(verdict is Verdict.DOES_NOT_FIT for _, verdict in started),
        },
        "skipped": dict(sorted(skipped.items())),
        "skipped_by_score": {
            "given_gib": dict(sorted(given_skipped.items())),
            "from_config": dict(sorted(planned_skipped.items())),
            "fit": dict(sorted(judged_skipped.items())),
        },
    }
    lines = ["", "given GiB: predicted, observed, error"]
    lines += [_row(point) for point in given]
    lines += ["", "from config: predicted, observed, error, interval, GiB predicted and logged"]
    lines += [
        f"{_row(point)}  [{point.low:,.0f} .. {point.high:,.0f}]{'' if point.inside else ' OUT'}  "
        f"{point.predicted_gib or 0:.2f} / {point.case.available or 0:.2f} GiB"
        for point in planned
    ]
    lines += ["", "verdicts: predicted, what happened"]
    lines += [f"{case.label}  {verdict.value:12}  {case.failure or 'started'}" for case, verdict in judged]
    lines += ["", "remarks"]
    lines += [f"{case.line:>3} {note}" for case in cases for note in case.notes]
    return result, lines


def _exact(point: Point) -> bool:
    """Within the block that rounding a logged GiB to two digits may cost."""
    case = point.case
    plan = _plan(case)
    assert case.available is not None
    stages = case.layout.pipeline
    ends = [plan.blocks([(case.available + side) * GIB] * stages) for side in (-0.005, 0.005)]
    length = case.settings.max_model_len
    line = [plan.tokens_line(blocks, length) for blocks in ends] if point.unit == "tokens" else ends
    return line[0] <= point.observed <= line[1]


def _row(point: Point) -> str:
    return f"{point.case.label:92} {point.predicted:>13,.2f} {point.observed:>13,.2f} {point.unit:6} {point.error_pct:+7.2f}%"


def table(result: dict[str, Any]) -> str:
    given, config, fit = result["given_gib"], result["from_config"], result["fit"]
    share = 100 * given["rows_within_0_5pct"] / max(1, given["rows"])
    lines = [
        f"(a) tokens given the logged GiB: {given['rows_within_0_5pct']} of {given['rows']} rows within 0.5% ({share:.1f}%; "
        f"aim 98%), hybrids exact in blocks {given['hybrids_exact_in_blocks']} of {given['hybrids']}",
        f"(b) from config and GPU alone, {config['rows']} rows; aim median 2%, p90 6%, 90% inside, half-width 5%",
        f"    {'':28}{'median':>8}{'p90':>8}{'inside':>9}{'half-width':>12}",
        _scores_line("models left out of the fit", config),
        _scores_line("in sample", config["in_sample"]),
        f"    {'GiB, left out':28}{config['gib']['median_pct']:>7.2f}%{config['gib']['p90_pct']:>7.2f}%",
    ]
    lines += [
        f"      {name:26}{found['median_pct']:>7.2f}%{found['p90_pct']:>7.2f}%   {found['rows']} rows"
        for name, found in config["by_class"].items()
    ]
    lines += [
        f"(c) verdicts of {fit['rows']} starts, {fit['failed']} of them failed for memory or length:",
        f"    failed, but called fitting or tight: {fit['failed_called_fitting']} (called fitting: {fit['failed_called_fits']})",
        f"    started, but called not fitting or tight: {fit['fitting_called_failing']} "
        f"(called not fitting: {fit['started_called_not_fitting']})",
        "skipped rows:",
    ]
    lines += [f"    {count:>3} {reason}" for reason, count in result["skipped"].items()]
    for score, reasons in result["skipped_by_score"].items():
        lines += [f"    {count:>3} {reason} (not scored in {score})" for reason, count in reasons.items()]
    return "\n".join(lines)


def _scores_line(name: str, found: dict[str, Any]) -> str:
    return (
        f"    {name:28}{found['median_pct']:>7.2f}%{found['p90_pct']:>7.2f}%{found['in_interval_pct']:>8.1f}%"
        f"{found['half_width_pct']:>11.2f}%"
    )


def refit(cases: Sequence[Case]) -> None:
    start = fitted_constants()
    constants = kv_fit.fit(cases, start)
    fitted_on = [seen.case for seen in kv_fit.usable(cases)]
    without = kv_fit.left_out(fitted_on, start)
    constants = kv_fit.fit_spreads(cases, constants, without)
    SHIPPED.write_text(kv_fit.as_yaml(constants), "utf-8")
    differing = {
        family: {
            name: constant.value
            for name, constant in sorted(others.named.items())
            if constant.value != constants.value(name) and name not in kv_fit.SPREADS
        }
        for family, others in sorted(without.items())
    }
    head = (
        "# Written by --fit: what each constant would be without the models of one shape (a digest of it).\n"
    )
    LEFT_OUT.write_text(head + yaml.safe_dump(differing, sort_keys=True), "utf-8")


def without_own_model(constants: Constants) -> ConstantsFor:
    left_out: dict[str, dict[str, float]] = (
        yaml.safe_load(LEFT_OUT.read_text("utf-8")) if LEFT_OUT.exists() else {}
    )
    made = {
        family: Constants(
            named={
                name: _with_value(constant, values.get(name, constant.value))
                for name, constant in constants.named.items()
            }
        )
        for family, values in (left_out or {}).items()
    }
    return lambda case: made.get(case.family, constants)


def _with_value(constant: Any, value: float) -> Any:
    return type(constant)(
        value=value, spread=constant.spread, rows=constant.rows, fitted_on=constant.fitted_on
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one object instead of tables")
    parser.add_argument("--rows", action="store_true", help="list every row: predicted, observed, error")
    parser.add_argument("--fit", action="store_true", help="fit the constants on these files and write them")
    args = parser.parse_args(argv)
    found = list(read(args.files))
    cases = [one for one in found if isinstance(one, Case)]
    skipped = Counter(one.reason for one in found if isinstance(one, Skipped))
    if args.fit:
        refit(cases)
        fitted_constants.cache_clear()
    result, lines = report(cases, skipped, without_own_model(fitted_constants()))
    if args.json:
        if args.rows:
            result["rows"] = lines
        print(json.dumps(result, indent=2))
    else:
        print(table(result))
        if args.rows:
            print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())


__all__ = ["left_bytes", "parse_constants"]
