"""Dates as programs write them (ISO 8601), as logs do (10/Oct/2026:13:55:36 +0000), and as spreadsheets and dashboards do: 23.11.2026 14:05,
11/23/2026 2:05 PM.

Which number of 11/05/2026 is the month differs from country to country. A day above 12 anywhere in a column tells it for all of it; points
stand only where the day comes first, and what begins with the year goes on with the month. Of 23/11/26 even the year may be the first.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Final

_DATE: Final = (
    r"(?P<one>\d{1,2})(?P<mark>[./-])(?P<other>\d{1,2})(?P=mark)(?P<last>\d{4}|(?<=[./])\d{2})(?!\d)"
)
_YEAR_FIRST: Final = r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})"
_DAY_NAMED: Final = r"(?:[a-z]{3,9},? )?(?P<day>\d{1,2})(?P<mark>[ /-])(?P<month>[a-z]{3,9})\.?(?P=mark)(?P<year>\d{4}|\d{2})(?!\d)"
_NAME_FIRST: Final = r"(?:[a-z]{3,9},? )?(?P<month>[a-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})"
_HOURS: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d+))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?P<zone>z|utc|gmt|[+-]\d{2}:?\d{2}))?"
)
_CLOCK: Final = rf"(?:,?[ T]{_HOURS})?"
_WRITTEN: Final = re.compile(_DATE + _CLOCK, re.IGNORECASE)
_BY_YEAR: Final = re.compile(_YEAR_FIRST + _CLOCK, re.IGNORECASE)
_NAMED: Final = tuple(
    re.compile(rf"{named}(?:(?:,?[ T]| @ |:){_HOURS})?", re.IGNORECASE) for named in (_DAY_NAMED, _NAME_FIRST)
)
_MONTH_NAMES: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
MONTHS: Final = 12
LIKE: Final = "2026-11-23T10:00:00Z"
"""How a time is best written."""
CENTURY: Final = 2000
"""Of years that are written with two digits."""
SINCE: Final = 20
"""The least of those that is taken for a year: before it nobody served such models."""


class Order(StrEnum):
    MONTH_FIRST = "month/day/year"
    DAY_FIRST = "day/month/year"
    YEAR_FIRST = "year/month/day"
    """Only of years of two digits: one of four tells by itself where it stands."""

    def date(self, found: re.Match[str]) -> tuple[int, int, int]:
        """Year, month and day."""
        one, other, last = int(found["one"]), int(found["other"]), int(found["last"])
        year, month, day = {
            Order.MONTH_FIRST: (last, one, other),
            Order.DAY_FIRST: (last, other, one),
            Order.YEAR_FIRST: (one, other, last),
        }[self]
        return (year + CENTURY if _is_short(found) else year), month, day


class TwoReadings(ValueError):
    """A date that may be of either order: a sentence on both, without its subject."""


class OtherOrder(ValueError):
    """A date that is none by the order of its column: what it should be."""


def turns(text: str) -> bool:
    """Whether it is a date whose order is not to be seen from its marks."""
    found = _WRITTEN.fullmatch(_plain(text))
    return found is not None and found["mark"] != "."


def order_in(text: str) -> Order | None:
    """The order that a date has which is none in the other; None where it is one in both, or none."""
    found = _WRITTEN.fullmatch(_plain(text))
    return None if found is None else _only_order(found)


def same_in_both(text: str) -> bool:
    found = _WRITTEN.fullmatch(_plain(text))
    return found is not None and _are_same(_fitting(found), found)


def read_date(text: str, order: Order | None = None) -> datetime:
    """In its own zone, or in none. `order` is that of its column, where that tells it. Raises ValueError."""
    if text[4:5] == "-":
        # Most are of this form, and a trace may have millions.
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    plain = _plain(text)
    if plain[4:5] == "-" and plain[:4].isdecimal():
        return _iso(plain)
    found = _WRITTEN.fullmatch(plain)
    if found is None:
        return _read_by_itself(plain)
    if found["mark"] == ".":
        return _made(found, *Order.DAY_FIRST.date(found))
    fitting = _fitting(found)
    if order is not None and len(fitting) == 1 and fitting[0] is not order:
        raise OtherOrder(f"a date as {order}")
    if not fitting:
        raise ValueError("no day of any month")
    if order is None and not _are_same(fitting, found):
        raise TwoReadings(_both(found))
    return _made(found, *(order or fitting[0]).date(found))


def _read_by_itself(plain: str) -> datetime:
    """A date whose numbers say by their places, or by the month's name, what they are."""
    by_year = _BY_YEAR.fullmatch(plain)
    if by_year is not None:
        return _made(by_year, int(by_year["year"]), int(by_year["month"]), int(by_year["day"]))
    # Logs of web servers have it in brackets.
    bare = plain[1:-1] if plain.startswith("[") and plain.endswith("]") else plain
    named = next((found for form in _NAMED if (found := form.fullmatch(bare)) is not None), None)
    if named is None:
        return _iso(plain)
    year = int(named["year"]) + (CENTURY if len(named["year"]) < len("2026") else 0)
    return _made(named, year, _month_called(named["month"]), int(named["day"]))


