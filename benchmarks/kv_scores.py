"""Scores of the memory ledger against observed starts: tokens from logged GiB, everything from config alone, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from observations import Case
from plimsoll.facts.gpus import GIB, gpu_named
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.planning.interval import Interval
from plimsoll.planning.memory.constants import MemoryConstants
from plimsoll.planning.memory.kv_groups import CachePlan
from plimsoll.planning.memory.kv_rules import cache_plan
from plimsoll.planning.memory.ledger import Ledger, Verdict, build_ledger

ConstantsFor = Callable[[Case], MemoryConstants]
STAND_IN = "H100-SXM-80GB"
"""For rows without a GPU, where only formulas are scored: no more than the block size of latent attention depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One scored row."""

    case: Case
    unit: str
    observed: float
    predicted: Interval
    gib: Interval | None = None
    """What was predicted to be left for the cache, where that was predicted."""

    @property
    def error_pct(self) -> float:
        return 100 * (self.predicted.mid - self.observed) / self.observed

    @property
    def inside(self) -> bool:
        return self.predicted.low <= self.observed <= self.predicted.high

    @property
    def half_width_pct(self) -> float:
        return 100 * (self.predicted.high - self.predicted.low) / 2 / max(self.predicted.mid, 1)

    def as_row(self) -> dict[str, Any]:
        row = {
            "line": self.case.line,
            "row": self.case.label,
            "unit": self.unit,
            "predicted": _two(self.predicted.mid),
            "observed": self.observed,
            "error_pct": _two(self.error_pct),
        }
        if self.gib is not None:
            row |= {
                "interval": [_two(self.predicted.low), _two(self.predicted.high)],
                "inside": self.inside,
                "gib": _two(self.gib.mid),
                "logged_gib": self.case.available,
            }
        return row


def given_gib(cases: Sequence[Case]) -> tuple[list[Point], Counter[str]]:
    """Tokens (blocks or concurrency where no tokens were printed) from the logged GiB, by formula alone."""
    points: list[Point] = []
    skipped: Counter[str] = Counter()
    for case in cases:
        if case.available is None or case.available <= 0:
            skipped["no GiB in the log"] += 1
            continue
        plan, length = plan_of(case), case.settings.max_model_len
        blocks = blocks_from(case, plan, case.available)
        if case.tokens is not None:
            found, observed, unit = float(plan.tokens_line(blocks, length)), float(case.tokens), "tokens"
        elif case.blocks is not None:
            found, observed, unit = float(blocks), float(case.blocks), "blocks"
        elif case.concurrency is not None:
            found, observed, unit = float(plan.concurrency(blocks, length)), case.concurrency, "x"
        else:
            skipped["GiB but no tokens in the log"] += 1
            continue
        points.append(Point(case=case, unit=unit, observed=observed, predicted=Interval.exact(found)))
    return points, skipped


def exact_in_blocks(point: Point) -> bool:
    """Whether a GiB that rounds to the logged one gives exactly what was printed."""
    case = point.case
    plan = plan_of(case)
    ends = [blocks_from(case, plan, (case.available or 0) + side) for side in (-0.005, 0.005)]
    if point.unit != "tokens":
        return ends[0] <= point.observed <= ends[1]
    printed = [plan.tokens_line(blocks, case.settings.max_model_len) for blocks in ends]
    return printed[0] <= point.observed <= printed[1]


def from_config(
    cases: Sequence[Case], constants_for: ConstantsFor, learned: Learned = NOTHING
) -> tuple[list[Point], Counter[str]]:
    """GiB and tokens from model, GPU and flags alone, or with what other starts have taught."""
    points: list[Point] = []
    skipped: Counter[str] = Counter()
    for case in cases:
        if case.gpu is None:
            skipped["no GPU named and no memory stated"] += 1
        elif case.failure is not None and not (case.available and case.available > 0):
            skipped["failed before it had a cache"] += 1
        elif (point := _planned(case, constants_for(case), learned)) is not None:
            points.append(point)
        else:
            skipped["no tokens, blocks or GiB in the log"] += 1
    return points, skipped


def _planned(case: Case, constants: MemoryConstants, learned: Learned) -> Point | None:
    left = ledger_of(case, constants, learned).left
    plan, length = plan_of(case), case.settings.max_model_len

    def each(of: Callable[[int], float]) -> Interval:
        return Interval(
            *(of(blocks_from(case, plan, size / GIB)) for size in (left.low, left.mid, left.high))
        )

    tokens = each(lambda blocks: plan.tokens_line(blocks, length))
    if case.tokens is not None:
        found, observed, unit = tokens, float(case.tokens), "tokens"
    elif case.blocks is not None:
        found, observed, unit = each(float), float(case.blocks), "blocks"
    elif case.available is not None:
        logged = blocks_from(case, plan, case.available)
        found, observed, unit = tokens, float(plan.tokens_line(logged, length)), "tokens"
    elif case.concurrency is not None:
        # A data-parallel engine's figure is the sum over its ranks.
        found = each(lambda blocks: float(plan.concurrency(blocks, length)))
        observed, unit = case.concurrency / case.layout.data, "x"
    else:
        return None
    gib = Interval(left.low / GIB, left.mid / GIB, left.high / GIB)
    return Point(case=case, unit=unit, observed=observed, predicted=found, gib=gib)


def verdicts(
    cases: Sequence[Case], constants_for: ConstantsFor
) -> tuple[list[tuple[Case, Verdict]], Counter[str]]:
    """Each start's verdict; failures that memory and length cannot explain are counted by name."""
    found: list[tuple[Case, Verdict]] = []
    skipped: Counter[str] = Counter()
    for case in cases:
        if case.gpu is None:
            skipped["no GPU named and no memory stated"] += 1
        elif case.failure is not None and not case.failed_for_memory:
            skipped[f"failed otherwise: {case.failure[:60]}"] += 1
        else:
            found.append((case, ledger_of(case, constants_for(case)).verdict))
    return found, skipped


