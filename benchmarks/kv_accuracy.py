"""How close the memory ledger comes to what engines printed at start: tokens, GiB, intervals and verdicts.

    python benchmarks/kv_accuracy.py FILE... [--json] [--rows] [--fit]

(a) given_gib: tokens from the GiB the log gives for the cache, by formula alone.
(b) from_config: GiB and tokens from model, GPU and flags alone. A row whose model helped to fit the constants is scored
    with constants fitted without that model (kv_left_out.yaml); all others with those that the project ships.
(c) fit: verdicts of starts that succeeded, or failed for memory or length; "tight" counts against either.

--fit fits the constants anew on the files and writes planning/memory/overheads.yaml and benchmarks/kv_left_out.yaml.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

import kv_fit
from arguments import lines_file
from kv_scores import (
    ConstantsFor,
    exact_in_blocks,
    from_config,
    gib_summary,
    given_gib,
    summary,
    verdicts,
)
from observations import Case, Skipped, read
from plimsoll.planning.memory.constants import MemoryConstants, fitted_constants
from plimsoll.planning.memory.ledger import Verdict

HERE = Path(__file__).parent
LEFT_OUT = HERE / "kv_left_out.yaml"
SHIPPED = HERE.parent / "operator" / "plimsoll" / "planning" / "memory" / "overheads.yaml"


def report(cases: Sequence[Case], skipped: Counter[str], constants_for: ConstantsFor) -> dict[str, Any]:
    """The object that --json prints; the tables are made of it."""
    given, given_skipped = given_gib(cases)
    planned, planned_skipped = from_config(cases, constants_for)
    in_sample, _ = from_config(cases, lambda _: fitted_constants())
    judged, judged_skipped = verdicts(cases, constants_for)
    failed = [verdict for case, verdict in judged if case.failure is not None]
    started = [verdict for case, verdict in judged if case.failure is None]
    hybrids = [point for point in given if point.case.kind == "hybrid"]
    return {
        "given_gib": {
            "rows": len(given),
            "rows_within_0_5pct": sum(abs(point.error_pct) <= 0.5 for point in given),
            "hybrids": len(hybrids),
            "hybrids_exact_in_blocks": sum(exact_in_blocks(point) for point in hybrids),
        },
        "from_config": {**summary(planned), "gib": gib_summary(planned), "in_sample": summary(in_sample)},
        "fit": {
            "rows": len(judged),
            "failed": len(failed),
            "failed_called_fitting": sum(verdict is not Verdict.DOES_NOT_FIT for verdict in failed),
            "of_them_tight": sum(verdict is Verdict.TIGHT for verdict in failed),
            "fitting_called_failing": sum(verdict is not Verdict.FITS for verdict in started),
            "of_these_tight": sum(verdict is Verdict.TIGHT for verdict in started),
        },
        "skipped": {
            **dict(sorted(skipped.items())),
            **_by_score("given_gib", given_skipped),
            **_by_score("from_config", planned_skipped),
            **_by_score("fit", judged_skipped),
        },
        "each": {
            "given_gib": [point.as_row() for point in given],
            "from_config": [point.as_row() for point in planned],
            "fit": [
                {
                    "line": case.line,
                    "row": case.label,
                    "verdict": verdict.value,
                    "happened": case.failure or "started",
                }
                for case, verdict in judged
            ],
            "remarks": [f"{case.line} {note}" for case in cases for note in case.notes],
        },
    }


def _by_score(score: str, skipped: Counter[str]) -> dict[str, int]:
    """Rows that one score alone had to leave out."""
    return {f"{score}: {reason}": count for reason, count in sorted(skipped.items())}


def table(result: dict[str, Any]) -> Iterator[str]:
    given, config, fit = result["given_gib"], result["from_config"], result["fit"]
    share = 100 * given["rows_within_0_5pct"] / max(1, given["rows"])
    yield "(a) tokens from the logged GiB (aim 98% within 0.5%, hybrids exact in blocks)"
    yield f"    {given['rows_within_0_5pct']} of {given['rows']} rows within 0.5% ({share:.1f}%)"
    yield f"    {given['hybrids_exact_in_blocks']} of {given['hybrids']} hybrids exact in blocks"
    yield f"(b) from config and GPU alone, {config['rows']} rows (aim median 2%, p90 6%, 90% inside, half-width 5%)"
    yield f"    {'':28}{'median':>8}{'p90':>8}{'inside':>9}{'half-width':>12}"
    yield _scores_line("models left out of the fit", config)
    yield _scores_line("all models in the fit", config["in_sample"])
    gib = config["gib"]
    yield f"    {'GiB, models left out':28}{gib['median_pct']:>7.2f}%{gib['p90_pct']:>7.2f}%   {gib['rows']} rows"
    for name, found in config["by_class"].items():
        yield f"      {name:26}{found['median_pct']:>7.2f}%{found['p90_pct']:>7.2f}%   {found['rows']} rows"
    yield f"(c) verdicts of {fit['rows']} starts, {fit['failed']} of them failed for memory or length"
    yield f"    failed, but called fitting: {fit['failed_called_fitting']}, of them tight: {fit['of_them_tight']}"
    yield f"    started, but called not fitting: {fit['fitting_called_failing']}, of them tight: {fit['of_these_tight']}"
    yield "skipped"
    for reason, count in result["skipped"].items():
        yield f"    {count:>3} {reason}"


def _scores_line(name: str, found: dict[str, Any]) -> str:
    return (
        f"    {name:28}{found['median_pct']:>7.2f}%{found['p90_pct']:>7.2f}%{found['in_interval_pct']:>8.1f}%"
        f"{found['half_width_pct']:>11.2f}%"
    )


def each_row(result: dict[str, Any]) -> Iterator[str]:
    each = result["each"]
    for score in ("given_gib", "from_config"):
        yield ""
        yield f"{score}: predicted, observed, error" + (", interval, GiB" if score == "from_config" else "")
        for row in each[score]:
            text = f"{row['row']:92} {row['predicted']:>13,.2f} {row['observed']:>13,.2f} {row['unit']:6} {row['error_pct']:+7.2f}%"
            if "interval" in row:
                low, high = row["interval"]
                logged = "-" if row["logged_gib"] is None else f"{row['logged_gib']:.2f}"
                text += f"  [{low:,.0f} .. {high:,.0f}]{'' if row['inside'] else ' OUT'}  {row['gib']:.2f} / {logged} GiB"
            yield text
    yield ""
    yield "fit: verdict, what happened"
    for row in each["fit"]:
        yield f"{row['row']:92} {row['verdict']:13} {row['happened']}"
    yield ""
    yield "remarks"
    yield from each["remarks"]


def refit(cases: Sequence[Case]) -> None:
    """Fits on these cases and writes the constants, and what each would be without one family of models."""
    start = fitted_constants()
    constants = kv_fit.fit(cases, start)
    without = kv_fit.left_out([seen.case for seen in kv_fit.usable(cases)], start)
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
    fitted_constants.cache_clear()


def without_own_model(constants: MemoryConstants) -> ConstantsFor:
    """The shipped constants, or for a model that the fit saw those it would have given without it."""
    left_out: dict[str, dict[str, float]] = yaml.safe_load(LEFT_OUT.read_text("utf-8")) or {}
    made = {
        family: MemoryConstants(
            named={
                name: replace(constant, value=values.get(name, constant.value))
                for name, constant in constants.named.items()
            }
        )
        for family, values in left_out.items()
    }
    return lambda case: made.get(case.family, constants)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=lines_file, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one object instead of tables")
    parser.add_argument("--rows", action="store_true", help="list every row: predicted, observed, error")
    parser.add_argument("--fit", action="store_true", help="fit the constants on these files and write them")
    args = parser.parse_args(argv)
    found = list(read(args.files))
    cases = [one for one in found if isinstance(one, Case)]
    skipped = Counter(one.reason for one in found if isinstance(one, Skipped))
    if args.fit:
        refit(cases)
    result = report(cases, skipped, without_own_model(fitted_constants()))
    if args.json:
        shown = result if args.rows else {key: value for key, value in result.items() if key != "each"}
        print(json.dumps(shown, indent=2))
    else:
        print("\n".join([*table(result), *(each_row(result) if args.rows else [])]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
