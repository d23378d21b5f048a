"""Whether two kinds of replicas differ by more than chance, where of each so and so many requests, or gaps between tokens, went badly.

Fisher's exact test, from one side. It is true of any number, however small: of few requests one that fails is a large share and shows
nothing, which a comparison of shares by their deviations does not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma
from statistics import NormalDist
from typing import Final

CHANCE: Final = 3.0
"""Standard deviations up to which a difference is taken for chance, as far as shares may be told by those."""
RARE: Final = NormalDist().cdf(-CHANCE)
"""Odds at which chance is no longer believed: those of so many standard deviations, about one in 740. So strict since a canary is looked at in
every tick and each look may err: of canaries that fail as often as the others, a tenth or more would be blamed at one in twenty a look."""
NO_MORE: Final = 1e-15
"""Share of what is added up already, below which a further part no longer counts."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many went badly."""

    bad: float
    of: float

    @property
    def part(self) -> float:
        return self.bad / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.part:.1%} of {self.of:,.0f}"


def rare(mine: Share, theirs: Share) -> bool:
    """Whether more went badly of mine than chance gives to one side of two that are alike."""
    return odds(mine, theirs) < RARE


def odds(mine: Share, theirs: Share) -> float:
    """The odds that as many of those that went badly, or more, are mine, were the two alike and each drawn by chance."""
    whole, others = round(mine.of), round(theirs.of)
    bad, theirs_bad = min(round(mine.bad), whole), min(round(theirs.bad), others)
    if bad * others > theirs_bad * whole:
        return min(1.0, _as_many(bad, whole, theirs_bad, others))
    if bad == 0 or theirs_bad == others:
        return 1.0
    # No more than their share: all odds but those of fewer, that as many of those that went well are mine, and one more.
    return max(0.0, 1.0 - _as_many(whole - bad + 1, whole, others - theirs_bad - 1, others))


def _as_many(bad: int, whole: int, theirs_bad: int, others: int) -> float:
    """The odds of so many and more, where that is more than their share."""
    together, found = bad + theirs_bad, 0.0
    part = exp(_ways(whole, bad) + _ways(others, theirs_bad) - _ways(whole + others, together))
    for many in range(bad, min(whole, together) + 1):
        found += part
        if part <= NO_MORE * found:
            break
        part *= (whole - many) * (together - many) / ((many + 1) * (others - together + many + 1))
    return found


def _ways(whole: int, some: int) -> float:
    """Of how many ways there are to draw some of the whole, the logarithm."""
    return lgamma(whole + 1) - lgamma(some + 1) - lgamma(whole - some + 1)
