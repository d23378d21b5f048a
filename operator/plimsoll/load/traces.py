"""Reads traces line by line: requests as they once arrived, or rates over time, as CSV or JSON lines, gzipped or not.

The two forms are told apart by their columns:
- Requests have arrival_s, input_tokens, output_tokens and, where prompts shared their beginnings, prefix_block_ids: ids of the blocks of 512
  tokens that a prompt is made of. Blocks of the same id have the same text.
- Rates have t_s, rate_rps (or rate_rpm, rate_rph, or counts by interval, see `trace_rates`) and cv, the coefficient of variation of the gaps
  between arrivals, which is 1 (as for independent arrivals) where the column is missing. A rate holds until the next line's.
Other names of the same columns are in `trace_forms`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_forms import (
    FORMS,
    MOST_CV,
    RequestColumns,
    began,
    blocks,
    columns_of,
    head_of,
    mixed,
    moment,
    number,
    of_several,
    tokens,
    unit_of,
)
from plimsoll.load.trace_matrix import begins_matrix, rates_of
from plimsoll.load.trace_rates import (
    Rate,
    RateColumns,
    Row,
    by_interval,
    has_number,
    is_number,
    per_second,
    unit_beside,
    unsaid,
)

BLOCK_TOKENS: Final = 512
"""Tokens of a block, which an id in prefix_block_ids stands for."""
STDIN: Final = Path("-")
LOOKED_AT: Final = 1000
"""Lines from which the unit of times is guessed, where the column does not name it, and by which models are told apart."""
LOOKED_AT_FIRST: Final = 8
"""Lines by which a JSON document is told from lines of JSON."""
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
_UNREADABLE: Final = (EOFError, OSError, UnicodeDecodeError, csv.Error, zlib.error)
_BEYOND: Final = "beyond the head"
"""Key of the fields for which the head has no name."""


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
    """What was guessed, as the trace does not say it; and that it is of several models, where its first lines are."""
    began: datetime | None = None
    """The date of the first line, which its time counts from; None where it has none."""


@dataclass(frozen=True, slots=True)
class Rates:
    lines: Iterator[Rate]
    notes: tuple[str, ...] = ()
    """What was taken, as the trace does not say it."""
    began: datetime | None = None


Line = TypeVar("Line", Arrived, Rate)


Numbered = Iterator[tuple[int, Row]]


@contextmanager
def open_trace(path: Path, *, sorted_by_time: bool = True) -> Iterator[Requests | Rates]:
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


def read_trace(lines: Iterable[str], name: str, *, sorted_by_time: bool = True) -> Requests | Rates:
    """The lines, with times since the first one. A line that cannot be read, or that is out of order, raises an error that names it."""
    try:
        begin, all_lines = _begin(iter(lines))
        if begins_matrix(begin):
            rates, taken, since = rates_of("".join(all_lines), name)
            return Rates(iter(rates), tuple(f"{name}: {one}" for one in taken), since)
        head, rows = _rows(all_lines, name)
    except _UNREADABLE as error:
        raise LoadError(f"{name}: {_unread(error)}") from None
    columns = columns_of(head)
    if isinstance(columns, str):
        raise LoadError(f"{name}: {_above(head)}{columns}")
    if isinstance(columns, RateColumns):
        return _rates(head, rows, columns, name, sorted_by_time)
    unit_s, notes = columns.unit_s, []
    looks = unit_s is None or columns.model is not None or columns.gathered is not None
    first = _first(rows, name, LOOKED_AT if looks else 1)
    rows, seen = chain(first, rows), [row for _, row in first]
    if unit_s is None:
        unit_s, *notes = unit_of(seen, columns.at) or (1.0,)
    if columns.model is not None and (said := mixed(seen, columns.model)):
        notes.append(said)
    if columns.gathered is not None and (said := of_several(seen, columns.gathered)):
        notes.append(said)
    lines_of = _parsed(rows, lambda row, begin: _arrived(row, columns, unit_s, begin), name, sorted_by_time)
    since = began(seen[0], columns.at, unit_s) if seen else None
    return Requests(lines_of, tuple(f"{name}: {one}" for one in notes), since)


def _first(rows: Numbered, name: str, most: int = LOOKED_AT) -> Sequence[tuple[int, Row]]:
    try:
        return list(islice(rows, most))
    except _UNREADABLE as error:
        raise LoadError(f"{name}: {_unread(error)}") from None


def _unread(error: Exception) -> str:
    if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
        return f"is gzipped, and cut off or damaged ({error}); copy it anew"
    return f"is neither CSV nor JSON lines, in UTF-8, gzipped or not ({error})"


def _above(head: Iterable[str]) -> str:
    """Begins a sentence on a head that cannot be read, with the head's text."""
    text = ",".join(head)
    if text and any(one.replace(".", "").replace("-", "").strip().isdigit() for one in text.split(",")):
        return f"the first line is {text[:80]!r}, and should name the columns: "
    return f"the head is {text[:80]!r}: "


