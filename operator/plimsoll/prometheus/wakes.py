"""What gateways say of deployments that may sleep: all their wake queries in one question, so that many cost no more than one.

The queries are users' own. One that Prometheus refuses would spoil the answer for all: those it is among are then asked one by
one, a few a tick, and whoever is refused alone is left out until it is written anew. So it is with one that is too slow, which
is tried again now and then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.prometheus.answers import Rows
from plimsoll.prometheus.client import NO_ANSWER, PASSING
from plimsoll.prometheus.fleet import Asks

LABEL: Final = "plimsoll_deployment"
ALONE_MOST: Final = 4
TOGETHER: Final = "wakes"
SLOW_LOOKS: Final = 40
"""After so many looks a query that was too slow is asked again: each time the whole tick waits for it."""
CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    waiting: Mapping[str, float] = field(default_factory=dict)
    """Requests that wait, or whatever else the query counts, by deployment; one that nobody answers for is not there."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why a query cannot be asked, by deployment."""


class WakeQueries:
    def __init__(self, source: Asks) -> None:
        self._source = source
        self._good: dict[str, str] = {}
        self._bad: dict[str, tuple[str, str]] = {}
        """The query, and why it is refused."""
        self._slow: dict[str, tuple[str, int]] = {}
        """The query, and the look at which it is asked again."""
        self._late = False
        """Whether the last answer to all together did not come in time."""
        self._looks = 0

    async def look(self, queries: Mapping[str, str]) -> Woken:
        """By deployment (namespace/name), while Prometheus answers other questions in time."""
        self._looks += 1
        self._good = {key: text for key, text in self._good.items() if queries.get(key) == text}
        self._bad = {key: each for key, each in self._bad.items() if queries.get(key) == each[0]}
        self._slow = {key: each for key, each in self._slow.items() if queries.get(key) == each[0]}
        unknown = [key for key in sorted(queries) if key not in self._good and key not in self._bad]
        for key in unknown:
            if not is_closed(queries[key]):
                self._bad[key] = queries[key], "its brackets or quotes are not closed"
        fresh = [key for key in unknown if key not in self._bad and key not in self._slow]
        again = [key for key, (_, due) in sorted(self._slow.items()) if due <= self._looks]
        alone = fresh[:ALONE_MOST] or again[:1]
        questions = {}
        if self._good:
            # First, since a slow one keeps whoever asks it.
            questions[TOGETHER] = " or ".join(_one(key, text) for key, text in sorted(self._good.items()))
        questions |= {key: _one(key, queries[key]) for key in alone}
        if not questions:
            return self._woken({})
        asked = await self._source.ask(questions, _waiting)
        for key in alone:
            why = asked.errors.get(key, "")
            if why != NO_ANSWER:
                self._slow.pop(key, None)
            if key in asked.answers:
                self._good[key] = queries[key]
            elif why == NO_ANSWER:
                self._slow[key] = queries[key], self._looks + SLOW_LOOKS
            elif why not in PASSING:
                self._bad[key] = queries[key], why
        failed = asked.errors.get(TOGETHER)
        late, self._late = self._late, failed == NO_ANSWER
        if (failed is not None and failed not in PASSING) or (late and self._late):
            # One of them has become wrong, as a type error in a metric that has only now appeared, or slow.
            self._good = {}
        return self._woken({key: value for found in asked.answers.values() for key, value in found.items()})

    def _woken(self, found: Mapping[str, float]) -> Woken:
        return Woken(
            waiting=dict(sorted(found.items())),
            refused={
                **{key: why for key, (_, why) in sorted(self._bad.items())},
                **dict.fromkeys(sorted(self._slow), NO_ANSWER),
            },
        )


def _waiting(_: str, rows: Rows) -> Mapping[str, float]:
    found = {}
    for row in rows:
        try:
            key, value = row["metric"][LABEL], float(row["value"][1])
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        if math.isfinite(value):
            found[key] = value
    return found


def _one(key: str, query: str) -> str:
    """A line of its own, since a query may end in a comment."""
    return f'label_replace(sum((\n{query}\n)), "{LABEL}", "{key}", "", "")'


def is_closed(query: str) -> bool:
    """Whether it stays inside brackets that are put around it: nobody's query reaches into another's answer."""
    open_: list[str] = []
    quote = ""
    escaped = False
    for char in query:
        if quote:
            if escaped:
                escaped = False
            elif char == "\\" and quote not in "`#":
                escaped = True
            elif (char == "\n") if quote == "#" else (char == quote):
                quote = ""
        elif char in "\"'`#":
            quote = char
        elif char in CLOSERS:
            open_.append(CLOSERS[char])
        elif char in CLOSERS.values() and (not open_ or open_.pop() != char):
            return False
    return not open_ and quote in ("", "#")


__all__ = ["WakeQueries", "Woken", "is_closed"]
