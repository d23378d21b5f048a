"""Which of several layouts to take when each is only predicted: the best value that will probably keep the latency limits.

A prediction is an interval, so a limit is kept with a probability, called chance here. The errors of two predictions go together:
where a layout has slower first tokens than predicted it is slower in all else too. So the chances of two limits are not multiplied,
the smaller one counts. What a layout is worth for its cost is the caller's to say (throughput per GPU, or per price).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.planning.interval import Interval

NEAR = 0.03
"""Values that differ by no more than this share count as equal: predictions do not tell them apart."""
PROBABLY = 0.5
"""Least chance of keeping the limits that a layout is picked with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The predicted latencies of one layout, and its value."""

    ttft_ms: Interval
    tpot_ms: Interval
    value: float
    """What one unit of cost buys, e.g. output tokens per second and GPU; larger is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimits:
    """The most that latencies may be. None is no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Which of the layouts is taken, and why."""

    index: int
    chance: float
    """Probability of keeping the limits, 0 to 1."""
    reason: str


def pick(candidates: Sequence[Predicted], limits: LatencyLimits, *, at_least: float = PROBABLY) -> Pick:
    """The best value among those whose chance is `at_least` so much; where there is none, the largest chance.

    Among values that count as equal the larger chance wins, then the earlier one.
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
    """The probability that both limits are kept, taken as the smaller of the two."""
    return min(below(candidate.ttft_ms, limits.ttft_ms), below(candidate.tpot_ms, limits.tpot_ms))


def below(predicted: Interval, limit: float | None) -> float:
    """Probability that the truth is at most `limit`, where errors are log-normal and 90% of them lie inside the interval."""
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
"""Standard deviations from the middle of a normal distribution to the ends of the range that holds 90% of it."""


def _words(limits: LatencyLimits) -> str:
    parts = [
        f"{name} {limit:g} ms"
        for name, limit in (("TTFT", limits.ttft_ms), ("TPOT", limits.tpot_ms))
        if limit is not None
    ]
    return " and ".join(parts) or "no limit"
