"""Histograms as engines export them. They are added up first, and then asked for a quantile, never the other way round.

A quantile lies somewhere in a bucket, within which values are taken as evenly spread, as Prometheus does. If it lies in the last bucket,
which has no upper bound, the largest bound is returned: it is at least that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from math import erf, inf, log, sqrt
from operator import le, sub
from typing import Final

SQRT_2: Final = sqrt(2)
SIGMAS: Final = tuple(place / 50 for place in range(2, 76))
"""Widths of log-normal distributions that are tried."""
COARSE: Final = (0, 1, 2, 3, 4, 6, 8, 10, 13, 17, 22, 28, 36, 46, 58, 73)
"""Indices of those that are tried first, each about a quarter wider than the one before, as small errors matter more in narrow ones."""
TOLD_APART: Final = 0.03
"""The least share of the counts that must lie on either side of some bound for a width to be found."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts by upper bound: seconds for times, tokens for lengths. The last bound is infinite."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float = 0.0

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count > 0 else None

    def minus(self, before: Histogram) -> Histogram:
        """What was counted since `before`; all of it where the bounds have changed, as with another engine version."""
        if self.bounds != before.bounds:
            return self
        counts = tuple(map(sub, self.counts, before.counts))
        return Histogram(self.bounds, counts, max(0.0, self.sum - before.sum))

    def plus(self, other: Histogram) -> Histogram:
        return total((self, other)) or self

    def quantile(self, share: float) -> float | None:
        """The value below which this share of the counts lies; None where nothing was counted, or there is no bound but infinity."""
        bounds, counts, count = self.bounds, self.counts, self.count
        if count <= 0 or len(bounds) < 2:
            return None
        rank = share * count
        place = min(bisect_left(counts, rank), len(counts) - 1)
        lower = bounds[place - 1] if place else 0.0
        upper = bounds[place]
        if upper == inf:
            return lower
        below = counts[place - 1] if place else 0.0
        inside = counts[place] - below
        return upper if inside <= 0 else lower + (upper - lower) * (rank - below) / inside

    @property
    def sigma(self) -> float | None:
        """The width of the log-normal distribution with this mean that fits the shares below the bounds best. These shares are exact, while
        a quantile within a bucket is a guess. None where one bucket has nearly all counts."""
        mean = self.mean
        if not mean:
            return None
        shares = [count / self.count for count in self.counts]
        if not any(TOLD_APART <= share <= 1 - TOLD_APART for share in shares):
            return None
        known = [
            (log(bound / mean) / SQRT_2, 2 * share - 1)
            for bound, share in zip(self.bounds, shares, strict=True)
            if 0 < bound < inf
        ]

        def miss(sigma: float) -> float:
            half = sigma / (2 * SQRT_2)
            return sum([(erf(place / sigma + half) - share) ** 2 for place, share in known])

        # As the width grows the error falls to its least and rises again, so the best width is near the best of the coarse ones. With two
        # kinds of lengths the error may fall twice, but then both times to about the same.
        best = min(range(len(COARSE)), key=lambda step: miss(SIGMAS[COARSE[step]]))
        first, last = COARSE[max(0, best - 1)], COARSE[min(len(COARSE) - 1, best + 1)]
        return min(SIGMAS[first : last + 1], key=miss)

    def shares(self) -> list[tuple[float, float]]:
        """Pairs of a share of the counts and its value, which is the middle of its bucket."""
        found, below, lower = [], 0.0, 0.0
        for upper, count in zip(self.bounds, self.counts, strict=True):
            if count > below:
                value = lower if upper == inf else (lower + upper) / 2
                found.append(((count - below) / self.count, value))
            below, lower = max(below, count), upper
        return found

    @property
    def worst(self) -> float | None:
        """The upper bound of the highest bucket that has counts; its lower bound, where that bucket is the unbounded one. None where nothing
        was counted."""
        if len(self.bounds) < 2:
            return None
        for place in range(len(self.counts) - 1, -1, -1):
            if self.counts[place] > (self.counts[place - 1] if place else 0.0):
                bound = self.bounds[place]
                return self.bounds[place - 1] if bound == inf else bound
        return None

    def bound_from(self, value: float) -> float:
        """The first bound that is not below a value: up to it nothing tells what was counted from the value."""
        place = bisect_left(self.bounds, value)
        return self.bounds[place] if place < len(self.bounds) else inf

    def above(self, bound: float) -> float:
        """How many were above a bound; a bound inside a bucket counts the whole bucket as above."""
        place = bisect_left(self.bounds, bound)
        if place < len(self.bounds) and self.bounds[place] == bound:
            return self.count - self.counts[place]
        return self.count - (self.counts[place - 1] if place else 0.0)


def total(parts: Iterable[Histogram]) -> Histogram | None:
    """All histograms as one. Where bounds differ only the common ones are kept, which loses detail but counts nothing wrongly."""
    listed = [part for part in parts if part.counts]
    if len(listed) < 2:
        return listed[0] if listed else None
    bounds = listed[0].bounds
    if any(part.bounds != bounds for part in listed):
        bounds = _common(listed)
        listed = [_only(part, bounds) for part in listed]
    counts = tuple(map(sum, zip(*(part.counts for part in listed), strict=True)))
    return Histogram(bounds, counts, sum(part.sum for part in listed))


def _common(parts: list[Histogram]) -> tuple[float, ...]:
    shared = set(parts[0].bounds)
    for part in parts[1:]:
        shared &= set(part.bounds)
    return tuple(sorted(shared | {inf}))


def _only(part: Histogram, bounds: tuple[float, ...]) -> Histogram:
    at = dict(zip(part.bounds, part.counts, strict=True))
    return Histogram(bounds, tuple(at.get(bound, part.count) for bound in bounds), part.sum)


def is_cumulative(counts: tuple[float, ...]) -> bool:
    """Whether counts can be those of a histogram: they never fall, and none is negative."""
    return all(map(le, counts, counts[1:])) and (not counts or counts[0] >= 0)
