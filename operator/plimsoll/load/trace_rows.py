"""The lines of a file that holds a table: CSV, or JSON a line, each with its number and as fields by their names."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Final

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_forms import FORMS, head_of
from plimsoll.load.trace_values import Row

LOOKED_AT: Final = 1000
"""Lines from which the unit of times is guessed, where the column does not name it, and by which models are told apart."""
LOOKED_AT_FIRST: Final = 8
"""Lines by which a JSON document is told from lines of JSON."""
UNREADABLE: Final = (EOFError, OSError, UnicodeDecodeError, csv.Error, zlib.error)
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"')
_OF_WEB_SERVER: Final = re.compile(r"\S+ \S+ .*?\[\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [-+]\d{4}\] \"")
"""How nginx and Apache begin each line of their logs by default."""
_BEYOND: Final = "beyond the head"
"""Key of the fields for which the head has no name."""

Numbered = Iterator[tuple[int, Row]]


def begin_of(lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The first lines, by which a document is known, and all lines again. One that tells spreadsheets the separator counts as blank."""
    first = list(islice(lines, LOOKED_AT_FIRST))
    if first and first[0].lower().startswith("sep="):
        first[0] = "\n"
    return "".join(one[:LOOKED_AT] for one in first), chain(first, lines)


def rows_of(lines: Iterator[str], name: str) -> tuple[Iterable[str], Numbered]:
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
    if _OF_WEB_SERVER.match(first):
        raise LoadError(
            f"{name}: is the log of a web server; `(echo arrival_s; sed -nE 's,.*\\[([^]]+)\\] \"POST /v1/.*,\\1,p' {name})` prints the times of its "
            "requests, which are a trace"
        )
    head = first.rstrip("\r\n")
    rows = csv.DictReader(
        chain([first], lines),
        delimiter=_separator(head),
        strict=True,
        restkey=_BEYOND,
        skipinitialspace=True,
    )
    with _told_by_line(rows, name, blank):
        return rows.fieldnames or (), _table(rows, name, blank)


def _separator(head: str) -> str:
    """Bars only where nothing else can be what separates: names of series hold some."""
    bare = _QUOTED.sub("", head)
    found = max(",;\t", key=bare.count)
    return "|" if found not in bare and "|" in bare else found


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


def first_of(rows: Numbered, name: str, most: int = LOOKED_AT) -> Sequence[tuple[int, Row]]:
    try:
        return list(islice(rows, most))
    except UNREADABLE as error:
        raise LoadError(f"{name}: {unread(error)}") from None


def refuse_more(row: Row) -> None:
    if any(row.get(_BEYOND, ())):
        raise ValueError("has more fields than the head names; quote what holds a separator")


def above(head: Iterable[str]) -> str:
    """Begins a sentence on a head that cannot be read, with the head's text."""
    text = ",".join(head)
    if text and any(one.replace(".", "").replace("-", "").strip().isdigit() for one in text.split(",")):
        return f"the first line is {text[:80]!r}, and should name the columns: "
    return f"the head is {text[:80]!r}: "


def unread(error: Exception) -> str:
    if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
        return f"is gzipped, and cut off or damaged ({error}); copy it anew"
    if isinstance(error, UnicodeDecodeError):
        return f"is not in UTF-8 ({error.reason}); save it as UTF-8, or unpack it if it is packed"
    return f"is neither CSV nor JSON lines, in UTF-8, gzipped or not ({error})"
