"""Which exported name means what, over all engines and versions that a fleet runs: old names and new ones at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GAUGES: Mapping[str, str] = {"running": "running", "waiting": "waiting"}
"""Logical name of a gauge to the field of a sample, as the next two."""
COUNTERS: Mapping[str, str] = {
    "preemptions": "preemptions",
    "requestSuccess": "finished",
    "admissionRejections": "refused",
    "promptTokens": "prompt_tokens",
    "generationTokens": "generation_tokens",
    "prefixQueries": "prefix_queries",
    "prefixHits": "prefix_hits",
}
SHARES: Mapping[str, str] = {"kvUsage": "kv_fraction"}
MOST_SHARE = 1.05
"""A share a little above one is rounding; more is another unit or a lie."""
HISTOGRAMS: Mapping[str, tuple[str, ...]] = {
    "ttft": ("timeToFirstToken",),
    "itl": ("interToken", "timePerOutputToken"),
    "e2e": ("endToEnd",),
    "prompt_lengths": ("promptLength",),
    "output_lengths": ("generationLength",),
}
"""Field of a sample to logical names, the best first: where an engine does not count the gaps between tokens, the mean gap of each request
stands in for them."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    names: Mapping[str, tuple[str, ...]]
    """Logical name to exported names, the better first: an engine may export an old name beside the new one."""

    def of(self, *logical: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for word in logical for name in self.names.get(word, ())))

    def fields(self, meaning: Mapping[str, str]) -> Mapping[str, tuple[str, int]]:
        """By exported name: the field of a sample that it fills, and how many other names of that field are better."""
        return {
            name: (field, rank)
            for word, field in meaning.items()
            for rank, name in enumerate(self.names.get(word, ()))
        }

    def histogram(self, field: str) -> tuple[str, ...]:
        """Exported names of a histogram, the better first: of each replica only the first that it exports counts."""
        return self.of(*HISTOGRAMS[field])


def vocabulary(metrics: Iterable[Mapping[str, tuple[str, ...]]]) -> Vocabulary:
    """All engines' words together, from the metric names of each engine and version in use. Each of their lists has the current name
    first, and what comes first here leads.

    A histogram that only stands in for another one, which the engine exports as well, is left out: histograms are the dear part of
    every question.
    """
    lists: dict[str, dict[tuple[str, ...], None]] = {}
    for each in metrics:
        for word in each.keys() - _spare(each):
            lists.setdefault(word, {})[tuple(each[word])] = None
    # A version that exports two names says which of them is the better one, so the longest list leads.
    return Vocabulary(
        {
            word: tuple(
                dict.fromkeys(
                    name for names in sorted(found, key=lambda names: -len(names)) for name in names
                )
            )
            for word, found in sorted(lists.items())
        }
    )


def exports(metrics: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Fields of a sample that an engine with these metric names exports, beside the gauges, which all of them have."""
    plain = {field for word, field in (*SHARES.items(), *COUNTERS.items()) if metrics.get(word)}
    return frozenset(plain | {kind for kind, words in HISTOGRAMS.items() if any(map(metrics.get, words))})


def _spare(metrics: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Histograms that are not needed, as the engine exports a better one of the same field."""
    listed = ([word for word in words if metrics.get(word)] for words in HISTOGRAMS.values())
    return {word for there in listed for word in there[1:]}
