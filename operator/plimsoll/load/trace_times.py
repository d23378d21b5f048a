"""When a line of a trace was: a number since some moment, a Unix time, or a date."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from typing import Any, Final

from plimsoll.load.trace_dates import LIKE, Order, OtherOrder, TwoReadings, read_date
from plimsoll.load.trace_values import Row, number_or_none, said, short

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
        at = value * next((unit for least, unit in UNIX_IN if value >= least), self.unit_s)
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
                f"{self._is(text)}; it must be seconds, a Unix time or a date as {LIKE}"
            ) from None
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()

    def _is(self, text: str) -> str:
        return f"{self.column} is {short(text)}"


def even(times: Iterable[float]) -> bool:
    """Whether lines stand at even times, and equally many at each, as samples do and requests do not; so do too few to tell."""
    lines = Counter(round(time, 3) for time in times)
    gaps = Counter(round(after - before, 3) for before, after in pairwise(sorted(lines)))
    return len(lines) < TELLING or (_mostly_one(gaps) and _mostly_one(Counter(lines.values())))


def _mostly_one(counts: Counter[Any]) -> bool:
    return max(counts.values()) >= SAME * counts.total()
