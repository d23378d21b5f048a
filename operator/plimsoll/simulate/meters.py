"""What an engine counts about itself: histograms with the buckets it exports, kept finer inside so that reports can read tails.

One list of edges serves both: the exported edges are some of them, so an exported count is a sum and never a guess.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import Final

TTFT_BUCKETS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_BUCKETS: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
LATENCY_BUCKETS: Final = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
TOKEN_BUCKETS: Final = tuple(float(digit * 10**power) for power in range(6) for digit in (1, 2, 5))
"""Of lengths. The engine stops at its longest request; further buckets would repeat the last count."""

_LEAST: Final = 0.001
_FINER: Final = 1.05
"""Inner edges stand at most 5% apart: a quantile read from them is off by no more."""


class Edges:
    """Exported edges and what stands between them."""

    def __init__(self, exported: Sequence[float], finer: float | None = _FINER) -> None:
        inner = list(exported)
        if finer is not None:
            edge = _LEAST
            while edge < exported[-1]:
                inner.append(edge)
                edge *= finer
        self.inner: Final = sorted(set(inner))
        self.exported: Final = tuple(exported)
        self.places: Final = tuple(self.inner.index(edge) for edge in exported)


TTFT: Final = Edges(TTFT_BUCKETS)
ITL: Final = Edges(ITL_BUCKETS)
LATENCY: Final = Edges(LATENCY_BUCKETS, finer=None)
TOKENS: Final = Edges(TOKEN_BUCKETS, finer=None)


class Histogram:
    """Counts by inner bucket; a value on an edge belongs below it, as `le` says."""

    __slots__ = ("counts", "edges", "inner", "total")

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.inner = edges.inner
        self.counts = [0] * (len(edges.inner) + 1)
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.inner, value)] += times
        self.total += value * times

    def add_line(self, first: float, slope: float, steps: int, times: int) -> None:
        """`times` values at each of `steps` points of a rising line."""
        inner, counts = self.inner, self.counts
        place = bisect_left(inner, first)
        last = bisect_left(inner, first + slope * (steps - 1))
        done = 0
        while place < last:
            below = min(steps, int((inner[place] - first) / slope) + 1)
            counts[place] += (below - done) * times
            done = max(done, below)
            place += 1
        counts[place] += (steps - done) * times
        self.total += times * steps * (first + slope * (steps - 1) / 2)

    def exported(self) -> tuple[int, ...]:
        """Cumulative counts at the exported edges, and all of them (`+Inf`) last."""
        sums = list(accumulate(self.counts))
        return (*(sums[place] for place in self.edges.places), sums[-1])

    def merge(self, other: Histogram) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        return sum(self.counts)

    def within(self, limit: float) -> float:
        """How many are at most the limit; a bucket that it cuts is taken to be filled evenly."""
        inner = self.inner
        place = bisect_left(inner, limit)
        if place == len(inner):
            return float(sum(self.counts[:place]))
        below = inner[place - 1] if place else 0.0
        return sum(self.counts[:place]) + self.counts[place] * (limit - below) / (inner[place] - below)

    def quantile(self, share: float) -> float | None:
        """The upper edge of the bucket that holds the quantile; None where nothing was counted."""
        count = self.count
        if not count:
            return None
        wanted, sums = share * count, 0
        for place, counted in enumerate(self.counts):
            sums += counted
            if sums >= wanted:
                return self.inner[place] if place < len(self.inner) else inf
        return inf
