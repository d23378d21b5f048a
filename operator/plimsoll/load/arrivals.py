"""When requests come: gaps between arrivals that no answer can hold back.

A Gamma distribution of gaps with shape k has the coefficient of variation 1 / sqrt(k): 1 is Poisson, below it bursts,
above it regularity. Closed loops have no arrivals; there the next request waits for an answer (`drive`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from plimsoll.load.traces import Rate

_REGULAR: Final = 1e-3


def arrivals(rate: float, burstiness: float, chance: random.Random) -> Iterator[float]:
    """Times of arrival at `rate` a second, for ever."""
    now = 0.0
    while True:
        now += chance.gammavariate(burstiness, 1 / (rate * burstiness))
        yield now


def changing(rates: Iterable[Rate], chance: random.Random) -> Iterator[float]:
    """Times of arrival at rates that change with time; the last line says only when the one before it ends.

    Time is stretched by the rate: gaps are drawn at one a second and shortened by the rate that holds, so that a gap
    that spans a change is right on both of its sides.
    """
    owed: float | None = None  # what is left of the gap, at a rate of one a second
    for held, following in pairwise(rates):
        now = held.at
        while held.per_second > 0:
            owed = _gap(held.cv, chance) if owed is None else owed
            then = now + owed / held.per_second
            if then >= following.at:
                owed = max(0.0, owed - (following.at - now) * held.per_second)
                break
            yield then
            now, owed = then, None


def _gap(cv: float, chance: random.Random) -> float:
    """One on average. Without variation, or with less than anybody could see, it is always one."""
    if cv < _REGULAR:
        return 1.0
    shape = 1 / cv**2
    return chance.gammavariate(shape, 1 / shape)
