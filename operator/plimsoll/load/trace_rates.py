"""Traces of which only numbers over time are known: rates a second, a minute or an hour, and counts by interval.

What a number counts is told by its column's name, or by a unit that stands beside the number, as dashboards write it. A column alone whose
name says nothing is taken for requests a second, as Prometheus' rate() gives them, and that is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from plimsoll.facts.spans import DAY_S
from plimsoll.load.problems import LoadError
from plimsoll.load.trace_values import Row, plainly, short

LIKELY_CV: Final = 10.0
"""Gaps of recorded traffic vary less, but for a few times of a week."""
MOST_CV: Final = 50.0
"""In those they vary less than this."""
RATE_HEAD: Final = "t_s,rate_rps[,cv]"
MOST_RATE: Final = 1_000_000.0
"""Requests a second."""
MOST_COUNT: Final = 1e9
"""Requests of an interval."""
WIDE: Final = 1.5
"""A gap of so many usual ones is one in which lines are left out."""
GRID_S: Final = 5.0
"""The least interval that is known from all gaps being multiples of it, though few are of it alone. Irregular times in whole seconds are
multiples of one or two seconds too, and hardly of more."""
BY_CHANCE: Final = 3
"""How many times as often as the interval another gap may be, where most intervals are left out."""
SINGLE_S: Final = 600.0
"""How long a rate holds that is alone."""
_ON_GRID: Final = 0.02
"""How far from a multiple of it a gap may be, in intervals."""

_SHORT: Final = {
    **dict.fromkeys(("raterps", "rps", "qps", "reqps", "cps"), 1.0),
    **dict.fromkeys(("raterpm", "rpm", "qpm", "reqpm", "cpm"), 1 / 60),
    **dict.fromkeys(("raterph", "rph", "qph"), 1 / 3600),
}
_UNITS: Final = {"s": 1.0, "m": 1 / 60, "h": 1 / 3600, "d": 1 / DAY_S}
_PER: Final = r"(?:/|per)([smhd])(?:ec|econd|in|inute|our|ay)?s?"
_LONG: Final = re.compile(rf"(?:(?:request|req|call|op|c)s?)?{_PER}")
_WITHIN: Final = re.compile(rf"\b(?:request|req)s?{_PER}\b", re.IGNORECASE)
"""Within the name that a dashboard gives a column; beside it stands what the requests are of."""
_COUNTS: Final = (
    *("requests", "requestcount", "requestscount", "numrequests", "nrequests", "count", "count(*)"),
    *("hits", "calls", "invocations"),
)
UNSAID: Final = ("value", "rate", "requestrate")
"""Names that say that a number is meant, and not of what time."""
_OTHER: Final = re.compile(
    r"latenc|duration|elapsed|token|byte|percent|ttft|itl|tpot|\bp\d\d|memory|cache|util|spend|cost|price|status",
    re.IGNORECASE,
)
"""Within the name of a column that is of something else than requests."""
_AMOUNT: Final = re.compile(r"([-+]?[0-9.]+(?:[eE][+-]?[0-9]+)?) *(?:(Mil|[kKM])(?=\s|$) *)?(.*)")
_TIMES: Final = {"k": 1e3, "K": 1e3, "M": 1e6, "Mil": 1e6}

_NOTHING: Final = ("", "nan", "null", "undefined")


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, which holds from `at` until the next line's."""

    at: float
    per_second: float
    cv: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateColumns:
    at: str
    unit_s: float
    rate: str
    cv: str | None
    per_second: float | None = 1.0
    """What a number of 1 is in requests a second. None: it is a count of the time until the next line."""
    said: bool = True
    """Whether the name says what the numbers are."""


