"""When requests come, drawn independently of when answers end.

Gaps between arrivals have a Gamma distribution. Its shape k gives the coefficient of variation 1 / sqrt(k): 1 is Poisson, smaller shapes come
in bursts, larger ones more regularly. Closed loops have no arrivals, as there the next request waits for an answer (`drive`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from plimsoll.load.trace_rates import Rate

_REGULAR: Final = 1e-3
"""Below this coefficient of variation all gaps are taken to be equal."""


def arrivals(rate: float, burstiness: float, chance: random.Random) -> Iterator[float]:
    """Times of arrival at `rate` a second, for ever."""
    now = 0.0
    while True:
        now += chance.gammavariate(burstiness, 1 / (rate * burstiness))
        yield now


def changing(rates: Iterable[Rate], chance: random.Random) -> Iterator[float]:
    """Times of arrival at rates that change with time. The last rate only says when the one before it ends.

    Gaps are drawn at a rate of one a second and then divided by the rate of the moment, so that a gap across a change of the rate is right
    on both sides of it.
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
    """A gap at a rate of one a second, so it is 1 on average; always 1 where there is practically no variation."""
    if cv < _REGULAR:
        return 1.0
    shape = 1 / cv**2
    return chance.gammavariate(shape, 1 / shape)
