"""How long prompts or answers are: a log-normal distribution, from as many of its percentiles as somebody knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from statistics import NormalDist
from typing import Final

P95: Final = 1.6449
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
P99: Final = 2.3263
ASSUMED_TAIL: Final = 3.0
"""p95 over p50 of lengths where only one is known: real conversations have 3 to 5."""
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Length:
    """Log-normal lengths in tokens."""

    median: float
    sigma: float
    tail: float | None = None
    """The sigma of lengths above p95, where both p95 and p99 are known: limits cut tails short, and few make them long."""
    known: float = 0.0
    """Standard deviations to the highest percentile that is known. What lies beyond is a guess."""

    @staticmethod
    def by(p50: float | None, p95: float | None, p99: float | None, otherwise: float) -> Length:
        """From the percentiles that are known; a missing spread is the assumed one."""
        tails = [(p95, P95), (p99, P99)]
        upper = next(((value, far) for value, far in tails if value is not None), None)
        sigma = log(ASSUMED_TAIL) / P95
        if p50 is not None and upper is not None:
            sigma = max(0.0, log(upper[0] / p50) / upper[1])
        elif upper is not None:
            p50 = upper[0] / exp(sigma * upper[1])
        tail = None if p95 is None or p99 is None else max(0.0, log(p99 / p95) / (P99 - P95))
        known = 0.0 if upper is None else P95 if p99 is None else P99
        return Length(otherwise if p50 is None else p50, sigma, tail, known)

    def less(self, tokens: int) -> Length:
        """Without so many tokens of each: a part that all have in common leaves the same percentiles together with the rest."""
        if not tokens:
            return self
        p50, p95, p99 = (max(1.0, self.at(far) - tokens) for far in (0.0, P95, P99))
        return replace(Length.by(p50, p95, None if self.tail is None else p99, p50), known=self.known)

    def at(self, deviations: float) -> float:
        """The length so many standard deviations above the median: P95 and P99 give those percentiles."""
        if self.tail is None or deviations <= P95:
            return self.median * exp(self.sigma * deviations)
        return self.median * exp(self.sigma * P95 + self.tail * (deviations - P95))

    def evenly(self, count: int) -> tuple[float, ...]:
        """So many lengths that stand for all: the middles of as many equally likely ranges, the shortest first."""
        return tuple(self.at(_NORMAL.inv_cdf((place + 0.5) / count)) for place in range(count))

    @property
    def highest_known(self) -> float:
        return self.at(self.known)

    def beyond(self, most: float, chance: float) -> float:
        """A length above the highest that is known, and at most `most`: the longer the larger a chance between 0 and 1 is."""
        low, high = _NORMAL.cdf(self.known), _NORMAL.cdf(self._deviations(most))
        return self.at(_NORMAL.inv_cdf(low + (high - low) * chance))

    def _deviations(self, tokens: float) -> float:
        """Of a length above the highest that is known."""
        from_p95 = self.tail is not None
        sigma, begin = (self.tail, P95) if from_p95 else (self.sigma, 0.0)
        return begin + log(tokens / self.at(begin)) / sigma if sigma else begin
