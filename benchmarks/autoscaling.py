"""Every policy on the same traces, models, GPUs and seeds: how far the limits are kept, and what it costs.

SLO attainment is the smaller of two shares, as a resource promises them: of all requests, those whose first token came in time
(one that never came is late), and of all gaps between tokens, of all answers together, those within their limit.
Baselines run with the setting, of two parameters, that was cheapest on another trace (settings are printed), a constant number
and the oracle with what hindsight says. Equal GPU-hours: each baseline is swept over its main parameter, the second one as
tuned, and its attainment at our GPU-hours is read between its points. The world is drawn around the planner's belief by seed;
policies see scrapes only. Only the number of replicas is decided: no policy, ours included, changes engines' settings.
A long matrix is stopped and gone on with by `--resume FILE`, and `--kept FILE` prints the tables of as much as is done.
Traces are files (see `plimsoll simulate --help` for their form), `synthetic-leaps`, `synthetic-rushes`, or `wva-prefill-heavy` and
`wva-decode-heavy`, as WVA's authors publish runs of them; without any, two short synthetic ones are used.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from autoscaling_asked import asked
from autoscaling_cells import (
    SYNTHETIC,
    TUNED_S,
    Cell,
    Size,
    Unknown,
    content_of,
    scored,
    trace_of,
    tuned,
    unplannable,
)
from autoscaling_figures import MEASURES, OURS, Row, half_width, interval, mean, of_cell, verdict
from autoscaling_kept import SCORED, Kept, NothingKept, last_of
from plimsoll.simulate.compare import GOAL_PCT
from plimsoll.simulate.fidelity import belief_error
from plimsoll.simulate.policies.registry import KINDS, SWEPT
from plimsoll.simulate.router import Routing
from plimsoll.simulate.traces import BadTrace

ONE_ONLY = [name for name in SWEPT if not KINDS[name].second.name]
CAVEATS = (
    f"each baseline has two parameters ({' and '.join(ONE_ONLY)} one), tuned on the first {TUNED_S / 3600:g} hours of another trace; at equal "
    f"GPU-hours the main one is swept and the second stays; nobody retunes engines; {OURS}'s law sees latencies and lengths as old as the "
    "operator does, the others each scrape of them"
)
"""What favours whom."""
WIDE = 17
OF_STATIC_PEAK, OF_ORACLE, AHEAD_ON = 0.75, 1.15, 0.80


def main() -> int:
    options = asked((__doc__ or "").partition("\n")[0])
    if options.kept:
        return print_kept(options.kept)
    traces = options.traces or list(SYNTHETIC)
    twice = named_twice(traces)
    if twice:
        print(f"error: {twice}", file=sys.stderr)
        return 3
    try:
        for name in traces:
            trace_of(name)
    except (BadTrace, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    size = Size(
        replicas=options.replicas,
        days=options.days,
        routing=Routing(options.routing),
        closes=options.connections == "closed",
        begin=options.begin,
    )
    cells = [
        Cell(trace=trace, model=model, gpu=gpu)
        for trace in traces
        for model in options.models
        for gpu in options.gpus
    ]
    try:
        left_out = left_out_of(cells, size)
    except Unknown as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    cells = [cell for cell in cells if cell not in left_out]
    for cell, why in left_out.items():
        how = "note: left out: " if cells else "error: "
        print(f"{how}{cell.model} on {cell.gpu}, {Path(cell.trace).name}: {why}", file=sys.stderr)
    if not cells:
        return 3
    began = time.monotonic()
    rows, settings = measure(cells, size, options, _teller(options.quiet))
    seconds = time.monotonic() - began
    verdicts = [verdict(cell, rows) for cell in cells]
    if options.json:
        kept = [row for row in rows if not row["swept"]]
        print(
            json.dumps(
                {
                    "cells": kept,
                    "swept": [row for row in rows if row["swept"]],
                    "verdicts": verdicts,
                    "left_out": [
                        {"trace": Path(cell.trace).name, "model": cell.model, "gpu": cell.gpu, "why": why}
                        for cell, why in left_out.items()
                    ],
                    "intervals": [
                        one for cell in cells for name in KINDS if (one := interval(cell, kept, name))
                    ],
                    "tuned": settings,
                    "routing": size.routing,
                    "connections": options.connections,
                    "error": belief_error(),
                    "seconds": round(seconds, 1),
                }
            )
        )
        return 0
    print_tables(cells, rows, verdicts, seconds)
    for cell, why in left_out.items():
        print(f"  left out: {Path(cell.trace).name} · {cell.model} · {cell.gpu}: {why}")
    return 0


def named_twice(traces: Sequence[str]) -> str | None:
    """What is wrong where rows of two traces could not be told apart: they name their trace by its file's name."""
    seen: dict[str, str] = {}
    for trace in traces:
        name = Path(trace).name
        if name in seen:
            return f"{seen[name]} and {trace} are of one file name, by which rows are told apart: rename one of them"
        seen[name] = trace
    return None


