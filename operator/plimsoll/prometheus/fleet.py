"""One look at the whole fleet a tick, through one Prometheus: histograms that had no turn are those of the last ones.

The only state is what other ticks have answered and how many there were; it is lost with the program, and is whole again
one round of turns later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

from plimsoll.facts.histograms import Histogram
from plimsoll.prometheus.answers import PodKey, Reading, reading
from plimsoll.prometheus.client import Asked
from plimsoll.prometheus.queries import queries
from plimsoll.prometheus.vocabulary import Vocabulary

KEPT_S: Final = 180.0
"""A round of nine turns at fifteen seconds, and some that were lost."""


class Asks(Protocol):
    async def ask(self, questions: Mapping[str, str]) -> Asked: ...


class FleetMetrics:
    def __init__(self, source: Asks, words: Vocabulary) -> None:
        self._source, self._words, self._ticks = source, words, 0
        self._kinds: dict[str, tuple[float, Mapping[PodKey, Histogram]]] = {}

    def speaks(self, words: Vocabulary) -> None:
        """Another engine or version has come to the fleet."""
        self._words = words

    async def look(self, now: float) -> tuple[Reading, bool]:
        """What the fleet says, and whether the source answered at all."""
        questions = queries(self._words, self._ticks)
        self._ticks += 1
        asked = await self._source.ask(questions)
        seen = reading(asked.answers, self._words, missing=asked.errors)
        for kind in questions:
            listed = {key: each[kind] for key, each in seen.histograms.items() if kind in each}
            if listed:
                self._kinds[kind] = (now, listed)
        return replace(seen, histograms=self._together(now)), asked.reachable

    def _together(self, now: float) -> Mapping[PodKey, Mapping[str, Histogram]]:
        found: dict[PodKey, dict[str, Histogram]] = {}
        for kind, (at, listed) in sorted(self._kinds.items()):
            if 0 <= now - at <= KEPT_S:
                for key, histogram in listed.items():
                    found.setdefault(key, {})[kind] = histogram
        return found
