"""The 99th percentiles of what users wait for, over time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.meters import ITL, Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Of some minutes together."""

    at: float
    ttft_p99_ms: float | None
    """Of requests that came then and were answered; None where there are none."""
    itl_p99_ms: float | None
    """Of gaps between tokens that ended then."""


class Latencies:
    def __init__(self, minutes: int, each: int) -> None:
        """Of so many minutes, `each` of them together."""
        self._each = each
        spans = -(-minutes // each)
        self._ttfts = [array("d") for _ in range(spans)]
        self._itl: list[float | None] = [None] * spans
        self._open: list[Engine] = []
        """Those that may have counted since the last span ended."""
        self._known = 0
        self._before: dict[Engine, list[int]] = {}

    def answered(self, minute: int, ttft: float) -> None:
        """Of a request that came in this minute."""
        self._ttfts[minute // self._each].append(ttft)

    def ends(self, minute: int, following: int) -> bool:
        """Whether the next look is of another span."""
        return minute // self._each != following // self._each

    def look(self, estate: Estate, minute: int) -> None:
        """At the end of the span that this minute belongs to: what was counted since the span before, by engines that have ended since too."""
        self._open += estate.engines[self._known :]
        self._known = len(estate.engines)
        since = Histogram(ITL)
        for engine in self._open:
            counts = engine.itl.counts
            before = self._before.get(engine)
            gained = counts if before is None else [a - b for a, b in zip(counts, before, strict=True)]
            since.counts = [a + b for a, b in zip(since.counts, gained, strict=True)]
        alive = {one.engine for one in estate.instances}
        self._open = [one for one in self._open if one in alive]
        self._before = {one: list(one.itl.counts) for one in self._open}
        self._itl[minute // self._each] = since.quantile(0.99)

    def ordered(self) -> list[float]:
        """All times to the first token, the shortest first."""
        return sorted(chain.from_iterable(self._ttfts))

    def points(self) -> tuple[Latency, ...]:
        found = (
            Latency(at=60.0 * self._each * place, ttft_p99_ms=_p99(ttfts), itl_p99_ms=_ms(itl))
            for place, (ttfts, itl) in enumerate(zip(self._ttfts, self._itl, strict=True))
        )
        return tuple(one for one in found if one.ttft_p99_ms is not None or one.itl_p99_ms is not None)


def _p99(seconds: Sequence[float]) -> float | None:
    ordered = sorted(seconds)
    return _ms(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]) if ordered else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
