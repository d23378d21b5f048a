"""How long a request takes when so many are in flight, learned as a straight line: T = alone + each * n.

Decoding reads the weights once a step and every request's cache besides, so a step grows with the batch, and a replica
that looks half full by its requests in flight is nearer to its limit than that: requests leave more slowly as more come.
By this line a rate of arrivals becomes requests in flight, and back. It begins as the plan's own prediction, one point,
and each calm minute adds a measured one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.control.situation import Capacity
from plimsoll.values import light

FORGET: Final = 1 / 120
"""Share of what is known that each new minute takes the place of: about two hours are remembered."""
PLAN_POINTS: Final = 6.0
"""Measured points that the plan's own prediction weighs as much as."""
PROMPT_SHARE: Final = 0.15
"""Work of a prompt token beside that of an output token: prompts are computed many at once."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Weighted sums of measured points: requests in flight of a replica, and seconds that each of them takes."""

    weight: float = 0.0
    n: float = 0.0
    seconds: float = 0.0
    nn: float = 0.0
    n_seconds: float = 0.0

    def add(self, n: float, seconds: float, weight: float = 1.0) -> Points:
        return Points(
            weight=self.weight + weight,
            n=self.n + weight * n,
            seconds=self.seconds + weight * seconds,
            nn=self.nn + weight * n * n,
            n_seconds=self.n_seconds + weight * n * seconds,
        )

    def faded(self) -> Points:
        left = 1 - FORGET
        return Points(
            weight=self.weight * left,
            n=self.n * left,
            seconds=self.seconds * left,
            nn=self.nn * left,
            n_seconds=self.n_seconds * left,
        )


NOTHING: Final = Points()


@light
@dataclass(frozen=True, slots=True)
class Curve:
    alone: float
    each: float

    def seconds(self, n: float) -> float:
        return self.alone + self.each * n

    def rate(self, n: float) -> float:
        """Requests a second that keep so many in flight."""
        return n / self.seconds(n)

    def inflight(self, rate: float) -> float:
        """Requests in flight that a rate leads to; infinite where it can never be served."""
        left = 1 - self.each * rate
        return self.alone * rate / left if left > 0 else float("inf")


def planned_point(capacity: Capacity, work: float | None) -> tuple[float, float] | None:
    """The plan's prediction, for requests of the measured work where it is known."""
    if not capacity.concurrency or not capacity.requests_per_second:
        return None
    seconds = capacity.concurrency / capacity.requests_per_second
    declared = work_of(capacity.input_tokens, capacity.output_tokens)
    return float(capacity.concurrency), seconds * (work / declared if work and declared else 1.0)


def work_of(prompt: float, output: float) -> float:
    return output + PROMPT_SHARE * prompt


def curve_of(points: Points, plan: tuple[float, float] | None) -> Curve | None:
    """The line through what was measured and planned; None where there is neither."""
    if plan is not None:
        points = points.add(*plan, weight=PLAN_POINTS)
    if points.weight <= 0 or points.seconds <= 0:
        return None
    n, seconds = points.n / points.weight, points.seconds / points.weight
    spread = points.nn / points.weight - n * n
    together = points.n_seconds / points.weight - n * seconds
    # A line through one place says nothing of its slope: half of the time is then taken to be the others' doing.
    slope = together / spread if spread > (0.05 * n) ** 2 else 0.5 * seconds / max(n, 1.0)
    slope = min(max(0.0, slope), 0.95 * seconds / max(n, 1e-6))
    return Curve(alone=seconds - slope * n, each=slope)


def measured(points: Points, n: float, rate: float) -> Points:
    """With one calm minute: by Little's law requests in flight are arrivals times the time each of them takes."""
    return points.faded().add(n, n / rate)
