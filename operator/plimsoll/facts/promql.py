"""Brackets and quotes of a PromQL query that users write. Nothing more of it is read: what it means, its Prometheus knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CLOSERS: Final[Mapping[str, str]] = {"(": ")", "[": "]", "{": "}"}
_SIGNS: Final = re.compile(
    r"""(?P<whole>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\#[^\r\n]*)|(?P<sign>["'`()\[\]{}]|\\(?=["'`()\[\]{}\#\\]))""",
    re.DOTALL,
)
"""Texts and comments as a whole, and otherwise brackets, and quotes that have no end, and backslashes before one of these."""
_ODD: Final = re.compile(r"(?<!\\)(?:\\\\)*\\`\Z")
"""The end of a text between backticks, of which not all who answer queries say that a backslash in it is a character like any other."""
_TORN: Final = re.compile(r"\r(?!\n|\Z)")
"""What ends a comment for Prometheus, and not for VictoriaMetrics."""


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
            if (slip := _ambiguous(query, found)) is not None:
                return slip
        elif sign == "\\":
            after = query[place]
            return Unclosed(
                f"a backslash stands before the {after} at character {place + 1}", f"the {after} without it"
            )
        elif sign in CLOSERS:
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


def _ambiguous(query: str, whole: re.Match[str]) -> Unclosed | None:
    """A text or comment that some who answer queries take to end elsewhere: what would be in it for one would reach out for the other."""
    place, said = whole.start() + 1, whole["whole"]
    if said.startswith("#") and _TORN.match(query, whole.end()):
        wrong = f"the comment at character {place} has a carriage return in it"
        return Unclosed(wrong, "a line feed in its place")
    if said.startswith("`") and _ODD.search(said):
        wrong = f"the text at character {place} ends in a backslash"
        return Unclosed(wrong, 'it between two ", with two backslashes')
    return None
