"""Reads traces line by line: requests as they once arrived, or rates over time, as CSV or JSON lines, gzipped or not.

The two forms are told apart by their columns:
- Requests have arrival_s, input_tokens, output_tokens and, where prompts shared their beginnings, prefix_block_ids: ids of the blocks of 512
  tokens that a prompt is made of. Blocks of the same id have the same text.
- Times have arrival_s alone, of requests that are as long as whoever replays them says.
- Rates have t_s, rate_rps (or rate_rpm, rate_rph, or counts by interval, see `trace_rates`) and cv, the coefficient of variation of the gaps
  between arrivals, which is 1 (as for independent arrivals) where the column is missing. A rate holds until the next line's.
Other names of the same columns are in `trace_forms`.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_dates import Order, order_in, same_in_both, turns
from plimsoll.load.trace_forms import (
    FORMS,
    SOURCES,
    RequestColumns,
    TimeColumns,
    columns_of,
    mixed,
    of_several,
    unit_of,
)
from plimsoll.load.trace_frames import begins_frames, table_of
from plimsoll.load.trace_matrix import begins_matrix, rates_of
from plimsoll.load.trace_rates import (
    Rate,
    RateColumns,
    by_interval,
    has_number,
    is_number,
    last_s,
    per_second,
    uneven,
    unit_beside,
    unsaid,
)
from plimsoll.load.trace_rows import (
    UNREADABLE,
    Numbered,
    above,
    begin_of,
    first_of,
    refuse_more,
    rows_of,
    unread,
)
from plimsoll.load.trace_times import TELLING, Clock, at_once, days_in, even
from plimsoll.load.trace_values import MOST_CV, Row, blocks, number, tokens

BLOCK_TOKENS: Final = 512
"""Tokens of a block, which an id in prefix_block_ids stands for."""
REQUESTS_PER_S: Final = 500.0
"""Requests a second from which times are days and no seconds: few models get as many, and few that are replayed get no more in a day."""
SAMPLES_PER_S: Final = 1.0
"""Rates or counts a second that a table holds at most."""
STDIN: Final = Path("-")
_GZIP: Final = b"\x1f\x8b"
_OTHERS: Final = {
    b"\x28\xb5\x2f\xfd": "is packed with zstd; unpack it, as with zstd -dc",
    b"\xfd7zXZ\x00": "is packed with xz; unpack it, as with xz -dc",
    b"BZh": "is packed with bzip2; unpack it, as with bzip2 -dc",
    b"PK\x03\x04": "is a zip archive or a workbook; unpack it, or save it as CSV",
    b"PAR1": "is Parquet; write it as CSV",
}
"""What files of other forms begin with, and what is said of them."""
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Arrived:
    """One request of a trace."""

    at: float
    """Seconds since the first line."""
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Requests:
    lines: Iterator[Arrived]
    notes: tuple[str, ...] = ()
    """What was guessed, as the trace does not say it; and that it is of several models, where its first lines are. Whoever tells it names the file."""
    began: datetime | None = None
    """The date of the first line, which its time counts from; None where it has none."""


@dataclass(frozen=True, slots=True)
class Came:
    """One request of a trace that does not say how long any is."""

    at: float


@dataclass(frozen=True, slots=True)
class Times:
    lines: Iterator[Came]
    notes: tuple[str, ...] = ()
    began: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    lines: Iterator[Rate]
    last_s: float
    """How long the last of them holds, which no line ends."""
    notes: tuple[str, ...] = ()
    """What was taken, as the trace does not say it."""
    began: datetime | None = None


Line = TypeVar("Line", Arrived, Came, Rate)


@contextmanager
def open_trace(path: Path, *, sorted_by_time: bool = True) -> Iterator[Requests | Times | Rates]:
    """The lines of a file, which are read as they are needed, or of stdin, which is read at once."""
    name = name_of(path)
    with ExitStack() as opened:
        try:
            raw = _stdin() if path == STDIN else opened.enter_context(path.open("rb"))
            begin = raw.peek(len(_GZIP))
        except OSError as error:
            raise LoadError(
                f"{name}: cannot be read: {error.strerror or error}; name a file of CSV or JSON lines, gzipped or not"
            ) from None
        for other, said in _OTHERS.items():
            if begin.startswith(other):
                raise LoadError(f"{name}: {said}")
        if begin.startswith(_UTF_16):
            raise LoadError(
                f"{name}: is text in UTF-16, as some spreadsheets and shells write it; save it as UTF-8"
            )
        whole = gzip.GzipFile(fileobj=raw) if begin.startswith(_GZIP) else raw
        file = opened.enter_context(io.TextIOWrapper(whole, encoding="utf-8-sig", newline=""))
        yield read_trace(file, name, sorted_by_time=sorted_by_time)


def _stdin() -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))


def name_of(path: Path) -> str:
    return "stdin" if path == STDIN else str(path)


def read_trace(lines: Iterable[str], name: str, *, sorted_by_time: bool = True) -> Requests | Times | Rates:
    """The lines, with times since the first one. A line that cannot be read, or that is out of order, raises an error that names it."""
    try:
        begin, all_lines = begin_of(iter(lines))
        if begins_matrix(begin):
            rates, step_s, taken, since = rates_of("".join(all_lines), name)
            return Rates(iter(rates), step_s, taken, since)
        if begins_frames(begin):
            of_frames, lines_of_frames = table_of("".join(all_lines), name)
            return _rates(enumerate(lines_of_frames, start=1), of_frames, name, sorted_by_time)
        head, rows = rows_of(all_lines, name)
    except UNREADABLE as error:
        raise LoadError(f"{name}: {unread(error)}") from None
    columns = columns_of(head)
    if isinstance(columns, str):
        raise LoadError(f"{name}: {above(head)}{columns}")
    if isinstance(columns, RateColumns) and not columns.said:
        first = first_of(rows, name)
        rows, columns = chain(first, rows), _told_by(first, columns)
    if isinstance(columns, RateColumns):
        return _rates(rows, columns, name, sorted_by_time)
    if isinstance(columns, TimeColumns):
        return _times(head, rows, columns, name, sorted_by_time)
    clock, rows, said = _clock(rows, columns.at, REQUESTS_PER_S, name)
    unit_s, notes = columns.unit_s, list(said)
    first = first_of(rows, name)
    rows, seen = chain(first, rows), [row for _, row in first]
    if unit_s is None and clock.serial:
        unit_s = 1.0
    if unit_s is None:
        unit_s, *guessed = unit_of(seen, columns.at) or (1.0,)
        notes += guessed
    if columns.model is not None and (several := mixed(seen, columns.model)):
        notes.append(several)
    if columns.gathered is not None and (summed := of_several(seen, columns.gathered)):
        notes.append(summed)
    clock = replace(clock, unit_s=unit_s)
    notes += _at_once(seen, clock)
    lines_of = _parsed(rows, lambda row, begin: _arrived(row, columns, clock, begin), name, sorted_by_time)
    since = clock.began(seen[0]) if seen else None
    return Requests(lines_of, tuple(notes), since)


def _clock(
    rows: Numbered, column: str, most_per_s: float, name: str
) -> tuple[Clock, Numbered, Sequence[str]]:
    """How the times of a column are read, all lines again, and what is taken."""
    order, rows, said = _order(rows, column, name)
    first = first_of(rows, name)
    days = days_in((row for _, row in first), column, most_per_s)
    clock = Clock(column, order=order, serial=days is not None)
    return clock, chain(first, rows), said if days is None else (*said, days)


def _at_once(rows: Iterable[Row], clock: Clock) -> Sequence[str]:
    said = at_once([at for row in rows if (at := clock.moment_or_none(row)) is not None])
    return () if said is None else (said,)


def _order(rows: Numbered, column: str, name: str) -> tuple[Order | None, Numbered, Sequence[str]]:
    """The order of dates that do not show it themselves, all lines again, and what is taken. It is looked for until a line tells it."""
    held: list[tuple[int, Row]] = []
    unclear: Row | None = None
    while following := first_of(rows, name, 1):
        held += following
        row = following[0][1]
        text = str(row.get(column) or "")
        if not turns(text):
            if len(held) == 1:
                break
        elif (order := order_in(text)) is not None:
            date = text.strip().partition(" ")[0].rstrip(",")
            return order, chain(held, rows), [f"dates are read as {order}, as {date} is none otherwise"]
        elif unclear is None and not same_in_both(text):
            unclear = row
    if unclear is not None:
        try:
            Clock(column).moment(unclear)
        except ValueError as error:
            raise LoadError(f"{name}: {error}") from None
    return None, chain(held, rows), ()


def _parsed(
    rows: Numbered,
    line_of: Callable[[Row, float], Line],
    name: str,
    sorted_by_time: bool,
    seen: set[float] | None = None,
) -> Iterator[Line]:
    """The lines, read and checked. `seen` keeps the times so far, where no two lines may have the same."""
    begin: float | None = None
    last, place = 0.0, 1
    try:
        for place, row in rows:
            refuse_more(row)
            line = line_of(row, begin or 0.0)
            if begin is None:
                begin = line.at
                line = line_of(row, begin)
            if sorted_by_time and line.at < last:
                raise LoadError(f"{name}, line {place}: is before the line above; sort it by time")
            if seen is not None:
                if line.at in seen:
                    raise LoadError(
                        f"{name}, line {place}: is of the same time as a line above; a rate holds from its time to the next line's, so of several "
                        "series keep one, or add them up"
                    )
                seen.add(line.at)
            last = line.at
            yield line
    except UNREADABLE as error:
        raise LoadError(f"{name}, after line {place}: {unread(error)}") from None
    except ValueError as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{name}, line {place}: {error}") from None


def _arrived(row: Row, columns: RequestColumns, clock: Clock, begin: float) -> Arrived:
    return Arrived(
        at=clock.moment(row) - begin,
        input_tokens=tokens(row, columns.input_tokens),
        output_tokens=tokens(row, columns.output_tokens),
        blocks=() if columns.blocks is None else blocks(row, columns.blocks),
    )


def _told_by(first: Sequence[tuple[int, Row]], columns: RateColumns) -> RateColumns | TimeColumns:
    """Of a column alone, whose name says nothing, its first value tells whether it holds numbers."""
    value = next((row for _, row in first if has_number(row, columns.rate)), None)
    if value is not None and is_number(value, columns.rate):
        return columns
    return TimeColumns(at=columns.at, unit_s=columns.unit_s, said=False)


def _times(
    head: Iterable[str], rows: Numbered, columns: TimeColumns, name: str, sorted_by_time: bool
) -> Times:
    clock, rows, said = _clock(rows, columns.at, REQUESTS_PER_S, name)
    clock, first = replace(clock, unit_s=columns.unit_s), first_of(rows, name)
    seen = [at for _, row in first if (at := clock.moment_or_none(row)) is not None]
    if seen and not columns.said and even(seen):
        few = len(set(seen))
        stand = "its lines stand at even times, as samples do"
        if few < TELLING:
            stand = f"its first lines are of {few} {'time' if few == 1 else 'times'} alone, too few to tell requests from samples"
        raise LoadError(
            f"{name}: {above(head)}no column holds lengths, rates or counts, and {stand}; where each is one request, name their time arrival_s; "
            f"{FORMS}"
        )
    notes = [
        *said,
        *_at_once((row for _, row in first), clock),
        f"no column holds lengths: each line is taken for one request, of lengths drawn as for rates, {SOURCES}",
    ]
    if columns.model is not None and (several := mixed((row for _, row in first), columns.model)):
        notes.insert(0, several)
    lines = _parsed(
        chain(first, rows), lambda row, begin: Came(clock.moment(row) - begin), name, sorted_by_time
    )
    return Times(lines, tuple(notes), clock.began(first[0][1]) if first else None)


def _rates(rows: Numbered, columns: RateColumns, name: str, sorted_by_time: bool) -> Rates:
    """All of them at once: what they count is seen from all, and there are few beside requests."""
    passed: list[Row] = []
    clock, rows, said_of_dates = _clock(
        _with_number(rows, columns.rate, passed), columns.at, SAMPLES_PER_S, name
    )
    notes, clock = list(said_of_dates), replace(clock, unit_s=columns.unit_s)
    first = first_of(rows, name, 1)
    rows = chain(first, rows)
    since, begin = None, 0.0
    if first:
        since, begin = clock.began(first[0][1]), clock.moment_or_none(first[0][1]) or 0.0
    if first and not columns.said:
        columns = replace(columns, said=unit_beside(first[0][1], columns.rate) is not None)
    elif columns.per_second is None and first and unit_beside(first[0][1], columns.rate) is not None:
        # A panel of a dashboard may be called Requests, and show requests a second.
        columns = replace(columns, per_second=1.0)
    lines = list(
        _parsed(rows, lambda row, begin: _rate(row, columns, clock, begin), name, sorted_by_time, seen=set())
    )
    if lines and not columns.said:
        notes.append(unsaid(name, columns.rate.strip(), lines))
    notes += uneven(columns.cv, lines)
    if lines and columns.per_second is None:
        lines, lasts, said = by_interval(name, lines)
        notes.append(said)
        return Rates(iter(lines), lasts, tuple(notes), since)
    if passed:
        held = "line holds" if len(passed) == 1 else "lines hold"
        notes.append(f"{len(passed):,} {held} no value: the rate before them is taken to go on")
    empty = [at - begin for row in passed if (at := clock.moment_or_none(row)) is not None]
    return Rates(iter(lines), last_s([one.at for one in lines], empty), tuple(notes), since)


def _with_number(rows: Numbered, column: str, passed: list[Row]) -> Numbered:
    """The lines with a value; the others are kept in `passed`."""
    for place, row in rows:
        if has_number(row, column):
            yield place, row
        else:
            passed.append(row)


def _rate(row: Row, columns: RateColumns, clock: Clock, begin: float) -> Rate:
    return Rate(
        at=clock.moment(row) - begin,
        per_second=per_second(row, columns),
        cv=1.0 if columns.cv is None else number(row, columns.cv, MOST_CV),
    )
