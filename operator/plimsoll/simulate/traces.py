"""Traffic from files: requests one by one, or a rate every so often. A file that cannot be used says where and why.

Requests: `arrival_s,input_tokens,output_tokens` and, where prompts share prefixes, `prefix_block_ids` (numbers between spaces,
each for 512 tokens). Rates: `t_s,rate_rps,cv`, the last being the coefficient of variation of the gaps between arrivals.
CSV with a header, plain or gzipped. Arrivals are drawn from them by `arrivals`.
"""

from __future__ import annotations

import csv
import gzip
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from math import isfinite
from typing import Final

REQUEST_COLUMNS: Final = ("arrival_s", "input_tokens", "output_tokens")
RATE_COLUMNS: Final = ("t_s", "rate_rps", "cv")
PREFIXES: Final = "prefix_block_ids"
SHOWN: Final = 5
"""Faults of one file that are told; the rest is counted."""


class BadTrace(ValueError):
    """All that is wrong with a file, a line each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    name: str
    at: array[float]
    inputs: array[int]
    outputs: array[int]
    prefixes: tuple[tuple[int, ...], ...] | None
    """None where the file has no such column."""

    @property
    def span_s(self) -> float:
        """To the last arrival, and the mean gap beyond: copies of a trace joined end to end keep its rate."""
        return self.at[-1] * (1 + 1 / max(1, len(self.at) - 1)) if self.at[-1] > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    name: str
    at: tuple[float, ...]
    rates: tuple[float, ...]
    cvs: tuple[float, ...]

    @property
    def span_s(self) -> float:
        last = self.at[-1] - self.at[-2] if len(self.at) > 1 else 600.0
        return self.at[-1] + last

    @property
    def mean_rate(self) -> float:
        ends = (*self.at[1:], self.span_s)
        return (
            sum(rate * (end - at) for rate, at, end in zip(self.rates, self.at, ends, strict=True))
            / self.span_s
        )


Trace = RequestTrace | RateTrace


def read_trace(data: bytes, name: str) -> Trace:
    """A trace by what its header says it is; raises BadTrace with everything that is wrong."""
    rows = csv.reader(StringIO(_text(data, name)))
    header = [cell.strip() for cell in next(rows, [])]
    if set(REQUEST_COLUMNS) <= set(header):
        return _requests(name, header, rows)
    if {"t_s", "rate_rps"} <= set(header):
        return _rates(name, header, rows)
    raise BadTrace(
        f"{name}: its first line is {','.join(header)[:80]!r}; write {','.join(REQUEST_COLUMNS)} (and {PREFIXES}) for requests, "
        f"or {','.join(RATE_COLUMNS)} for rates"
    )


def _text(data: bytes, name: str) -> str:
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadTrace(f"{name}: is neither CSV nor gzipped CSV ({error})") from None


@dataclass(slots=True)
class _Faults:
    name: str
    lines: list[str] = field(default_factory=list)

    def number(self, line: int, column: str, text: str, least: float) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value) or value < least:
            self.add(line, f"{column} is {text!r}; write a number of at least {least:g}")
            return least
        return value

    def add(self, line: int, words: str) -> None:
        self.lines.append(f"{self.name}: line {line}: {words}")

    def tell(self) -> None:
        if self.lines:
            more = len(self.lines) - SHOWN
            rest = (f"{self.name}: {more} more faults",) if more > 0 else ()
            raise BadTrace(*self.lines[:SHOWN], *rest)


def _cells(
    header: Sequence[str], rows: Iterator[list[str]], faults: _Faults
) -> Iterator[tuple[int, Callable[[str], str]]]:
    places = {column: place for place, column in enumerate(header)}
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            faults.add(line, f"has {len(row)} cells; the header has {len(header)}")
            continue

        def cell(column: str, row: list[str] = row) -> str:
            return row[places[column]].strip()

        yield line, cell


def _requests(name: str, header: Sequence[str], rows: Iterator[list[str]]) -> RequestTrace:
    faults = _Faults(name)
    at, inputs, outputs = array("d"), array("q"), array("q")
    prefixes: list[tuple[int, ...]] | None = [] if PREFIXES in header else None
    for line, cell in _cells(header, rows, faults):
        arrival = faults.number(line, "arrival_s", cell("arrival_s"), 0.0)
        if at and arrival < at[-1]:
            faults.add(line, f"arrival_s is {arrival:g}, before the line above it; sort by arrival")
        at.append(arrival)
        inputs.append(int(faults.number(line, "input_tokens", cell("input_tokens"), 1)))
        outputs.append(int(faults.number(line, "output_tokens", cell("output_tokens"), 1)))
        if prefixes is not None:
            prefixes.append(_ids(line, cell(PREFIXES), faults))
    if not at and not faults.lines:
        faults.lines.append(f"{name}: holds no request")
    faults.tell()
    return RequestTrace(
        name=name,
        at=at,
        inputs=inputs,
        outputs=outputs,
        prefixes=None if prefixes is None else tuple(prefixes),
    )


def _ids(line: int, text: str, faults: _Faults) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split()))
    except ValueError:
        faults.add(line, f"{PREFIXES} is {text[:40]!r}; write whole numbers between spaces")
        return ()


def _rates(name: str, header: Sequence[str], rows: Iterator[list[str]]) -> RateTrace:
    faults = _Faults(name)
    found: list[tuple[float, float, float]] = []
    for line, cell in _cells(header, rows, faults):
        at = faults.number(line, "t_s", cell("t_s"), 0.0)
        if found and at <= found[-1][0]:
            faults.add(line, f"t_s is {at:g}, not after the line above it; sort by t_s")
        cv = faults.number(line, "cv", cell("cv"), 0.0) if "cv" in header else 1.0
        found.append((at, faults.number(line, "rate_rps", cell("rate_rps"), 0.0), cv))
    if not found and not faults.lines:
        faults.lines.append(f"{name}: holds no rate")
    if found and not faults.lines and not any(rate for _, rate, _ in found):
        faults.lines.append(f"{name}: rate_rps is 0 throughout, so that nothing ever arrives")
    faults.tell()
    return RateTrace(
        name=name,
        at=tuple(row[0] for row in found),
        rates=tuple(row[1] for row in found),
        cvs=tuple(row[2] for row in found),
    )
