"""Where more load stops paying: a pure rule over measured points.

As long as p99 ITL grows no faster than the load, each further request costs no more than its share. The knee is the last
load before the first step that breaks this: ITL grows by more than 1.1 times what the load grew by. A rise that the next
step takes back was noise; one that no clock here can tell from its own lateness is none. Engines that hold their batch
never show it in ITL: there the knee is where answers stop keeping up, or where more users get no more of them, which the
next step must bear out too. Errors end the curve as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt
from typing import Final

STEEP: Final = 1.1
"""Over what a proportional rise would be."""
TAKEN_BACK: Final = 0.8
"""Of a rise's top, at which the next, higher load says that it was noise."""
KEEPS_UP: Final = 0.9
"""Share of the requests of an open loop that must be answered at the rate at which they come."""
WORTH: Final = 0.2
"""Of a closed loop: the share of a proportional gain in answers that more users must bring."""
BAD: Final = 0.05
LEAST_GAPS: Final = 100
"""Fewer have no p99."""


class Sign(StrEnum):
    """What told of the knee."""

    ITL = "itl"
    THROUGHPUT = "throughput"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step of a ramp."""

    load: float
    """Requests a second, or requests at once."""
    sent_per_second: float
    done_per_second: float
    itl_p99_ms: float | None
    gaps: int
    resolution_ms: float
    """How late the client's own clock was: smaller rises are its own."""
    bad_share: float
    answer_s: float = 0.0
    """How long an answer takes, on average."""
    seconds: float = 30.0
    """How long the step was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    load: float | None
    """The last load before; None where the first was too much already."""
    beyond: float
    """The first load past it."""
    signs: tuple[Sign, ...]
    confirmed: bool
    """False where a higher load could still show the rise to be noise."""
    explanation: str


def find_knee(points: Sequence[Point], *, closed_loop: bool) -> Knee | None:
    """The knee of points in any order; None where the load never was too much."""
    ordered = sorted(points, key=lambda point: point.load)
    if not ordered:
        return None
    # An answer's time without a queue: by so much are answers behind requests, and by chance a little more or less.
    behind = ordered[0].answer_s
    alone = list(_alone(ordered[0], behind, closed_loop=closed_loop))
    if alone:
        return _knee(None, ordered[0], alone, closed_loop=closed_loop, confirmed=True)
    for place, (below, above) in enumerate(pairwise(ordered)):
        after = ordered[place + 2] if place + 2 < len(ordered) else None
        signs = list(_alone(above, behind, closed_loop=closed_loop))
        certain = bool(signs)
        if closed_loop and not _worth(below, above) and not (after is not None and _worth(below, after)):
            signs.append((Sign.THROUGHPUT, _no_gain(below, above)))
            certain = certain or after is not None
        # Against every load down to the half: narrow steps would hide a rise by sharing it out among them.
        steep = [one for one in ordered[: place + 1] if 2 * one.load >= above.load and _steep(one, above)]
        if steep and not _taken_back(above, after):
            signs.insert(0, (Sign.ITL, _rise(steep[-1], above)))
            certain = certain or after is not None
        if signs:
            return _knee(below, above, signs, closed_loop=closed_loop, confirmed=certain)
    return None


def _alone(point: Point, behind: float, *, closed_loop: bool) -> Iterator[tuple[Sign, str]]:
    """What a point says without another one to compare with."""
    if point.bad_share > BAD:
        yield Sign.ERRORS, f"{point.bad_share:.0%} of the requests failed"
    elif not closed_loop and _piles_up(point, behind):
        yield (
            Sign.THROUGHPUT,
            f"{point.done_per_second:.3g} of {point.sent_per_second:.3g} requests/s were answered, the others pile up",
        )


def _piles_up(point: Point, behind: float) -> bool:
    """Answers behind requests by more than a tenth, and by more than arrivals at random explain: three deviations and two."""
    missing = (point.sent_per_second - point.done_per_second) * point.seconds
    chance = sqrt(2 * point.sent_per_second * min(behind, point.seconds))
    return point.done_per_second < KEEPS_UP * point.sent_per_second and missing > 3 * chance + 2


def _steep(below: Point, above: Point) -> bool:
    if below.itl_p99_ms is None or above.itl_p99_ms is None or min(below.gaps, above.gaps) < LEAST_GAPS:
        return False
    rise = above.itl_p99_ms - below.itl_p99_ms
    if rise <= 2 * max(below.resolution_ms, above.resolution_ms):
        return False
    return above.itl_p99_ms > STEEP * below.itl_p99_ms * above.load / below.load


def _taken_back(above: Point, after: Point | None) -> bool:
    if after is None or after.itl_p99_ms is None or above.itl_p99_ms is None:
        return False
    return after.itl_p99_ms < TAKEN_BACK * above.itl_p99_ms


def _worth(below: Point, above: Point) -> bool:
    if below.done_per_second <= 0:
        return True
    gain = above.done_per_second / below.done_per_second - 1
    return gain >= WORTH * (above.load / below.load - 1)


def _rise(below: Point, above: Point) -> str:
    return (
        f"p99 ITL rose {(above.itl_p99_ms or 0) / (below.itl_p99_ms or 1):.1f} times "
        f"({below.itl_p99_ms:.3g} to {above.itl_p99_ms:.3g} ms) for {above.load / below.load:.3g} times the load"
    )


def _no_gain(below: Point, above: Point) -> str:
    return (
        f"{above.load / below.load:.3g} times the users got {above.done_per_second:.3g} answers/s "
        f"instead of {below.done_per_second:.3g}"
    )


def _knee(
    below: Point | None,
    above: Point,
    signs: Sequence[tuple[Sign, str]],
    *,
    closed_loop: bool,
    confirmed: bool,
) -> Knee:
    unit = "at once" if closed_loop else "requests/s"
    where = "already the lowest load" if below is None else f"{below.load:.3g} {unit} went well"
    return Knee(
        load=None if below is None else below.load,
        beyond=above.load,
        signs=tuple(sign for sign, _ in signs),
        confirmed=confirmed,
        explanation=f"{where}; at {above.load:.3g} {unit} {' and '.join(said for _, said in signs)}"
        if below is not None
        else f"{where}, {above.load:.3g} {unit}, was too much: {' and '.join(said for _, said in signs)}",
    )
