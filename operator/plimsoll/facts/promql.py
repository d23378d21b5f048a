"""Brackets and quotes of a PromQL query that users write. Nothing more of it is read: what it means, its Prometheus knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CLOSERS: Final[Mapping[str, str]] = {"(": ")", "[": "]", "{": "}"}
_SIGNS: Final = re.compile(
    r"""(?P<whole>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\#[^\n]*)|(?P<sign>["'`()\[\]{}])""", re.DOTALL
)
"""Texts and comments as a whole, and otherwise brackets, and quotes that have no end. In a text between backticks a backslash is a
character like any other."""


@dataclass(frozen=True, slots=True)
class Unclosed:
    wrong: str
    """A sentence without its full stop."""
    right: str
    """What would be right, as words that may follow `write`."""


def unclosed(query: str) -> Unclosed | None:
    """What is wrong with the brackets and quotes of a query; None where it stays within brackets that are put around it, so that it cannot
    reach into what stands beside it."""
    opened: list[tuple[str, int]] = []
    for found in _SIGNS.finditer(query):
        sign, place = found["sign"], found.start() + 1
        if sign is None:
            continue
        if sign in CLOSERS:
            opened.append((sign, place))
        elif sign not in CLOSERS.values():
            return Unclosed(
                f"the quote {sign} at character {place} is not closed", f"a {sign} that closes it"
            )
        elif not opened:
            return Unclosed(f"the {sign} at character {place} closes nothing", "the query without it")
        elif (closer := CLOSERS[opened[-1][0]]) != sign:
            bracket, at = opened[-1]
            wrong = f"the {sign} at character {place} does not close the {bracket} at character {at}"
            return Unclosed(wrong, f"a {closer} in its place")
        else:
            opened.pop()
    if not opened:
        return None
    bracket, at = opened[-1]
    wrong = f"the {bracket} at character {at} is not closed"
    return Unclosed(wrong, f"a {CLOSERS[bracket]} that closes it")
