"""Traces: requests as they once arrived, or rates over time, read line by line from CSV, gzipped or not.

Two forms, told apart by their heads. Requests: arrival_s, input_tokens, output_tokens and, where prompts shared their
beginning, prefix_block_ids (the blocks of 512 tokens that a prompt is made of, alike ids alike text). Rates: t_s, rate_rps
and cv, the coefficient of variation of the gaps between arrivals, each line until the next.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeVar

from plimsoll.load.problems import LoadError

BLOCK_TOKENS: Final = 512
"""What one id of prefix_block_ids stands for."""
REQUEST_HEAD: Final = ("arrival_s", "input_tokens", "output_tokens")
RATE_HEAD: Final = ("t_s", "rate_rps", "cv")


@dataclass(frozen=True, slots=True)
class Arrived:
    """One request of a trace."""

    at: float
    """Seconds since the first line."""
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate from `at` until the next line's."""

    at: float
    per_second: float
    cv: float


@dataclass(frozen=True, slots=True)
class Requests:
    lines: Iterator[Arrived]


@dataclass(frozen=True, slots=True)
class Rates:
    lines: Iterator[Rate]


Line = TypeVar("Line", Arrived, Rate)


@contextmanager
def open_trace(path: Path) -> Iterator[Requests | Rates]:
    """The lines of a file, read as they are needed."""
    try:
        with _text(path) as file:
            yield read_trace(file, str(path))
    except OSError as error:
        raise LoadError(
            f"{path}: cannot be read: {error.strerror or error}; name a CSV file or a gzipped one"
        ) from None


def read_trace(lines: Iterable[str], name: str) -> Requests | Rates:
    """Lines in order of time from the first one's on; the first that cannot be read ends in an error that names it."""
    try:
        rows = csv.DictReader(lines)
        head = rows.fieldnames or ()
    except (EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise LoadError(f"{name}: is no CSV file: {error}") from None
    if set(REQUEST_HEAD) <= set(head):
        return Requests(_parsed(rows, _arrived, name))
    if set(RATE_HEAD) <= set(head):
        return Rates(_parsed(rows, _rate, name))
    raise LoadError(
        f"{name}: the head is {','.join(head)[:80]!r}; a trace's is {','.join(REQUEST_HEAD)}[,prefix_block_ids] "
        f"or {','.join(RATE_HEAD)}"
    )


def _text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _parsed(
    rows: csv.DictReader[str], line_of: Callable[[Mapping[str, str], float], Line], name: str
) -> Iterator[Line]:
    begin: float | None = None
    last = 0.0
    try:
        for row in rows:
            line = line_of(row, begin or 0.0)
            if begin is None:
                begin = line.at
                line = line_of(row, begin)
            if line.at < last:
                raise LoadError(f"{name}, line {rows.line_num}: is before the line above; sort it by time")
            last = line.at
            yield line
    except (EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise LoadError(f"{name}, line {rows.line_num}: is no CSV: {error}") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{name}, line {rows.line_num}: {error}") from None


def _arrived(row: Mapping[str, str], begin: float) -> Arrived:
    return Arrived(
        at=_number(row, "arrival_s") - begin,
        input_tokens=max(1, int(row["input_tokens"])),
        output_tokens=max(1, int(row["output_tokens"])),
        blocks=tuple(map(int, (row.get("prefix_block_ids") or "").split())),
    )


def _rate(row: Mapping[str, str], begin: float) -> Rate:
    return Rate(at=_number(row, "t_s") - begin, per_second=_number(row, "rate_rps"), cv=_number(row, "cv"))


def _number(row: Mapping[str, str], column: str) -> float:
    value = float(row[column])
    if not 0 <= value < float("inf"):
        raise ValueError(f"{column} is {row[column]!r}; it must be a number that is not negative")
    return value