def _rows(lines: Iterator[str], name: str) -> tuple[Iterable[str], Numbered]:
    blank, first = 0, next(lines, "")
    while first and not first.strip():
        blank, first = blank + 1, next(lines, "")
    if not first:
        raise LoadError(f"{name}: is empty; {FORMS}")
    if first.lstrip().startswith("["):
        raise LoadError(f"{name}: is one JSON list; write one object a line, as jq -c '.[]' does")
    if first.strip() == "{":
        raise LoadError(
            f"{name}: is a JSON document over several lines; write one object a line, as jq -c does"
        )
    if first.lstrip().startswith("{"):
        objects = _objects(chain([first], lines), name, blank + 1)
        # A log may begin with lines of something else, as of failures, which hold less than others.
        seen = list(islice(objects, LOOKED_AT))
        return head_of(row for _, row in seen), chain(seen, objects)
    head = first.rstrip("\r\n")
    rows = csv.DictReader(
        chain([first], lines),
        delimiter=max(",;\t", key=head.count),
        strict=True,
        restkey=_BEYOND,
        skipinitialspace=True,
    )
    with _told_by_line(rows, name, blank):
        return rows.fieldnames or (), _table(rows, name, blank)


def _table(rows: csv.DictReader[str], name: str, blank: int) -> Numbered:
    with _told_by_line(rows, name, blank):
        for row in rows:
            # Files that were joined have each their head.
            if any(name != value for name, value in row.items()):
                yield blank + rows.line_num, row


@contextmanager
def _told_by_line(rows: csv.DictReader[str], name: str, blank: int) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        # The reader of lines has counted the bad line already; that of rows has not yet.
        raise LoadError(
            f"{name}, line {blank + rows.reader.line_num}: is no CSV: {error}; is a quote left open, or not written twice "
            "within a value?"
        ) from None


def _objects(lines: Iterable[str], name: str, begin: int) -> Numbered:
    for place, line in enumerate(lines, start=begin):
        if line.strip():
            yield place, _object(line, name, place)


def _object(line: str, name: str, place: int) -> Row:
    try:
        row = json.loads(line.rstrip())
        if isinstance(row, dict):
            return dict(_fields(row))
    except json.JSONDecodeError as error:
        raise LoadError(
            f"{name}, line {place}: is no JSON: {error.msg} at character {error.pos + 1}"
        ) from None
    except ValueError as error:
        raise LoadError(f"{name}, line {place}: is no JSON: {error}") from None
    except RecursionError:
        raise LoadError(f"{name}, line {place}: is nested too deep to be a request") from None
    raise LoadError(f"{name}, line {place}: must be a JSON object, as the first line is")


def _fields(row: Row, within: str = "") -> Iterator[tuple[str, Any]]:
    """All fields; one within an object by its path."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


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
            _refuse_more(row)
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
    except _UNREADABLE as error:
        raise LoadError(f"{name}, after line {place}: {_unread(error)}") from None
    except ValueError as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{name}, line {place}: {error}") from None


def _refuse_more(row: Row) -> None:
    if any(row.get(_BEYOND, ())):
        raise ValueError("has more fields than the head names; quote what holds a separator")


def _arrived(row: Row, columns: RequestColumns, unit_s: float, begin: float) -> Arrived:
    return Arrived(
        at=moment(row, columns.at, unit_s) - begin,
        input_tokens=tokens(row, columns.input_tokens),
        output_tokens=tokens(row, columns.output_tokens),
        blocks=() if columns.blocks is None else blocks(row, columns.blocks),
    )


def _rates(
    head: Iterable[str], rows: Numbered, columns: RateColumns, name: str, sorted_by_time: bool
) -> Rates:
    """All of them at once: what they count is seen from all, and there are few beside requests."""
    notes: list[str] = []
    passed = Counter[str]()
    rows = _with_number(rows, columns.rate, passed)
    first = _first(rows, name, 1)
    rows = chain(first, rows)
    since = began(first[0][1], columns.at, columns.unit_s) if first else None
    if not columns.said:
        if not first or not is_number(first[0][1], columns.rate):
            raise LoadError(f"{name}: {_above(head)}no column is input_tokens or output_tokens; {FORMS}")
        columns = replace(columns, said=unit_beside(first[0][1], columns.rate) is not None)
    elif columns.per_second is None and first and unit_beside(first[0][1], columns.rate) is not None:
        # A panel of a dashboard may be called Requests, and show requests a second.
        columns = replace(columns, per_second=1.0)
    lines = list(
        _parsed(rows, lambda row, begin: _rate(row, columns, begin), name, sorted_by_time, seen=set())
    )
    if lines and not columns.said:
        notes.append(unsaid(name, columns.rate.strip(), lines))
    if lines and columns.per_second is None:
        lines, said = by_interval(name, lines)
        notes.append(said)
    elif passed["lines"]:
        held = "line holds" if passed["lines"] == 1 else "lines hold"
        notes.append(f"{passed['lines']:,} {held} no value: the rate before them is taken to go on")
    return Rates(iter(lines), tuple(f"{name}: {one}" for one in notes), since)


def _with_number(rows: Numbered, column: str, passed: Counter[str]) -> Numbered:
    for place, row in rows:
        if has_number(row, column):
            yield place, row
        else:
            passed["lines"] += 1


def _rate(row: Row, columns: RateColumns, begin: float) -> Rate:
    return Rate(
        at=moment(row, columns.at, columns.unit_s) - begin,
        per_second=per_second(row, columns),
        cv=1.0 if columns.cv is None else number(row, columns.cv, MOST_CV),
    )


def _begin(lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The first lines, by which a document is known, and all lines again. One that tells spreadsheets the separator counts as blank."""
    first = list(islice(lines, LOOKED_AT_FIRST))
    if first and first[0].lower().startswith("sep="):
        first[0] = "\n"
    return "".join(one[:LOOKED_AT] for one in first), chain(first, lines)
