"""One look at the whole fleet a tick, through one Prometheus: histograms that had no turn are those of the last ones.

The only state is what other ticks have answered and how many there were; it is lost with the program, and is whole again
one round of turns later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Final, Protocol

from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodKey, PodSample
from plimsoll.facts.turns import TURN_S, TURNS, turns_of
from plimsoll.prometheus.answers import Part, part_of, samples_of
from plimsoll.prometheus.client import Answered, Read, T
from plimsoll.prometheus.queries import ALL_SERIES, Selector, queries
from plimsoll.prometheus.vocabulary import HISTOGRAMS, Vocabulary

QUESTIONS_MOST: Final = 12
"""In one look, those of wake queries among them, however many deployments there are."""
LOST: Final = 3.0
"""How many turns may get no answer, or looks where these are further apart, before a histogram counts as missing."""


class Asks(Protocol):
    async def ask(self, questions: Mapping[str, str], read: Read[T]) -> Answered[T]: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a fleet said at one tick."""

    samples: Mapping[PodKey, PodSample]
    """Gauges and counters by pod; a sample's name is the pod's UID where the source knows one, else the pod's name."""
    histograms: Mapping[PodKey, Mapping[str, Histogram]]
    """By namespace and serving set, over five minutes, those of the last turns among them."""
    asked: int = 0
    """How many questions that took."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """By question, why it got no answer when it was last asked, or none that is whole."""


class FleetMetrics:
    def __init__(
        self, source: Asks, words: Vocabulary, *, interval_s: float = TURN_S, select: Selector = ALL_SERIES
    ) -> None:
        """`interval_s` is the time between two looks; `select` narrows them to one cluster where the source has several."""
        self._source, self._words, self._turn, self._select = source, words, 0, select
        self._turns = turns_of(interval_s)
        self._lost: frozenset[str] = frozenset()
        """Histograms that the last look asked for in their turn, and got no answer."""
        self._errors: Mapping[str, str] = {}
        self._kept_s = (ceil(len(TURNS) / self._turns) + LOST) * max(TURN_S, interval_s)
        self._kinds: dict[str, tuple[float, Mapping[PodKey, Histogram]]] = {}

    def speaks(self, words: Vocabulary) -> None:
        """Take the metric names of all engines and versions that are in the fleet now."""
        self._words = words

    async def look(self, now: float) -> tuple[Reading, str | None]:
        """What the fleet says, and why the source did not answer at all, where it did not."""
        again = self._lost
        questions = queries(self._words, self._turn, self._turns, sorted(again), self._select)
        self._turn += self._turns
        asked = await self._source.ask(questions, partial(part_of, words=self._words))
        # Out of turn it is asked once: a Prometheus that cannot answer then is not to be asked for more and more.
        self._lost = frozenset(questions.keys() & HISTOGRAMS.keys() - asked.answers.keys() - again)
        if asked.reachable:
            # Of histograms that wait for their turn, the last error stands.
            waits = {kind: why for kind, why in self._errors.items() if kind in HISTOGRAMS.keys() - questions}
            self._errors = {**waits, **asked.partial, **asked.errors}
        for kind in questions:
            part = asked.answers.get(kind)
            if part is not None and part.histograms:
                self._kinds[kind] = (now, part.histograms)
        # In a thread, as for a large fleet it would hold the loop for a tenth of a second.
        reading = await asyncio.to_thread(self._read, asked.answers, now, len(questions))
        return reading, None if asked.reachable else next(iter(asked.errors.values()))

    def _read(self, parts: Mapping[str, Part], now: float, asked: int) -> Reading:
        return Reading(samples_of(parts), self._together(now), asked, self._errors)

    def _together(self, now: float) -> Mapping[PodKey, Mapping[str, Histogram]]:
        found: dict[PodKey, dict[str, Histogram]] = {}
        for kind, (at, listed) in sorted(self._kinds.items()):
            if 0 <= now - at <= self._kept_s:
                for key, histogram in listed.items():
                    found.setdefault(key, {})[kind] = histogram
        return found
