"""What engines exported while they were under load: single looks at their metrics, and the figures of a stretch of looks.

Metrics are found by the logical names of the engine facts, whatever names the running version exports them under. What a version does not
export is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from plimsoll.facts.engines import engine_facts, engine_names, engine_profile
from plimsoll.load.exposition import Sample, read_exposition

STOOD_STILL: Final = 0.8
"""If the number of running requests was at its maximum in this share of the looks with requests waiting, something holds it there."""
_GPU_BUSY: Final = (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0), ("DCGM_FI_DEV_GPU_UTIL", 0.01))
_POD_LABELS: Final = (("exported_namespace", "exported_pod"), ("namespace", "pod"))
"""Labels by which an exporter says which pod has a GPU. After a Prometheus the plain names are those of the exporter's own pod, so the others
come first."""
PodName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One scrape of all of an endpoint's engines."""

    started: tuple[float, ...] = ()
    """When the processes started that answered. Other times than before mean other pods."""
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    """Use of the fullest engine's cache, 0 to 1."""
    preemptions: float | None = None
    finished: float | None = None
    queue_s: float | None = None
    """Sum of the requests' seconds in the queue, whose number is in `queued`. `prefill_s` and `prefilled` are the same for prefills."""
    queued: float | None = None
    prefill_s: float | None = None
    prefilled: float | None = None
    prefix_hits: float | None = None
    prefix_queries: float | None = None
    gpu_busy: float | None = None
    """Average over the GPUs of the endpoint's own pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWindow:
    """The figures of a stretch of looks."""

    looks: int
    running_mean: float | None
    running_max: float | None
    waiting_mean: float | None
    waiting_max: float | None
    kv_usage_mean: float | None
    kv_usage_max: float | None
    held_at: float | None
    """The number of running requests, where it stood still while others waited."""
    preemptions: float | None
    finished: float | None
    queue_ms: float | None
    """Mean over the requests that left the queue."""
    prefill_ms: float | None
    prefix_hit_share: float | None
    gpu_busy: float | None
    several: bool
    """Whether different engines answered, so that differences of counts between looks mean nothing."""


def look(pages: Iterable[str], pods: Collection[PodName] = ()) -> Look:
    """What the /metrics pages of an endpoint say at one time. Pages may be of one engine, of several, and of GPU exporters, which export all
    GPUs of their nodes; of those only the GPUs of the endpoint's own `pods` are taken."""
    by_name: dict[str, list[Sample]] = {}
    for page in pages:
        for sample in read_exposition(page):
            by_name.setdefault(sample.name, []).append(sample)

    def of(
        logical: str, how: Callable[[Iterable[float]], float] = math.fsum, suffix: str = ""
    ) -> float | None:
        for name in exported_names()[logical]:
            samples = by_name.get(name + suffix)
            if samples:
                return how(sample.value for sample in samples)
        return None

    return Look(
        started=tuple(sorted(sample.value for sample in by_name.get("process_start_time_seconds", ()))),
        running=of("running"),
        waiting=of("waiting"),
        kv_usage=of("kvUsage", max),
        preemptions=of("preemptions"),
        finished=of("requestSuccess"),
        queue_s=of("queueTime", suffix="_sum"),
        queued=of("queueTime", suffix="_count"),
        prefill_s=of("prefillTime", suffix="_sum"),
        prefilled=of("prefillTime", suffix="_count"),
        prefix_hits=of("prefixHits"),
        prefix_queries=of("prefixQueries"),
        gpu_busy=_gpu_busy(by_name, pods),
    )


def window(looks: Sequence[Look]) -> EngineWindow | None:
    """The figures of all looks; None where no look saw an engine."""
    seen = [one for one in looks if one.running is not None or one.kv_usage is not None]
    if not seen:
        return None
    several = len({one.started for one in seen}) > 1
    first, last = seen[0], seen[-1]

    def grown(value: Callable[[Look], float | None]) -> float | None:
        before, after = value(first), value(last)
        if several or before is None or after is None or after < before:
            return None
        return after - before

    return EngineWindow(
        looks=len(seen),
        running_mean=_mean(one.running for one in seen),
        running_max=_most(one.running for one in seen),
        waiting_mean=_mean(one.waiting for one in seen),
        waiting_max=_most(one.waiting for one in seen),
        kv_usage_mean=_mean(one.kv_usage for one in seen),
        kv_usage_max=_most(one.kv_usage for one in seen),
        held_at=_held_at(seen),
        preemptions=grown(lambda one: one.preemptions),
        finished=grown(lambda one: one.finished),
        queue_ms=_ratio(grown(lambda one: one.queue_s), grown(lambda one: one.queued), 1000),
        prefill_ms=_ratio(grown(lambda one: one.prefill_s), grown(lambda one: one.prefilled), 1000),
        prefix_hit_share=_ratio(grown(lambda one: one.prefix_hits), grown(lambda one: one.prefix_queries)),
        gpu_busy=_mean(one.gpu_busy for one in seen),
        several=several,
    )


@cache
def exported_names() -> Mapping[str, tuple[str, ...]]:
    """For each logical name all names under which any known version of an engine exports it, those of the newest versions first."""
    found: dict[str, list[str]] = {}
    for engine in engine_names():
        profile = engine_profile(engine)
        versions = list(profile.releases)[::-1] if profile.plans else []
        tables = [engine_facts(engine, version).metrics for version in versions] or [profile.metrics]
        for table in tables:
            for logical, names in table.items():
                known = found.setdefault(logical, [])
                known += [name for name in names if name not in known]
    return {logical: tuple(names) for logical, names in sorted(found.items())}


def _held_at(seen: Sequence[Look]) -> float | None:
    queued = [one.running for one in seen if one.waiting and one.running]
    if len(queued) < max(2, len(seen) / 2):
        return None
    most = max(queued)
    # One less than the maximum is a sequence that has ended and is not replaced yet.
    return most if sum(running >= most - 1 for running in queued) >= STOOD_STILL * len(queued) else None


def _gpu_busy(by_name: Mapping[str, Sequence[Sample]], pods: Collection[PodName]) -> float | None:
    for name, factor in _GPU_BUSY:
        own = [sample.value for sample in by_name.get(name, ()) if _whose(sample) in pods]
        if own:
            return factor * math.fsum(own) / len(own)
    return None


def _whose(sample: Sample) -> PodName | None:
    for namespace, pod in _POD_LABELS:
        if sample.labels.get(pod):
            return sample.labels.get(namespace, ""), sample.labels[pod]
    return None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(math.fsum(known) / len(known), 4) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _ratio(part: float | None, whole: float | None, factor: float = 1) -> float | None:
    return None if part is None or not whole else round(factor * part / whole, 4)