def rate_columns(
    known: Mapping[str, str], at: str, cv: str | None, unit_s: float, *, folded_at: str
) -> RateColumns | None:
    """The column of numbers by the names in a head, which are folded; None where no column can be one."""
    by_unit = {name: unit for name in known if name != folded_at and (unit := _per_second(name)) is not None}
    if by_unit:
        name = max(by_unit, key=lambda one: (one == "raterps", by_unit[one]))
        return RateColumns(at=at, unit_s=unit_s, rate=known[name], cv=cv, per_second=by_unit[name])
    counts = next((known[name] for name in _COUNTS if name in known), None)
    if counts is not None:
        return RateColumns(at=at, unit_s=unit_s, rate=counts, cv=cv, per_second=None)
    others = [name for name in known.values() if name not in (at, cv)]
    unsaid = next((known[name] for name in UNSAID if name in known), None)
    if unsaid is None and len(others) == 1 and not _OTHER.search(others[0]):
        unsaid = others[0]
    if unsaid is None:
        return None
    within = _WITHIN.search(unsaid.replace(" per ", "per").replace(" / ", "/").replace("_", ""))
    return RateColumns(
        at=at,
        unit_s=unit_s,
        rate=unsaid,
        cv=cv,
        per_second=1.0 if within is None else _UNITS[within[1].lower()],
        said=within is not None,
    )


def has_number(row: Row, column: str) -> bool:
    """Whether there is anything to read: dashboards leave a cell empty, or write NaN, where nothing was measured."""
    return _text(row, column).lower() not in _NOTHING


def unit_beside(row: Row, column: str) -> float | None:
    """What a number of 1 is in requests a second, as a unit beside it says; None where there is none."""
    found = _AMOUNT.fullmatch(_text(row, column))
    return None if found is None else _unit(found)


def unit_named(unit: str) -> float | None:
    """What a number of 1 is in requests a second, by the name of its unit; None where that is of something else."""
    return _per_second(unit.strip().lower().replace(" ", ""))


def is_number(row: Row, column: str) -> bool:
    found = _AMOUNT.fullmatch(_text(row, column))
    return found is not None and (not found[3] or _unit(found) is not None)


def per_second(row: Row, columns: RateColumns) -> float:
    """The number of a line in requests a second; of a count as it is."""
    text = _text(row, columns.rate)
    each = 1.0 if columns.per_second is None else columns.per_second
    most = MOST_COUNT if columns.per_second is None else MOST_RATE / each
    found, value = _AMOUNT.fullmatch(text), -1.0
    if found is not None:
        unit: float | None = each
        if found[3]:
            # A count is of its interval, whatever a unit says.
            unit = None if columns.per_second is None else _unit(found)
        try:
            value = float(found[1]) * _TIMES.get(found[2] or "", 1.0)
        except ValueError:
            unit = None
        value = -1.0 if unit is None else value * unit / each
    if not 0 <= value <= most:
        raise ValueError(
            f"{columns.rate} is {short(text)}; it must be a number that is not negative, at most {most:,.0f}{plainly(text)}"
        )
    return value * each


def last_s(at: Sequence[float], empty: Iterable[float]) -> float:
    """How long the last rate holds: as long as the line before it did, which may be one without a value."""
    end = max(at, default=0.0)
    before = max((one for one in chain(at, empty) if one < end), default=None)
    return SINGLE_S if before is None else end - before