def _teller(quiet: bool) -> Callable[[int, int, float], None]:
    def tell(done: int, of: int, seconds: float) -> None:
        if not quiet:
            left = seconds / done * (of - done)
            print(f"  {done} of {of} done, about {left:.0f} s to go", file=sys.stderr, flush=True)

    return tell


def measure(
    cells: Sequence[Cell], size: Size, options: argparse.Namespace, tell: Callable[[int, int, float], None]
) -> tuple[list[Row], dict[str, Row]]:
    """Tune on the next trace of the list, then score; both on all cores. What `--resume` holds already is not done again."""
    names = [name for name in KINDS if name in options.policies]
    swept = [name for name in names if name in SWEPT]
    others = {cell: _other(cell, cells) for cell in cells}
    kept = Kept(options.resume, str(size))
    distinct = sorted(set(others.values()), key=str)
    named = {cell: f"{cell} {content_of(cell.trace)}" for cell in (*cells, *distinct)}
    with ProcessPoolExecutor(options.jobs) as pool:
        settings = _tuned(pool, kept, {cell: named[cell] for cell in distinct}, size, swept)
        work = [
            _Scoring(
                cell=cell,
                seed=seed,
                settings=settings[others[cell]],
                sweep=seed <= options.sweep_seeds,
                named=named[cell],
                policies=names,
            )
            for seed in range(1, options.seeds + 1)
            for cell in cells
        ]
        _score(pool, kept, work, size, tell)
    told = {
        f"{Path(cell.trace).name} {cell.model} {cell.gpu}": {
            "on": Path(other.trace).name,
            "settings": settings[other],
        }
        for cell, other in others.items()
    }
    return [row for one in work for row in kept[one.key]], told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    """One cell with one seed, to be scored with the baselines' tuned settings."""

    cell: Cell
    seed: int
    settings: Row
    sweep: bool
    """Whether the baselines' main parameters are swept as well."""
    named: str
    """The cell with what its trace holds."""
    policies: list[str]

    @property
    def key(self) -> tuple[str, str, str]:
        """By which its rows are kept."""
        return SCORED, f"{self.named} {self.seed} {self.sweep}", f"{self.policies} {self.settings}"


def _tuned(
    pool: Executor, kept: Kept, named: Mapping[Cell, str], size: Size, swept: list[str]
) -> dict[Cell, Row]:
    """The cheapest settings of the baselines on each of these cells, as kept or found now."""
    keys = {cell: ("tuned", name, str(swept)) for cell, name in named.items()}
    untuned = [cell for cell in keys if keys[cell] not in kept]
    found = pool.map(tuned, untuned, [size] * len(untuned), [swept] * len(untuned))
    for cell, settings in zip(untuned, found, strict=True):
        kept.add(keys[cell], settings)
    return {cell: kept[key] for cell, key in keys.items()}


def _score(
    pool: Executor,
    kept: Kept,
    work: Sequence[_Scoring],
    size: Size,
    tell: Callable[[int, int, float], None],
) -> None:
    """Score all that is not kept yet, and keep it."""
    began = time.monotonic()
    futures = {
        pool.submit(scored, one.cell, size, one.seed, one.settings, one.policies, sweep=one.sweep): one.key
        for one in work
        if one.key not in kept
    }
    for done, future in enumerate(as_completed(futures), start=1):
        kept.add(futures[future], future.result())
        tell(done, len(futures), time.monotonic() - began)


def left_out_of(cells: Sequence[Cell], size: Size) -> dict[Cell, str]:
    """The cells that cannot be played, or for which nothing can be tuned, and why: the others lose nothing by them. Raises Unknown."""
    found = unplannable(cells, size)
    played = [cell for cell in cells if cell not in found]
    for cell in played:
        other = _other(cell, played)
        for why in unplannable([other], size).values():
            found[cell] = f"nothing is tuned on {other.trace}: {why}"
    return found


def _other(cell: Cell, cells: Sequence[Cell]) -> Cell:
    """The same model and GPU on another trace than the one that is scored."""
    alike = [one for one in cells if (one.model, one.gpu) == (cell.model, cell.gpu)]
    traces = list(dict.fromkeys(one.trace for one in alike))
    place = traces.index(cell.trace)
    if len(traces) > 1:
        other = traces[(place + 1) % len(traces)]
    else:
        other = SYNTHETIC[1] if cell.trace == SYNTHETIC[0] else SYNTHETIC[0]
    return Cell(trace=other, model=cell.model, gpu=cell.gpu)


def print_kept(path: Path) -> int:
    try:
        matrix = last_of(path)
    except OSError as error:
        print(f"error: --kept {path}: cannot be read: {error.strerror}", file=sys.stderr)
        return 3
    except NothingKept as error:
        print(f"error: --kept: {error}", file=sys.stderr)
        return 3
    print(f"{path.name} by {matrix.told}")
    print_tables(matrix.cells, matrix.rows, [verdict(cell, matrix.rows) for cell in matrix.cells], None)
    return 0


