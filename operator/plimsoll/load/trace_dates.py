"""Dates as programs write them (ISO 8601), and as spreadsheets and dashboards do: 23.11.2026 14:05, 11/23/2026 2:05 PM.

Which number of 11/05/2026 is the month differs from country to country. A day above 12 anywhere in a column tells it for all of it; points
stand only where the day comes first, and what begins with the year goes on with the month.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Final

_DATE: Final = r"(?P<one>\d{1,2})(?P<mark>[./-])(?P<other>\d{1,2})(?P=mark)(?P<year>\d{4})"
_YEAR_FIRST: Final = r"(?P<year>\d{4})/(?P<one>\d{1,2})/(?P<other>\d{1,2})"
_CLOCK: Final = (
    r"(?:,?[ T](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d+))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?P<zone>z|utc|gmt|[+-]\d{2}:?\d{2}))?)?"
)
_WRITTEN: Final = re.compile(_DATE + _CLOCK, re.IGNORECASE)
_BY_YEAR: Final = re.compile(_YEAR_FIRST + _CLOCK, re.IGNORECASE)
MONTHS: Final = 12
LIKE: Final = "2026-11-23T10:00:00Z"
"""How a time is best written."""


class Order(StrEnum):
    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"

    def numbers(self, found: re.Match[str]) -> tuple[int, int]:
        """Month and day."""
        one, other = int(found["one"]), int(found["other"])
        return (other, one) if self is Order.DAY_FIRST else (one, other)


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
    return found is not None and int(found["one"]) == int(found["other"])


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
        by_year = _BY_YEAR.fullmatch(plain)
        return _iso(plain) if by_year is None else _made(by_year, Order.MONTH_FIRST)
    if found["mark"] == ".":
        return _made(found, Order.DAY_FIRST)
    own = _only_order(found)
    if order is not None and own is not None and own is not order:
        raise OtherOrder(f"a date as {order}")
    order = order or own
    if order is None and int(found["one"]) != int(found["other"]):
        raise TwoReadings(_both(found))
    return _made(found, order or Order.DAY_FIRST)


def _plain(text: str) -> str:
    """With single spaces, as some write narrow ones before AM."""
    return " ".join(text.split())


def _iso(plain: str) -> datetime:
    # As databases and languages write a zone: "10:00:00 UTC", "10:00:00 +0000".
    return datetime.fromisoformat(plain.removesuffix(" UTC").replace(" +", "+").replace(" -", "-"))


def _only_order(found: re.Match[str]) -> Order | None:
    fitting = [order for order in Order if _is_day(*order.numbers(found))]
    return fitting[0] if len(fitting) == 1 else None


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= MONTHS and 1 <= day <= 31


def _made(found: re.Match[str], order: Order) -> datetime:
    month, day = order.numbers(found)
    zone = (found["zone"] or "").upper()
    zone = "+00:00" if zone in ("Z", "UTC", "GMT") else zone
    hour, minute, second = _hour(found), found["minute"] or "00", found["second"] or "00"
    clock = f"{hour:02}:{minute}:{second}.{found['part'] or '0'}{zone}"
    return datetime.fromisoformat(f"{found['year']}-{month:02}-{day:02}T{clock}")


def _hour(found: re.Match[str]) -> int:
    hour, half = int(found["hour"] or 0), (found["half"] or "").lower()
    if not half:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError("no hour of half a day")
    return hour % 12 + (12 if half == "p" else 0)


def _both(found: re.Match[str]) -> str:
    year, (one, other) = int(found["year"]), Order.MONTH_FIRST.numbers(found)
    as_month = datetime(year, one, other)  # noqa: DTZ001 - only its name is taken
    as_day = datetime(year, other, one)  # noqa: DTZ001
    return (
        f"may be {as_month:%-d %B %Y} ({Order.MONTH_FIRST}) or {as_day:%-d %B %Y} ({Order.DAY_FIRST}), and no day above 12 "
        f"tells which; write times as {LIKE}, or as Unix times"
    )
