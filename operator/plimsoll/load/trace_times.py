"""When a line of a trace was: a number since some moment, a Unix time, or a date."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from plimsoll.load.trace_rates import Row
from plimsoll.load.trace_values import number_or_none, said, short

UNIX_IN: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Pairs of the least number that is a Unix time in ns, us or ms, and that unit. In a larger unit it would be thousands of years ahead."""
UNIX_FROM: Final = 1e9
"""The least number that is taken for a Unix time in seconds (of 2001 and later). As ms since the beginning of a trace it would be its twelfth
day."""


def moment(row: Row, column: str, unit_s: float = 1.0) -> float:
    """A time in seconds, since any moment: a number, a Unix time, or a date (of UTC where it names no zone)."""
    text = said(row, column)
    try:
        value = float(text)
    except ValueError:
        return _date(column, text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{column} is {short(text)}; it must be a number that is not negative, or a date")
    return value * next((unit for least, unit in UNIX_IN if value >= least), unit_s)


def began(row: Row, column: str, unit_s: float = 1.0) -> datetime | None:
    """The date of a line, in its own zone or in none; None where its time is a number since some moment, or cannot be read."""
    try:
        text = said(row, column)
        at = moment(row, column, unit_s)
        if number_or_none(text) is None:
            return _read_date(text)
        return datetime.fromtimestamp(at, UTC) if at >= UNIX_FROM else None
    except (ValueError, OverflowError, OSError):
        return None


def _date(column: str, text: str) -> float:
    try:
        read = _read_date(text)
    except ValueError:
        raise ValueError(
            f"{column} is {short(text)}; it must be seconds, a Unix time or a date as 2026-11-23T10:00:00Z"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _read_date(text: str) -> datetime:
    # As databases and languages write a zone: "10:00:00 UTC", "10:00:00 +0000".
    plain = text.removesuffix(" UTC").replace(" +", "+").replace(" -", "-")
    return datetime.fromisoformat(plain)
