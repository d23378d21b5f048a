"""Finds the knee: the load from which more load does not pay any more. A pure rule over measured points.

As long as p99 ITL grows no faster than the load, a further request costs no more than its share. The knee is the last load before a step at
which ITL grows by more than 1.1 times the growth of the load. A rise that the next step takes back was noise, and one that is within the
client's own lateness is not counted. Engines that limit their batch never show this in ITL. There the knee is where answers no longer keep up
with requests, or where more users get no more answers, which the next step has to confirm. Errors end the curve as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt
from typing import Final

STEEP: Final = 1.1
"""A rise is steep where it is more than this many times a proportional one."""
TAKEN_BACK: Final = 0.8
"""A rise was noise where the next, higher load has less than this share of its ITL."""
KEEPS_UP: Final = 0.9
"""In an open loop answers keep up where they come at this share of the rate of requests at least."""
WORTH: Final = 0.2
"""In a closed loop more users are worth it where they bring this share of a proportional gain in answers at least."""
BAD: Final = 0.05
"""Share of failed requests above which a load is too much."""
LEAST_GAPS: Final = 100
"""Fewer gaps have no meaningful p99."""
HALF: Final = 2
"""A step is compared with all loads down to this part of its own."""
DEVIATIONS: Final = 3
"""Standard deviations up to which answers may fall behind requests by chance."""
SPARE_ANSWERS: Final = 2
"""Answers by which they may be behind beyond that."""


class Sign(StrEnum):
    """What shows the knee."""

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
    """How late the client itself was. Smaller rises of ITL may be its own."""
    bad_share: float
    answer_s: float = 0.0
    """How long an answer takes, on average."""
    seconds: float = 30.0
    """How long the step was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    load: float | None
    """The last load before the knee; None where the lowest load was too much already."""
    beyond: float
    """The first load past the knee."""
    signs: tuple[Sign, ...]
    confirmed: bool
    """False where a higher load could still show the rise to be noise."""
    explanation: str


def find_knee(points: Sequence[Point], *, closed_loop: bool) -> Knee | None:
    """The knee of points, which may be in any order; None where no load was too much."""
    ordered = sorted(points, key=lambda point: point.load)
    if not ordered:
        return None
    # The time of an answer without a queue. Answers are always behind requests by about this much.
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
        # A step is compared with every load down to half of its own, as narrow steps would each have only a small part of a rise.
        steep = [one for one in ordered[: place + 1] if HALF * one.load >= above.load and _steep(one, above)]
        if steep and not _taken_back(above, after):
            signs.insert(0, (Sign.ITL, _rise(steep[-1], above)))
            certain = certain or after is not None
        if signs:
            return _knee(below, above, signs, closed_loop=closed_loop, confirmed=certain)
    return None


def _alone(point: Point, behind: float, *, closed_loop: bool) -> Iterator[tuple[Sign, str]]:
    """The signs that a point shows without another one to compare with."""
    if point.bad_share > BAD:
        yield Sign.ERRORS, f"{point.bad_share:.0%} of the requests failed"
    elif not closed_loop and _piles_up(point, behind):
        yield (
            Sign.THROUGHPUT,
            f"{point.done_per_second:.3g} of {point.sent_per_second:.3g} requests/s were answered, the others pile up",
        )


def _piles_up(point: Point, behind: float) -> bool:
    """Whether answers are behind requests by more than a tenth, and by more than random arrivals explain."""
    missing = (point.sent_per_second - point.done_per_second) * point.seconds
    chance = sqrt(2 * point.sent_per_second * min(behind, point.seconds))
    return (
        point.done_per_second < KEEPS_UP * point.sent_per_second
        and missing > DEVIATIONS * chance + SPARE_ANSWERS
    )


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
