"""Traffic from files, whole and in columns: requests one by one, with their lengths or without, or a rate every so often.

How a file is read is `load.traces`; here it is kept in memory, for many runs over it. Arrivals are drawn by `arrivals`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

from plimsoll.facts.spans import DAY_S
from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import STDIN, Arrived, Came, Rates, Times, name_of, open_trace

MOST_DAYS: Final = 366
"""A longer trace has a wrong date in it rather than a year's traffic, and would be simulated for hours."""
MOST_REQUESTS: Final = 200_000_000
"""How many requests fit into a machine's memory."""

GAP_MOST_S: Final = 60.0
"""How long after its last request a trace ends at most."""


class BadTrace(ValueError):
    """A file that cannot be used: where, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    name: str
    at: array[float]
    inputs: array[int]
    outputs: array[int]
    prefixes: tuple[tuple[int, ...], ...] | None
    """None where no request names any."""
    began: datetime | None = None
    """The date of its beginning, in its own zone; None where it has none."""

    @property
    def span_s(self) -> float:
        return _and_a_gap(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTrace:
    """Requests whose lengths are not known."""

    name: str
    at: array[float]
    began: datetime | None = None

    @property
    def span_s(self) -> float:
        return _and_a_gap(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    name: str
    at: tuple[float, ...]
    rates: tuple[float, ...]
    cvs: tuple[float, ...]
    last_s: float
    """How long the last rate holds."""
    began: datetime | None = None

    @property
    def span_s(self) -> float:
        return self.at[-1] + self.last_s


Trace = RequestTrace | TimeTrace | RateTrace
Line = TypeVar("Line", Arrived, Came, Rate)


@dataclass(frozen=True, slots=True)
class Loaded:
    trace: Trace
    moved: int
    """How many lines stood after a later one and were put in order: logs that are written when a request ends have such."""
    notes: tuple[str, ...] = ()
    """What was assumed about the file, as it does not say."""


def load_trace(path: Path) -> Trace:
    """The whole of a file; raises BadTrace."""
    return load(path).trace


def load(path: Path) -> Loaded:
    """The same, with what was done to it; raises BadTrace."""
    name = name_of(path) if path == STDIN else path.name
    try:
        with open_trace(path, sorted_by_time=False) as read:
            # A report goes to others, to whom a path on this machine says nothing.
            notes = tuple(f"{name}: {one}" for one in read.notes)
            if isinstance(read, Rates):
                rates, moved, before = _in_order(name, list(read.lines))
                return Loaded(_rates(name, rates, read.last_s, _later(read.began, before)), moved, notes)
            if isinstance(read, Times):
                times, moved, before = _in_order(name, list(read.lines))
                return Loaded(_times(name, times, _later(read.began, before)), moved, notes)
            lines, moved, before = _in_order(name, list(read.lines))
            return Loaded(_requests(name, lines, _later(read.began, before)), moved, notes)
    except LoadError as error:
        raise BadTrace(str(error)) from None


def expected(trace: Trace, begin_s: float, end_s: float, scale: float) -> float:
    """About how many requests a part of the trace will come to."""
    if not isinstance(trace, RateTrace):
        return scale * sum(begin_s <= at < end_s for at in trace.at)
    ends = (*trace.at[1:], trace.span_s)
    parts = zip(trace.at, ends, trace.rates, strict=True)
    return scale * sum(rate * max(0.0, min(end, end_s) - max(begin, begin_s)) for begin, end, rate in parts)


def _and_a_gap(at: Sequence[float]) -> float:
    """To the last arrival, and a mean gap beyond, where that is no long time of which nothing is known."""
    return min(at[-1] * (1 + 1 / max(1, len(at) - 1)), at[-1] + GAP_MOST_S) if at[-1] > 0 else 1.0


def _later(began: datetime | None, seconds: float) -> datetime | None:
    return None if began is None else began + timedelta(seconds=seconds)


def _in_order(name: str, lines: list[Line]) -> tuple[list[Line], int, float]:
    """The lines sorted by time, how many had to be moved, and when the earliest is beside what was first. A line that lies ages from its
    neighbours has a wrong date, and is refused."""
    last, moved = 0.0, 0
    for line in lines:
        moved += line.at < last
        last = max(last, line.at)
    if moved:
        lines.sort(key=lambda line: line.at)
    _refuse_ages(name, [line.at for line in lines])
    begin = lines[0].at if lines else 0.0
    return [replace(line, at=line.at - begin) for line in lines] if begin else lines, moved, begin


def _refuse_ages(name: str, at: Sequence[float]) -> None:
    if not at or at[-1] - at[0] <= MOST_DAYS * DAY_S:
        return
    gap = max(after - before for before, after in pairwise(at))
    raise BadTrace(
        f"{name}: spans {(at[-1] - at[0]) / DAY_S:,.0f} days, {gap / DAY_S:,.0f} of them between two lines; at most "
        f"{MOST_DAYS} are replayed: is a date wrong, or in another unit than the others?"
    )


def _requests(name: str, lines: list[Arrived], began: datetime | None) -> RequestTrace:
    if not lines:
        raise BadTrace(f"{name}: holds no request")
    return RequestTrace(
        name=name,
        at=array("d", (line.at for line in lines)),
        inputs=array("q", (line.input_tokens for line in lines)),
        outputs=array("q", (line.output_tokens for line in lines)),
        prefixes=tuple(line.blocks for line in lines) if any(line.blocks for line in lines) else None,
        began=began,
    )


def _times(name: str, lines: list[Came], began: datetime | None) -> TimeTrace:
    if not lines:
        raise BadTrace(f"{name}: holds no request")
    return TimeTrace(name=name, at=array("d", (line.at for line in lines)), began=began)


def _rates(name: str, lines: list[Rate], last_s: float, began: datetime | None) -> RateTrace:
    if not lines:
        raise BadTrace(f"{name}: holds no rate")
    if not any(line.per_second for line in lines):
        raise BadTrace(f"{name}: its rate is never above 0, so that nothing arrives")
    return RateTrace(
        name=name,
        at=tuple(line.at for line in lines),
        rates=tuple(line.per_second for line in lines),
        cvs=tuple(line.cv for line in lines),
        last_s=last_s,
        began=began,
    )
