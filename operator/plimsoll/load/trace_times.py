"""When a line of a trace was: a number since some moment, a Unix time, or a date."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from typing import Any, Final

from plimsoll.facts.spans import DAY_S
from plimsoll.load.trace_dates import LIKE, Order, OtherOrder, TwoReadings, read_date
from plimsoll.load.trace_values import Row, number_or_none, plainly, said, short

UNIX_IN: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Pairs of the least number that is a Unix time in ns, us or ms, and that unit. In a larger unit it would be thousands of years ahead."""
UNIX_FROM: Final = 1e9
"""The least number that is taken for a Unix time in seconds (of 2001 and later). As ms since the beginning of a trace it would be its twelfth
day."""

UNIX_BEFORE: Final = 7_258_118_400.0
"""A Unix time of after 2199 is none, but a date without marks, as 20261123140500."""
_UNMARKED: Final = re.compile(r"(?:19|20)\d{6}")
_DAYS: Final = (19_000_101, 20_991_231)
"""The least and the greatest number that such a date of a day may be."""
SERIAL: Final = (36_526, 73_051)
"""Days since 1900, as spreadsheets number them, of 2000 and of 2100: what is a date lies between."""
SERIAL_1970: Final = 25_569
_SECONDS: Final = ("arrival_s", "arrival_ms", "timestamp_ms", "t_s")
"""Names that say that no days are meant."""
_ROUNDED: Final = re.compile(r"\d(?:\.(\d+))?E\+(\d+)")
"""A large number as spreadsheets shorten it; programs write the e small, or all digits."""
TELLING: Final = 3
"""The least number of times from which it is seen whether they are even."""
SAME: Final = 0.8
"""The share of gaps that are alike from which times are even. Of requests that come by chance fewer are, in whole seconds too."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How the times of a column are read."""

    column: str
    unit_s: float = 1.0
    """Of numbers that are too small for Unix times."""
    order: Order | None = None
    """Of dates whose order is not to be seen from themselves."""
    serial: bool = False
    """Whether numbers are of days since 1900."""

    def moment(self, row: Row) -> float:
        """A time in seconds, since any moment: a number, a Unix time, or a date (of UTC where it names no zone)."""
        text = said(row, self.column)
        try:
            value = float(text)
        except ValueError:
            return self._date(text)
        if _DAYS[0] <= value <= _DAYS[1] and self._is_day(text):
            return self._date(text)
        if not 0 <= value < inf:
            raise ValueError(f"{self._is(text)}; it must be a number that is not negative, or a date")
        if self.serial:
            # To the millisecond, as their eight decimals are.
            return round((value - SERIAL_1970) * DAY_S, 3)
        unit = next((unit for least, unit in UNIX_IN if value >= least), self.unit_s)
        at = value * unit
        if at >= UNIX_FROM and _step(text) * unit > 1.0:
            raise ValueError(
                f"{self._is(text)}; a spreadsheet has rounded it: give the column the format of a number without decimals there, and save it anew"
            )
        if at >= UNIX_BEFORE:
            raise ValueError(
                f"{self._is(text)}; as a Unix time it is of after 2199; it must be seconds, a Unix time or a date as {LIKE}"
            )
        return at

    def moment_or_none(self, row: Row) -> float | None:
        try:
            return self.moment(row)
        except ValueError:
            return None

    def began(self, row: Row) -> datetime | None:
        """The date of a line, in its own zone or in none; None where its time is a number since some moment, or cannot be read."""
        try:
            text = said(row, self.column)
            at = self.moment(row)
            if self._is_day(text) or number_or_none(text) is None:
                return read_date(text, self.order)
            return datetime.fromtimestamp(at, UTC) if at >= UNIX_FROM else None
        except (ValueError, OverflowError, OSError):
            return None

    def _is_day(self, text: str) -> bool:
        """Whether it is a date without marks, as 20261123, and no number of seconds."""
        return self.column.strip().lower() == "date" and _UNMARKED.fullmatch(text) is not None

    def _date(self, text: str) -> float:
        try:
            read = read_date(text, self.order)
        except TwoReadings as error:
            raise ValueError(f"{self._is(text)}, which {error}") from None
        except OtherOrder as error:
            raise ValueError(f"{self._is(text)}; it must be {error}, as others of its column are") from None
        except ValueError:
            raise ValueError(
                f"{self._is(text)}; it must be seconds, a Unix time or a date as {LIKE}{plainly(text)}"
            ) from None
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()

    def _is(self, text: str) -> str:
        return f"{self.column} is {short(text)}"


def days_in(rows: Iterable[Row], column: str, most_per_s: float) -> str | None:
    """A sentence on numbers that are taken for days since 1900: where they lie among those of this century, and the column is called date,
    or as seconds more lines than that would be of one. None where they are not."""
    texts = [said(row, column) for row in rows if row.get(column)]
    days = [value for text in texts if (value := number_or_none(text)) is not None]
    name = column.strip().lower()
    if (
        not days
        or len(days) < len(texts)
        or name in _SECONDS
        or not all(SERIAL[0] <= day < SERIAL[1] for day in days)
    ):
        return None
    taken = f"{column.strip()} holds {short(texts[0])[1:-1]}: days since 1900 are taken, as spreadsheets number them"
    if name == "date":
        return taken
    span = max(days) - min(days)
    if len(days) < TELLING or len(days) - 1 <= most_per_s * span or all(day.is_integer() for day in days):
        return None
    return f"{taken}; as seconds {(len(days) - 1) / span:,.0f} lines would be of one" if span else None


def at_once(times: Sequence[float]) -> str | None:
    """A sentence on times that are cut to whole seconds, where so many come that most share theirs; None where they are finer, or few."""
    lines = Counter(times)
    shared = sum(count for count in lines.values() if count > 1)
    if len(lines) < TELLING or 2 * shared <= len(times) or not all(time.is_integer() for time in times):
        return None
    return "times are of whole seconds, and those of one second are taken to come at once: queues look longer than they are"


def _step(text: str) -> float:
    """What the last digit of a number stands for that a spreadsheet has shortened; of others 0."""
    found = _ROUNDED.fullmatch(text)
    return 0.0 if found is None else 10.0 ** (int(found[2]) - len(found[1] or ""))


def even(times: Iterable[float]) -> bool:
    """Whether lines stand at even times, and equally many at each, as samples do and requests do not; so do too few to tell."""
    lines = Counter(round(time, 3) for time in times)
    gaps = Counter(round(after - before, 3) for before, after in pairwise(sorted(lines)))
    return len(lines) < TELLING or (_mostly_one(gaps) and _mostly_one(Counter(lines.values())))


def _mostly_one(counts: Counter[Any]) -> bool:
    return max(counts.values()) >= SAME * counts.total()