def _month_called(name: str) -> int:
    """By its English name, or how that begins; Sept has four letters more often than three."""
    called = name.lower()
    found = next((place for place, month in enumerate(_MONTH_NAMES, 1) if month.startswith(called)), None)
    if found is None:
        raise ValueError("no month's name")
    return found


def _plain(text: str) -> str:
    """With single spaces, as some write narrow ones before AM."""
    return " ".join(text.split())


def _iso(plain: str) -> datetime:
    # As databases and languages write a zone: "10:00:00 UTC", "10:00:00 +0000".
    return datetime.fromisoformat(plain.removesuffix(" UTC").replace(" +", "+").replace(" -", "-"))


def _is_short(found: re.Match[str]) -> bool:
    return len(found["last"]) < len("2026")


def _only_order(found: re.Match[str]) -> Order | None:
    fitting = _fitting(found)
    return fitting[0] if len(fitting) == 1 else None


def _fitting(found: re.Match[str]) -> list[Order]:
    if not _is_short(found):
        return [one for one in (Order.MONTH_FIRST, Order.DAY_FIRST) if _is_day(*one.date(found))]
    return [one for one in Order if one.date(found)[0] >= CENTURY + SINCE and _is_day(*one.date(found))]


def _are_same(orders: list[Order], found: re.Match[str]) -> bool:
    return len({order.date(found) for order in orders}) == 1


def _is_day(_: int, month: int, day: int) -> bool:
    return 1 <= month <= MONTHS and 1 <= day <= 31


def _made(found: re.Match[str], year: int, month: int, day: int) -> datetime:
    zone = (found["zone"] or "").upper()
    zone = "+00:00" if zone in ("Z", "UTC", "GMT") else zone
    hour, minute, second = _hour(found), found["minute"] or "00", found["second"] or "00"
    clock = f"{hour:02}:{minute}:{second}.{found['part'] or '0'}{zone}"
    return datetime.fromisoformat(f"{year}-{month:02}-{day:02}T{clock}")


def _hour(found: re.Match[str]) -> int:
    hour, half = int(found["hour"] or 0), (found["half"] or "").lower()
    if not half:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError("no hour of half a day")
    return hour % 12 + (12 if half == "p" else 0)


def _both(found: re.Match[str]) -> str:
    fitting = _fitting(found)
    readings = " or ".join(f"{_dated(*order.date(found))} ({order})" for order in fitting)
    what = "day above 12" if Order.MONTH_FIRST in fitting else "other line"
    return f"may be {readings}, and no {what} tells which; write times as {LIKE}, or as Unix times"


def _dated(year: int, month: int, day: int) -> str:
    return f"{datetime(year, month, day):%-d %B %Y}"  # noqa: DTZ001 - only its name is taken
