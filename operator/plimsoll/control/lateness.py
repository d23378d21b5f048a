"""Which share came later than promised over the last hours: that 99 of 100 are in time is promised over hours, not in each minute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.control.latencies import Spread

PROMISED: Final = 0.01
"""Share of first tokens, and of gaps, that may be late: limits are of the 99th percentile."""
ALLOWED: Final = 0.75 * PROMISED
"""Share that is aimed to be late over hours: the rest of the promise is left for what nobody foresees."""
HOURS_MINUTES: Final = 360
"""Minutes over which the mean is taken."""
FIRST_MINUTES: Final = 60
"""Minutes that the first belief weighs as much as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """The share that was late, held against one limit. It says nothing about another limit."""

    share: float
    minutes: int = 0
    """How many minutes it was seen for, counted up to where each new one weighs the same."""
    limit_s: float | None = None
    """None: nothing was seen yet, so it holds for any limit."""

    def against(self, limit_s: float | None, at_first: Lateness) -> Lateness:
        return self if self.limit_s == limit_s else replace(at_first, limit_s=limit_s)

    def seen(self, share: float) -> Lateness:
        """The mean with one more minute."""
        minutes = min(self.minutes + 1, HOURS_MINUTES - FIRST_MINUTES)
        weight = 1 / (FIRST_MINUTES + minutes)
        return replace(self, share=self.share + weight * (share - self.share), minutes=minutes)


TWICE: Final = Lateness(share=2 * ALLOWED)
"""The first belief about first tokens: twice as many late as allowed, until an hour has shown better. Replicas that are missing take a
start-up to come."""
AS_ALLOWED: Final = Lateness(share=ALLOWED, minutes=HOURS_MINUTES - FIRST_MINUTES)
"""The first belief about all else: just as many late as allowed, until hours have shown otherwise."""


def late_share(said: Spread | None, limit_s: float | None, most_s: float = math.inf) -> float | None:
    """Share of what the last minutes saw that was late; None where no limit is set, or too little was seen. The
    whole bucket that holds the limit counts as late, unless nothing lasts longer than `most_s` and that keeps the limit."""
    if limit_s is None or said is None or said.shape is None or not said.trusted:
        return None
    surely = limit_s if most_s > limit_s else said.shape.bound_from(limit_s)
    return said.shape.above(surely) / said.shape.count
