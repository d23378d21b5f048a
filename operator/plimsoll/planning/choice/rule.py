"""Which of several layouts to take when each is only predicted: the cheapest that will probably keep the limits.

A prediction is an interval, so keeping a limit is a chance. Errors are shared: where one layout of a model is slower than
predicted its neighbours are too, so chances of two limits are not multiplied, the smaller one counts. Pure figures in, an
index and a sentence out; what a layout costs is the caller's (throughput per GPU, or per price).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.planning.interval import Interval

NEAR = 0.03
"""Values this close are equal: predictions do not tell them apart."""
PROBABLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    ttft_ms: Interval
    tpot_ms: Interval
    value: float
    """What is had for one unit of cost, e.g. output tokens per second and GPU; larger is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimits:
    """None is no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    index: int
    chance: float
    """Of keeping the limits, 0 to 1."""
    reason: str


def pick(candidates: Sequence[Predicted], limits: LatencyLimits, *, at_least: float = PROBABLY) -> Pick:
    """The best value among those whose chance is `at_least`; where there is none, the largest chance.

    Among values that are equal within 3% the larger chance wins, then the earlier candidate.
    """
    if not candidates:
        raise ValueError("candidates: none were given, at least one is needed")
    chances = [chance(candidate, limits) for candidate in candidates]
    fit = [index for index, kept in enumerate(chances) if kept >= at_least]
    if not fit:
        index = max(range(len(candidates)), key=lambda i: (chances[i], candidates[i].value, -i))
        reason = f"no layout keeps {_words(limits)} with a chance of {at_least:.0%}; this one comes nearest ({chances[index]:.0%})"
        return Pick(index=index, chance=chances[index], reason=reason)
    best = max(candidates[index].value for index in fit)
    near = [index for index in fit if candidates[index].value >= (1 - NEAR) * best]
    index = max(near, key=lambda i: (chances[i], -i))
    reason = f"the best value of {len(fit)} out of {len(candidates)} that keep {_words(limits)} (chance {chances[index]:.0%})"
    return Pick(index=index, chance=chances[index], reason=reason)


def chance(candidate: Predicted, limits: LatencyLimits) -> float:
    """The smaller of the chances that either limit is kept."""
    return min(below(candidate.ttft_ms, limits.ttft_ms), below(candidate.tpot_ms, limits.tpot_ms))


def below(predicted: Interval, limit: float | None) -> float:
    """Chance that the truth is at most `limit`, errors being log-normal with 90% of them inside the interval."""
    if limit is None:
        return 1.0
    if limit <= 0:
        return 0.0
    distance = math.log(limit / predicted.mid)
    edge = predicted.high if distance > 0 else predicted.low
    width = abs(math.log(edge / predicted.mid)) / _EDGE_SIGMAS
    if width == 0:
        return 1.0 if distance >= 0 else 0.0
    return 0.5 * (1 + math.erf(distance / width / math.sqrt(2)))


_EDGE_SIGMAS = 1.645


def _words(limits: LatencyLimits) -> str:
    parts = [
        f"{name} {limit:g} ms"
        for name, limit in (("TTFT", limits.ttft_ms), ("TPOT", limits.tpot_ms))
        if limit is not None
    ]
    return " and ".join(parts) or "no limit"
