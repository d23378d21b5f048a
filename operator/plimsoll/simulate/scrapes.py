"""Metrics as a Prometheus sees them: every 15 seconds, some lost, some late, counters anew after a restart.

No policy sees anything else of the engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random
from typing import Final

from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate import meters
from plimsoll.simulate.estate import Instance
from plimsoll.simulate.world import World

_TTFT: Final = (*meters.TTFT_BUCKETS, inf)
_ITL: Final = (*meters.ITL_BUCKETS, inf)
_LATENCY: Final = (*meters.LATENCY_BUCKETS, inf)
_TOKENS: Final = (*meters.TOKEN_BUCKETS, inf)

EXPORTS: Final = frozenset({
    "kv_fraction", "finished", "preemptions", "refused", "prompt_tokens", "generation_tokens", "prefix_queries", "prefix_hits",
    "ttft", "itl", "e2e", "prompt_lengths", "output_lengths",
})  # fmt: skip
"""Figures of a sample that a simulated engine exports: those of the newest that is known."""


class Prometheus:
    def __init__(self, world: World, *, histograms: bool) -> None:
        """Histograms are left out where a policy reads none: they are most of a scrape's cost."""
        self._random = Random(f"scrapes {world.seed}")  # noqa: S311 - repeatable by its seed
        self._odds = world.scrapes
        self._histograms = histograms
        self._late: list[PodSample] = []

    def scrape(self, ready: Sequence[Instance], now: float) -> tuple[PodSample, ...]:
        """What arrives by this scrape: late ones of the last, then those of now that are neither lost nor late."""
        arrived, self._late = self._late, []
        for instance in ready:
            chance = self._random.random()
            if chance < self._odds.lost:
                continue
            sample = self._sample(instance, now)
            late = chance < self._odds.lost + self._odds.late
            (self._late if late else arrived).append(sample)
        return tuple(arrived)

    def _sample(self, instance: Instance, now: float) -> PodSample:
        engine = instance.engine
        limits = engine.limits
        full = self._histograms
        return PodSample(
            pod=instance.name,
            at=now,
            kv_fraction=engine.kv_fraction,
            running=float(len(engine.running)),
            waiting=float(engine.queued),
            kv_tokens=limits.kv_tokens,
            block_size=limits.block_size,
            preemptions=float(engine.preemptions),
            finished=float(engine.finished_count),
            errors=0.0,
            refused=float(engine.refused),
            prompt_tokens=float(engine.prompt_tokens),
            generation_tokens=float(engine.generation_tokens),
            prefix_queries=float(engine.prefix_queries),
            prefix_hits=float(engine.prefix_hits),
            ttft=_exported(_TTFT, engine.ttft) if full else None,
            itl=_exported(_ITL, engine.itl) if full else None,
            e2e=_exported(_LATENCY, engine.e2e) if full else None,
            prompt_lengths=_exported(_TOKENS, engine.prompt_lengths) if full else None,
            output_lengths=_exported(_TOKENS, engine.output_lengths) if full else None,
        )


def _exported(bounds: tuple[float, ...], counted: meters.Histogram) -> Histogram:
    return Histogram(bounds, counted.exported(), counted.total)