def print_tables(
    cells: Sequence[Cell], rows: Sequence[Row], verdicts: Sequence[Row], seconds: float | None
) -> None:
    for cell, said in zip(cells, verdicts, strict=True):
        print_cell(cell, rows, said)
    print_summary(verdicts, rows, seconds)


def print_cell(cell: Cell, rows: Sequence[Row], said: Row) -> None:
    print(f"\n{Path(cell.trace).name} · {cell.model} · {cell.gpu}")
    if said.get("reachable_pct", 100.0) < 100:
        print(
            f"  first tokens of {said['reachable_pct']:.2f}% can be in time; prompts beyond are too long alone"
        )
    titles = "".join(f"{title:>{WIDE}}" for title, _ in MEASURES.values())
    print(f"  {'policy':12}{titles}  setting")
    for name in KINDS:
        listed = of_cell(cell, rows, name)
        if listed:
            settings = "; ".join(sorted({_setting(row) for row in listed}))
            told = "".join(
                f"{_pm(listed, measure, places):>{WIDE}}" for measure, (_, places) in MEASURES.items()
            )
            print(f"  {name:12}{told}  {settings}")
    equal = said.get("baselines_at_equal_gpu_hours")
    if equal:
        seeds, of = said["seeds_at_equal_gpu_hours"], said["seeds_swept"]
        part = {name: "" if many in (0, of) else f" ({many} of {of} seeds)" for name, many in seeds.items()}
        at = ", ".join(
            f"{name} {'-' if value is None else f'{value:.2f}'}{part[name]}" for name, value in equal.items()
        )
        print(f"  SLO % at our GPU-hours: {at} → {_stands(said)}")


def _stands(said: Row) -> str:
    if not any(said["seeds_at_equal_gpu_hours"].values()):
        return "nothing to compare with"
    return "ahead" if said["ahead"] else "level" if said["level"] else "NOT ahead"


def _setting(row: Row) -> str:
    named = KINDS[row["policy"]].named(row["parameter"], row["second"])
    return ", ".join(f"{name} {value:g}" for name, value in named.items())


def _pm(rows: Sequence[Row], name: str, places: int) -> str:
    middle = mean(rows, name)
    if middle is None:
        return "-"
    wide = half_width(rows, name)
    return f"{middle:,.{places}f}" if wide is None else f"{middle:,.{places}f} ±{wide:,.{places}f}"


def left_out_in(verdicts: Sequence[Row]) -> dict[str, int]:
    """In how many cells a baseline was not compared with any seed."""
    found: dict[str, int] = {}
    for said in verdicts:
        for name, seeds in said["seeds_at_equal_gpu_hours"].items():
            if not seeds:
                found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def print_summary(verdicts: Sequence[Row], rows: Sequence[Row], seconds: float | None) -> None:
    judged = [said for said in verdicts if said.get("slo_pct") is not None]
    print()
    if judged:
        print_standing(judged)
    print(f"  {CAVEATS}")
    if seconds is not None:
        requests = sum(row["requests"] for row in rows)
        print(f"  {requests:,} requests simulated in {seconds:,.0f} s: {requests / seconds:,.0f} a second")
    print(f"  {belief_error()}")


def print_standing(judged: Sequence[Row]) -> None:
    """How ours does, where it ran."""
    kept = [said for said in judged if said["slo_pct"] >= GOAL_PCT]
    print(f"{OURS}: SLO >= {GOAL_PCT:g}% in {len(kept)} of {len(judged)} cells")
    for name, most in (("static_peak", OF_STATIC_PEAK), ("oracle", OF_ORACLE)):
        ratios = [said[f"of_{name}"] for said in judged if said[f"of_{name}"] is not None]
        long = [said[f"of_{name}"] for said in judged if said["long"] and said[f"of_{name}"] is not None]
        if ratios:
            within = sum(ratio <= most for ratio in ratios)
            print(
                f"  GPU-hours over {name}: median {statistics.median(ratios):.0%}, {min(ratios):.0%} to {max(ratios):.0%}; "
                f"at most {most:.0%} in {within} of {len(ratios)} (of a day and longer: "
                f"{sum(ratio <= most for ratio in long)} of {len(long)})"
            )
        misses = sum(name in said["misses"] for said in judged)
        if misses:
            print(
                f"  {name} itself keeps less than {GOAL_PCT:g}% with some seed in {misses} of {len(judged)} cells, which are left out"
            )
    ahead, level = (sum(said[how] for said in judged) for how in ("ahead", "level"))
    print(
        f"  ahead of every baseline at equal GPU-hours in {ahead} of {len(judged)} cells (aim {AHEAD_ON:.0%}), level with the best in {level}"
    )
    left_out = left_out_in(judged)
    if left_out:
        told = ", ".join(f"{name} in {cells}" for name, cells in left_out.items())
        print(f"  left out, as they never get by with our GPU-hours: {told} of {len(judged)} cells")


if __name__ == "__main__":
    sys.exit(main())