def by_interval(name: str, counts: Sequence[Rate]) -> tuple[list[Rate], float, str]:
    """Rates from lines that hold a count where a rate would stand, in the same order, how long the last of them holds, and a sentence on what is
    taken.

    A count is of the time until the next line, and the last of what is usual. A table that groups by the minute has no line for a minute in
    which nobody came, so a longer gap is the usual time and then nothing. Where there is no usual time, LoadError is raised: whether a count
    is then of the gap before it or of the one after it, no line says, and its rate may be many times as much by the one as by the other.
    """
    if len(counts) < 2:
        raise LoadError(
            f"{name}: is one count alone, and nothing says of how long; add the next, or name a rate"
        )
    ordered = sorted(one.at for one in counts)
    gaps = [after - before for before, after in pairwise(ordered)]
    usual = _usual(gaps)
    if not _by_one(gaps, usual):
        raise LoadError(
            f"{name}: counts stand at irregular times, {min(gaps):,g} to {max(gaps):,g} seconds apart, so nothing says of how long each is, since "
            "the line before or until the next: write rates (rate_rps), or count by one interval, with 0 where nobody came"
        )
    lasts = dict(zip(ordered, gaps, strict=False))
    found: list[Rate] = []
    holes = 0
    for one in counts:
        gap = lasts.get(one.at, usual)
        wide = gap > WIDE * usual
        found.append(Rate(one.at, one.per_second / (usual if wide else gap), one.cv))
        if wide:
            holes += 1
            found.append(Rate(one.at + usual, 0.0, one.cv))
    left_out = (
        ""
        if not holes
        else (
            f"; it leaves out {holes:,} {'stretch' if holes == 1 else 'stretches'} of time, in which nobody is taken to come"
        )
    )
    drawn = "how many come in each, and when, is drawn by chance around the count"
    return found, usual, f"requests are counted by {usual:,g} seconds, and {drawn}{left_out}"


def _usual(gaps: Sequence[float]) -> float:
    """The most frequent gap; or the shortest, where all are multiples of it and chance alone has another one more often, as where most
    intervals are left out."""
    often = Counter(round(gap, 3) for gap in gaps)
    # Of equally frequent ones the shortest: in a table with holes no gap is shorter than its interval.
    most = min(often.items(), key=lambda one: (-one[1], one[0]))[0] or min(gaps)
    least = min(often)
    return least if BY_CHANCE * often[least] >= often[most] and _on_grid(gaps, least) else most


def _by_one(gaps: Sequence[float], usual: float) -> bool:
    """Whether lines stand about one interval apart, but for some that are left out; or, where most are, on the grid of one."""
    about = sum(usual / WIDE <= gap <= WIDE * usual for gap in gaps)
    return 2 * about >= len(gaps) or _on_grid(gaps, usual)


def _on_grid(gaps: Sequence[float], each: float) -> bool:
    return each >= GRID_S and all(abs(gap / each - round(gap / each)) <= _ON_GRID for gap in gaps)


def unsaid(name: str, column: str, lines: Iterable[Rate]) -> str:
    """The sentence on numbers of which nothing says what they count; raises LoadError where a guess would be no better than another."""
    others = "rate_rpm (a minute) or requests (counted by interval)"
    if all(one.per_second.is_integer() for one in lines):
        raise LoadError(
            f"{name}: nothing says what {column} counts, and whole numbers may be rates or counts: name it rate_rps (a second), {others}; where each line is "
            "one request, name its time arrival_s"
        )
    return f"nothing says what {column} counts: requests a second are taken, as rate() gives them; name it rate_rps, or else {others}"


def uneven(column: str | None, lines: Sequence[Rate]) -> Iterator[str]:
    """A sentence where gaps are said to vary as hardly any traffic's do, which is a slip rather than a wish."""
    above = [one.cv for one in lines if one.cv > LIKELY_CV]
    if column is not None and above and (max(above) > MOST_CV or 2 * len(above) > len(lines)):
        yield (
            f"{column.strip()} is above {LIKELY_CV:g} in {len(above):,} {'line' if len(above) == 1 else 'lines'}, and up to {max(above):,g}: gaps "
            "between requests would then be so uneven that hours of nobody and crowds at one moment take turns; recorded traffic has 0.5 to "
            f"{LIKELY_CV:g}, rarely up to {MOST_CV:g}, 1 is requests by chance, and 120% is 1.2"
        )


def _text(row: Row, column: str) -> str:
    held = row.get(column)
    return "" if held is None else str(held).strip()


def _unit(found: re.Match[str]) -> float | None:
    """What a number of 1 is in requests a second, by what stands after it."""
    return _per_second(found[3].strip().lower())


def _per_second(folded: str) -> float | None:
    if folded in _SHORT:
        return _SHORT[folded]
    found = _LONG.fullmatch(folded)
    return None if found is None else _UNITS[found[1]]