def ledger_of(case: Case, constants: MemoryConstants, learned: Learned = NOTHING) -> Ledger:
    return build_ledger(
        model=case.model,
        gpu=case.gpu or gpu_named(STAND_IN),
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
        device_bytes=case.device_bytes,
        constants=constants,
        learned=learned,
    )


def plan_of(case: Case) -> CachePlan:
    return cache_plan(
        case.model.architecture,
        gpu=case.gpu or gpu_named(STAND_IN),
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
    )


def blocks_from(case: Case, plan: CachePlan, gib: float) -> int:
    return plan.blocks([gib * GIB] * case.layout.pipeline)


def summary(points: Sequence[Point]) -> dict[str, Any]:
    """The figures of one score, all classes together and one by one."""
    return {
        "rows": len(points),
        **_errors(points),
        "in_interval_pct": _two(100 * sum(point.inside for point in points) / max(1, len(points))),
        "half_width_pct": _two(middle([point.half_width_pct for point in points])),
        "by_class": {
            name: {"rows": len(own), **_errors(own)}
            for name in sorted({point.case.kind for point in points})
            for own in [[point for point in points if point.case.kind == name]]
        },
    }


def gib_summary(points: Sequence[Point]) -> dict[str, Any]:
    """GiB of cache predicted against logged, in percent of the logged."""
    errors = [
        100 * abs(point.gib.mid - point.case.available) / point.case.available
        for point in points
        if point.gib is not None and point.case.available
    ]
    return {"rows": len(errors), "median_pct": _two(middle(errors)), "p90_pct": _two(quantile(errors, 0.9))}


def _errors(points: Sequence[Point]) -> dict[str, float]:
    errors = [abs(point.error_pct) for point in points]
    return {"median_pct": _two(middle(errors)), "p90_pct": _two(quantile(errors, 0.9))}


def middle(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Between the two nearest values, linearly."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _two(value: float) -> float:
    return round(value, 2)
