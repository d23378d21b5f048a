"""What a field of a trace holds: tokens, numbers, ids of blocks. What cannot be read raises ValueError with what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Row = Mapping[str, Any]
"""The fields of a line by their names."""

MOST_TOKENS: Final = 100_000_000
MOST_CV: Final = 1000.0

_GROUPED: Final = re.compile(r"[-+]?\d[\d.]*[,' \u00a0\u202f][\d.,' \u00a0\u202f]*")
"""A number as some countries write it, of which 1,024 is a thousand in one and about one in another."""
_PATH: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def tokens(row: Row, column: str) -> int:
    """A whole number of tokens, also where it is written as 374.0. 0 counts as 1, as there are no requests of nothing."""
    text = said(row, column)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (0 <= value <= MOST_TOKENS and value.is_integer()):
        raise ValueError(
            f"{column} is {short(text)}; it must be a whole number of tokens, 0 to {MOST_TOKENS:,}{plainly(text)}"
        )
    return max(1, int(value))


def number(row: Row, column: str, most: float) -> float:
    text = said(row, column)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise ValueError(
            f"{column} is {short(text)}; it must be a number that is not negative, at most {most:,.0f}{plainly(text)}"
        )
    return value


def blocks(row: Row, column: str) -> tuple[int, ...]:
    """The ids of a prompt's blocks: a list, or its text with ids separated by spaces, or by commas in brackets. It may be empty."""
    held = row.get(column)
    listed = held if isinstance(held, list) else str(held or "").strip("[] ").replace(",", " ").split()
    try:
        return tuple(int(one) for one in listed)
    except (TypeError, ValueError):
        raise ValueError(
            f"{column} is {short(held)}; it must be whole numbers, separated by spaces"
        ) from None


def number_or_none(held: object) -> float | None:
    try:
        value = float(str(held))
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def said(row: Row, column: str) -> str:
    held = row.get(column)
    if held is None or held == "":
        # A field within an object of JSON is called by its path, and lacks where a request failed.
        kept = f"; jq -c 'select(.{column})' keeps those that have it" if _PATH.fullmatch(column) else ""
        raise ValueError(f"{column} is missing; each line needs one{kept}")
    return str(held).strip()


def short(held: object) -> str:
    text = str(held)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def plainly(text: str) -> str:
    """The end of a sentence on what should be a number: how numbers are written, where that is what is wrong."""
    return (
        "; decimals stand after a point, and nothing stands between thousands"
        if _GROUPED.fullmatch(text)
        else ""
    )
