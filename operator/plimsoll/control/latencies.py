"""Latencies and lengths of a deployment: histograms of its replicas, summed first and then asked for quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from plimsoll.facts.histograms import Histogram, total
from plimsoll.values import light

ENOUGH: Final = 50
"""Samples below which a p99 says nothing."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Quantiles of a time in seconds or a length in tokens."""

    p50: float
    p95: float
    p99: float
    worst: float
    """Upper bound of the highest bucket with anything in it: the longest gap, as far as buckets tell."""
    mean: float | None
    samples: float
    shape: Histogram | None = None
    """What it was taken from."""

    @classmethod
    def of(cls, histogram: Histogram | None) -> Spread | None:
        """None where nobody can tell: nothing was counted, or nothing but that it was below infinity."""
        if histogram is None:
            return None
        p50, p95, p99 = histogram.quantile(0.50), histogram.quantile(0.95), histogram.quantile(0.99)
        if p50 is None or p95 is None or p99 is None:
            return None
        return cls(
            p50=p50,
            p95=p95,
            p99=p99,
            worst=histogram.worst or p99,
            mean=histogram.mean,
            samples=histogram.count,
            shape=histogram,
        )

    def p99_of(self, limit: float, most: float) -> float:
        """The 99th percentile to hold against a limit. Where both lie in one bucket it is a guess, which takes what is in the bucket for spread
        evenly; if nothing lasts longer than `most`, and that keeps the limit, it is `most` instead."""
        if self.shape is None or not most <= limit < self.p99 or self.p99 > self.shape.bound_from(limit):
            return self.p99
        return most

    @cached_property
    def trusted(self) -> bool:
        return self.samples >= ENOUGH

    @cached_property
    def sigma(self) -> float | None:
        """Of the nearest log-normal distribution; None where that is not known. Cached, as it is dear to work out."""
        return None if self.shape is None else self.shape.sigma

    @cached_property
    def worked_out(self) -> dict[tuple[float, ...], float]:
        """A cache for what others work out of its shares, by what else that depends on; it lives as long as this value."""
        return {}

    @cached_property
    def shares(self) -> tuple[tuple[float, float], ...]:
        """Pairs of a share of what was counted and the value that this share has. Without a known shape, all of it has the 99th percentile."""
        return ((1.0, self.p99),) if self.shape is None else tuple(self.shape.shares())


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Over five minutes, all live replicas together."""

    ttft: Spread | None = None
    itl: Spread | None = None
    e2e: Spread | None = None
    prompt: Spread | None = None
    output: Spread | None = None
    whole: bool = True
    """Whether every replica was seen over the whole time, so that samples can be counted by the second."""


NOTHING_SEEN: Final = Latencies()


class Spreads:
    """Quantiles of histograms, each worked out once: as questions for histograms take turns, one stands for several ticks."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Histogram, Spread | None]] = {}
        self._asked: dict[int, tuple[Histogram, Spread | None]] = {}

    def of(self, histogram: Histogram | None) -> Spread | None:
        if histogram is None:
            return None
        # A histogram that is held here is alive, so no other one has its id.
        found = self._known.get(id(histogram)) or (histogram, Spread.of(histogram))
        self._asked[id(histogram)] = found
        return found[1]

    def over(self) -> None:
        """The tick is over; what it did not ask for is forgotten."""
        self._known, self._asked = self._asked, {}


def latencies_of(summed: Iterable[Mapping[str, Histogram]], spreads: Spreads) -> Latencies:
    """From histograms that were summed by set already, each by its field of a sample."""
    listed = list(summed)

    def spread(name: str) -> Spread | None:
        parts = [each[name] for each in listed if name in each]
        return spreads.of(total(parts)) if parts else None

    return Latencies(
        ttft=spread("ttft"),
        itl=spread("itl"),
        e2e=spread("e2e"),
        prompt=spread("prompt_lengths"),
        output=spread("output_lengths"),
    )
