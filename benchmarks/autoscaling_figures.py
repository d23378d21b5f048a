"""What the rows of `autoscaling` say together: means with their intervals, attainment at equal GPU-hours, and a verdict a cell."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

from autoscaling_cells import Cell
from plimsoll.facts.spans import DAY_S
from plimsoll.simulate.compare import GOAL_PCT
from plimsoll.simulate.policies.registry import SWEPT

OURS = "plimsoll"
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided 95% by number of seeds; beyond, two terms of the series around the normal's are as good."""
NORMAL = 1.96
MEASURES = {
    "slo_pct": ("SLO %", 2),
    "gpu_hours": ("GPU-hours", 1),
    "ttft_p99_ms": ("TTFT p99 ms", 0),
    "itl_p99_ms": ("ITL p99 ms", 0),
    "preemptions_per_1000": ("pre/1000", 1),
    "actions_per_day": ("actions/d", 1),
    "reversals_per_day": ("reversals/d", 1),
}
"""What is told of a policy, as a mean over seeds with its interval: title and places."""
LONG_S = 0.98 * DAY_S
"""A trace of a day and longer, of which a saving over the static peak is asked; a record of a day ends with its last request."""


Row = dict[str, Any]


def of_cell(cell: Cell, rows: Iterable[Row], policy: str, *, swept: bool = False) -> list[Row]:
    key = (Path(cell.trace).name, cell.model, cell.gpu, policy)
    return [
        row
        for row in rows
        if (row["trace"], row["model"], row["gpu"], row["policy"]) == key and (swept or not row["swept"])
    ]


def mean(rows: Sequence[Row], name: str) -> float | None:
    values = [row[name] for row in rows if row[name] is not None]
    return statistics.fmean(values) if values else None


def half_width(rows: Sequence[Row], name: str) -> float | None:
    """Of the 95% interval of the mean over seeds; None with a single one."""
    values = [row[name] for row in rows if row[name] is not None]
    if len(values) < 2:
        return None
    return float(student(len(values)) * statistics.stdev(values) / sqrt(len(values)))


def student(seeds: int) -> float:
    free = seeds - 1
    series = NORMAL + (NORMAL**3 + NORMAL) / (4 * free)
    return STUDENT.get(seeds, series + (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / (96 * free**2))


def interval(cell: Cell, rows: Sequence[Row], policy: str) -> Row | None:
    """Mean and half width of every measure of one policy in one cell; None where it did not run."""
    listed = of_cell(cell, rows, policy)
    if not listed:
        return None
    named = {"trace": Path(cell.trace).name, "model": cell.model, "gpu": cell.gpu, "policy": policy}
    told = {name: {"mean": mean(listed, name), "half_width": half_width(listed, name)} for name in MEASURES}
    return {**named, "seeds": len(listed), **told}


def curve(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """GPU-hours and attainment by setting, cheapest first, each at least as good as the cheaper ones."""
    by_setting: dict[float, list[Row]] = {}
    for row in rows:
        by_setting.setdefault(row["parameter"], []).append(row)
    points = sorted(
        (statistics.fmean(row["gpu_hours"] for row in one), statistics.fmean(row["slo_pct"] for row in one))
        for one in by_setting.values()
    )
    best, rising = 0.0, []
    for hours, slo in points:
        best = max(best, slo)
        rising.append((hours, best))
    return rising


def at_equal_hours(points: Sequence[tuple[float, float]], hours: float) -> float | None:
    """Attainment between the points; None where the baseline never gets by with so few GPU-hours."""
    if not points or hours < points[0][0]:
        return None
    for (low, low_slo), (high, high_slo) in pairwise(points):
        if hours <= high:
            return low_slo + (high_slo - low_slo) * (hours - low) / (high - low) if high > low else high_slo
    return points[-1][1]


def at_ours(tried: Sequence[Row], ours: Sequence[Row]) -> Row:
    """A baseline's mean attainment at our GPU-hours of each seed, beside our own with the same seeds.

    Only seeds count with which the baseline gets by with as few GPU-hours; `seeds` tells how many those are. None where there is none.
    """
    found = [
        (value, one["slo_pct"])
        for one in ours
        if (
            value := at_equal_hours(
                curve([row for row in tried if row["seed"] == one["seed"]]), one["gpu_hours"]
            )
        )
        is not None
    ]
    return {
        "slo_pct": statistics.fmean(value for value, _ in found) if found else None,
        "ours_slo_pct": statistics.fmean(value for _, value in found) if found else None,
        "seeds": len(found),
    }


def verdict(cell: Cell, rows: Sequence[Row]) -> Row:
    """How ours stands in one cell against what is aimed at."""
    ours = of_cell(cell, rows, OURS)
    said: Row = {"trace": Path(cell.trace).name, "model": cell.model, "gpu": cell.gpu}
    if not ours:
        return said
    said["slo_pct"] = mean(ours, "slo_pct")
    said["reachable_pct"] = mean(ours, "reachable_pct")
    said["long"] = ours[0]["span_s"] >= LONG_S
    hours = mean(ours, "gpu_hours") or 0.0
    said["misses"] = []
    for name in ("static_peak", "oracle"):
        theirs = of_cell(cell, rows, name)
        misses = any(row["slo_pct"] < GOAL_PCT for row in theirs)
        other = mean(theirs, "gpu_hours")
        # Savings are told only beside a way that itself keeps the goal, with every seed.
        said[f"of_{name}"] = None if misses or not other else round(hours / other, 4)
        said["misses"] += [name] if misses else []
    seeds = {row["seed"] for row in rows if row["swept"]}
    compared = [row for row in ours if row["seed"] in seeds] or ours
    others: dict[str, Row] = {}
    for name in ("static_peak", *SWEPT):
        tried = of_cell(cell, rows, name, swept=True)
        if tried:
            others[name] = at_ours(tried, compared)
    said["baselines_at_equal_gpu_hours"] = {name: one["slo_pct"] for name, one in others.items()}
    said["seeds_at_equal_gpu_hours"] = {name: one["seeds"] for name, one in others.items()}
    said["seeds_swept"] = len(compared)
    # Where no baseline gets by with as few GPU-hours, there is nothing to compare with: the GPU-hours themselves tell what ours saves.
    # As they are told: who reads the same number twice would not see who is ahead.
    places = MEASURES["slo_pct"][1]
    told = [
        (round(one["ours_slo_pct"], places), round(one["slo_pct"], places))
        for one in others.values()
        if one["seeds"]
    ]
    said["ahead"] = bool(told) and all(mine > theirs for mine, theirs in told)
    said["level"] = bool(told) and min(mine - theirs for mine, theirs in told) == 0
    return said
