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

    @cached_property
    def trusted(self) -> bool:
        return self.samples >= ENOUGH

    @cached_property
    def sigma(self) -> float | None:
        """Of the log-normal distribution that is nearest; None where that is not known. Dear, and the same for several ticks."""
        return None if self.shape is None else self.shape.sigma

    @cached_property
    def worked_out(self) -> dict[tuple[float, ...], float]:
        """What somebody found out of its shares, by what else it depends on: it goes when this goes."""
        return {}

    @cached_property
    def shares(self) -> tuple[tuple[float, float], ...]:
        """Of what was counted, and the values they have; all of it has the 99th percentile's where no shape is known."""
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
    """Whether each replica was looked at for all of the time, so that its samples can be counted a second."""


NOTHING_SEEN: Final = Latencies()


class Spreads:
    """Of histograms that stand for several ticks, since their questions take turns: each is worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Histogram, Spread | None]] = {}
        self._asked: dict[int, tuple[Histogram, Spread | None]] = {}

    def of(self, histogram: Histogram | None) -> Spread | None:
        if histogram is None:
            return None
        # Who is held here is alive, so no other histogram has its identity.
        found = self._known.get(id(histogram)) or (histogram, Spread.of(histogram))
        self._asked[id(histogram)] = found
        return found[1]

    def over(self) -> None:
        """The tick is over; what it did not ask for is forgotten."""
        self._known, self._asked = self._asked, {}


def latencies_of(summed: Iterable[Mapping[str, Histogram]], spreads: Spreads) -> Latencies:
    """Of histograms that were summed by set already, each by its name as a sample has it."""
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
