"""How much came later than promised, in the mean of the last hours: 99 of 100 are promised over hours, not in each minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.control.latencies import Spread

PROMISED: Final = 0.01
"""Share of first tokens, and of gaps, that may be late: limits are of the 99th percentile."""
ALLOWED: Final = PROMISED / 2
"""Share that may in fact be late in the mean of hours: the other half of the promise is for what nobody foresees."""
HOURS_MINUTES: Final = 360
"""That all weigh the same as the newest one."""
FIRST_MINUTES: Final = 60
"""That what is believed at first weighs as much as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """A share, of one limit: what was found of another one says nothing of it."""

    share: float
    minutes: int = 0
    """That it was seen for, up to those from which each new one weighs the same."""
    limit_s: float | None = None
    """None: of any, as nobody has looked."""

    def against(self, limit_s: float | None, at_first: Lateness) -> Lateness:
        return self if self.limit_s == limit_s else replace(at_first, limit_s=limit_s)

    def seen(self, share: float) -> Lateness:
        """With what a minute showed."""
        minutes = min(self.minutes + 1, HOURS_MINUTES - FIRST_MINUTES)
        weight = 1 / (FIRST_MINUTES + minutes)
        return replace(self, share=self.share + weight * (share - self.share), minutes=minutes)


TWICE: Final = Lateness(share=2 * ALLOWED)
"""Twice what may be until an hour has shown better: nobody knows, and replicas that are not there take a start-up to come."""
AS_ALLOWED: Final = Lateness(share=ALLOWED, minutes=HOURS_MINUTES - FIRST_MINUTES)
"""For as long as hours have not shown otherwise."""


def late_share(said: Spread | None, limit_s: float | None) -> float | None:
    """Of what the last minutes saw; None where nothing is promised, or too little was seen."""
    if limit_s is None or said is None or said.shape is None or not said.trusted:
        return None
    return said.shape.above(limit_s) / said.shape.count
