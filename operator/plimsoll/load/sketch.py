"""A distribution that takes little memory however long a run lasts: counts in logarithmic buckets.

Buckets grow by 1%, so percentiles are at most 0.5% off. Count, mean and extremes are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_GROWTH: Final = 1.01
_LOG: Final = math.log(_GROWTH)
_LEAST: Final = 1e-6
"""Values below a microsecond count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A distribution in milliseconds, as it is printed and written as JSON."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Sketch:
    """Takes values in seconds, and gives a Spread in milliseconds."""

    __slots__ = ("_buckets", "count", "longest", "shortest", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.shortest = math.inf
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        bucket = math.floor(math.log(seconds) / _LOG) if seconds > _LEAST else _NOTHING
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += seconds
        self.shortest = min(self.shortest, seconds)
        self.longest = max(self.longest, seconds)

    def join(self, other: Sketch) -> None:
        """Adds all values of another sketch."""
        for bucket, count in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        self.count += other.count
        self.total += other.total
        self.shortest = min(self.shortest, other.shortest)
        self.longest = max(self.longest, other.longest)

    def quantile(self, share: float) -> float:
        """The least value such that at least this share of all values is not above it. There must be values."""
        wanted, seen = math.ceil(share * self.count), 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                middle = 0.0 if bucket == _NOTHING else math.exp((bucket + 0.5) * _LOG)
                return min(max(middle, self.shortest), self.longest)
        return self.longest

    def spread(self) -> Spread | None:
        """The distribution; None where there were no values."""
        if not self.count:
            return None
        return Spread(
            count=self.count,
            mean=_ms(self.total / self.count),
            p50=_ms(self.quantile(0.50)),
            p90=_ms(self.quantile(0.90)),
            p95=_ms(self.quantile(0.95)),
            p99=_ms(self.quantile(0.99)),
            max=_ms(self.longest),
        )


_NOTHING: Final = math.floor(math.log(_LEAST) / _LOG) - 1


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
