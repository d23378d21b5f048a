"""What the live replicas of a deployment say together: sums, rates and quantiles, each only from what is fresh.

Only replicas that are alive now are asked, before anything is added up: series of pods that are gone never count. Missing
stays missing: every figure is None where nothing fresh says it, and `coverage` tells how many replicas spoke. What to do about
it is `gate` and `scaling`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.control.latencies import NOTHING_SEEN, Latencies, Spread
from plimsoll.control.samples import AT, COUNTS, Peak, Track, Window
from plimsoll.facts.histograms import total
from plimsoll.facts.pod_sample import PodSample
from plimsoll.facts.turns import TURNS
from plimsoll.values import light

FRESH_S: Final = 60.0
"""Age from which a sample counts as missing: four scrapes were lost."""
RATE_S: Final = 120.0
RECENT_S: Final = 30.0
LATENCY_S: Final = 300.0
ALL: Final = frozenset(TURNS)
"""All histograms, by their fields of a sample."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSignals:
    """One live replica: gauges as they are, counters as what they gained in the last two minutes."""

    replica: str
    kv_fraction: float | None = None
    running: float | None = None
    waiting: float | None = None
    kv_tokens: int | None = None
    block_size: int | None = None
    span_s: float = 0.0
    """Seconds over which the counters gained: two minutes, less for a young replica, and 0 for one that was seen once."""
    preemptions: float | None = None
    finished: float | None = None
    errors: float | None = None
    refused: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    arrived: float | None = None
    """Requests that arrived: those that ended, and by how many more are in flight. Without the latter a growing queue would be missed."""
    recently: float | None = None
    """Requests that arrived in the last half minute, in which a step of the load shows first."""
    recent_prompt_tokens: float | None = None
    recent_span_s: float = 0.0
    inflight_mean: float | None = None
    """Over the two minutes."""
    inflight_most: float | None = None
    """Over the five minutes that latencies look back."""

    @property
    def inflight(self) -> float | None:
        return _together(self.running, self.waiting)

    @property
    def speaks(self) -> bool:
        """Whether it says how many requests it has."""
        return self.running is not None and self.waiting is not None


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What all live replicas say together. What is asked for several times a tick is cached."""

    at: float
    live: int
    """Replicas that are ready, hence asked."""
    replicas: tuple[ReplicaSignals, ...]
    """Those of them that have a fresh sample, sorted by name."""
    latencies: Latencies = NOTHING_SEEN
    reachable: bool = True
    """Whether the source of metrics answered at all."""
    gateway_waiting: float | None = None
    """Requests that wait in front of the replicas, where a gateway counts them."""
    late: int = 0
    """Ready replicas that the last scrape had a sample of, which is too old to count."""
    ahead: int = 0
    """The same, of a time that is still to come."""

    @property
    def coverage(self) -> float:
        return len(self.replicas) / self.live if self.live else 1.0

    @cached_property
    def silent(self) -> int:
        """How many ready replicas do not say how many requests they have, with a fresh sample or without one."""
        return self.live - len([each for each in self.replicas if each.speaks])

    def _said(self, name: str) -> list[float]:
        """One figure, of the replicas that say it."""
        return [value for each in self.replicas if (value := getattr(each, name)) is not None]

    def sum(self, name: str) -> float | None:
        """The sum of one figure over the replicas that say it; None where none does."""
        said = self._said(name)
        return float(sum(said)) if said else None

    def mean(self, name: str) -> float | None:
        said = self._said(name)
        return sum(said) / len(said) if said else None

    def held_each(self, pool: float | None = None) -> float | None:
        """KV tokens that one running request holds, in the mean of the replicas that tell. `pool` is the size of a pool where a replica does not
        say it."""
        said = [
            (each.kv_fraction * size, each.running)
            for each in self.replicas
            if each.kv_fraction is not None and each.running is not None and (size := each.kv_tokens or pool)
        ]
        held, running = sum([tokens for tokens, _ in said]), sum([running for _, running in said])
        return held / running if held and running else None

    @property
    def inflight(self) -> float | None:
        return self.sum("inflight")

    def most(self, name: str) -> float | None:
        return max(self._said(name), default=None)

    def rate(self, name: str) -> float | None:
        """What all replicas gained of a figure, a second."""
        return _rate([(getattr(each, name), each.span_s) for each in self.replicas], RATE_S)

    @cached_property
    def arrivals_per_s(self) -> float | None:
        """Over two minutes."""
        rate = self.rate("arrived")
        return None if rate is None else max(0.0, rate)

    @cached_property
    def recent_arrivals_per_s(self) -> float | None:
        """Over half a minute."""
        rate = _rate([(each.recently, each.recent_span_s) for each in self.replicas], RECENT_S)
        return None if rate is None else max(0.0, rate)

    @property
    def preempted_share(self) -> float | None:
        """Preemptions for each finished request; None where nothing finishes and nothing is preempted."""
        said = self._both("preemptions", "finished")
        if said is None or said == (0.0, 0.0):
            return None
        preempted, finished = said
        return preempted / max(1.0, finished)

    @cached_property
    def prefix_share(self) -> float | None:
        """Share of prompt tokens found in the prefix cache."""
        hits, queries = self._both("prefix_hits", "prefix_queries") or (0.0, 0.0)
        return hits / queries if queries else None

    def _both(self, one: str, other: str) -> tuple[float, float] | None:
        """The sums of two figures over the replicas that say both, so that their ratio is one of the same replicas."""
        said = [
            (first, second)
            for each in self.replicas
            if (first := getattr(each, one)) is not None and (second := getattr(each, other)) is not None
        ]
        return (sum([first for first, _ in said]), sum([second for _, second in said])) if said else None


def _rate(gains: Sequence[tuple[float | None, float]], window_s: float) -> float | None:
    """What gains come to a second. Those of young replicas are divided by the window too, as these served for no longer. Of a replica that was not
    scraped for a while, the gain is of all that time, which makes the others' no smaller."""
    least = min(window_s, max([span for _, span in gains], default=0.0))
    said = (
        [gain * (least / max(span, least)) for gain, span in gains if gain is not None] if least > 0 else []
    )
    return sum(said) / least if said else None


def signals_of(
    window: Window,
    *,
    now: float,
    live: Iterable[str],
    reachable: bool = True,
    gateway: float | None = None,
    latencies: Latencies | None = None,
    kinds: Collection[str] = ALL,
) -> Signals:
    """What the replicas of these pods say; pods that are in the window but not alive are left out.

    `latencies`: where somebody else has summed the histograms already, as a Prometheus can; else those of `kinds` are summed here.
    """
    asked = sorted(live)
    tracks = [(pod, track) for pod in asked if (track := window.tracks.get(pod)) is not None]
    # A sample may have a later time than its tick: it is made after the tick has read the clock, perhaps by another machine's.
    fresh = [(pod, track) for pod, track in tracks if abs(now - track.last.at) <= FRESH_S]
    # What was scraped before and is no longer is missing, however old it has become since.
    ages = [now - track.last.at for pod, track in tracks if pod in window.scraped]
    return Signals(
        at=now,
        live=len(asked),
        replicas=tuple(_replica(pod, track) for pod, track in fresh),
        latencies=_latencies([track for _, track in fresh], now, kinds, latencies),
        reachable=reachable,
        gateway_waiting=gateway,
        late=sum(age > FRESH_S for age in ages),
        ahead=sum(age < -FRESH_S for age in ages),
    )


def _base(track: Track, span: float) -> PodSample | None:
    """The newest sample that is older than the last one by at least `span` seconds, else the oldest; None where there is only one."""
    samples = track.samples
    if len(samples) < 2:
        return None
    return samples[max(0, bisect_right(samples, samples[-1].at - span, key=AT) - 1)]


_SILENT: Final = PodSample(pod="", at=0.0)
"""Stands for the earlier sample of a replica that was seen only once, so that no gain is known."""
_IDLE: Final = PodSample(pod="", at=-inf, running=0.0, waiting=0.0)
"""Stands for an engine that has just started."""


def _replica(pod: str, track: Track) -> ReplicaSignals:
    last, base, recent = track.samples[-1], _base(track, RATE_S), _base(track, RECENT_S)
    lately = recent or _SILENT
    preemptions, finished, errors, refused, prompts, generated, queries, hits = _gains(last, base or _SILENT)
    done, failed, turned_away, recent_prompts = map(_gained, _LATELY(last), _LATELY(lately))
    return ReplicaSignals(
        replica=pod,
        kv_fraction=last.kv_fraction,
        running=last.running,
        waiting=last.waiting,
        kv_tokens=last.kv_tokens,
        block_size=last.block_size,
        span_s=0.0 if base is None else last.at - base.at,
        preemptions=preemptions,
        finished=finished,
        errors=errors,
        refused=refused,
        prompt_tokens=prompts,
        generation_tokens=generated,
        prefix_queries=queries,
        prefix_hits=hits,
        arrived=_arrived((finished, errors, refused), last, base or _SILENT, track.ends),
        recently=_arrived((done, failed, turned_away), last, lately, track.ends),
        recent_prompt_tokens=recent_prompts,
        recent_span_s=0.0 if recent is None else last.at - recent.at,
        inflight_mean=_mean(_inflights(track, RATE_S)),
        inflight_most=_most(track.peaks, last.at - LATENCY_S),
    )


_LATELY: Final = attrgetter("finished", "errors", "refused", "prompt_tokens")


def _gains(last: PodSample, base: PodSample) -> list[float | None]:
    """The gain of each counter, in their order. A loop of its own rather than calls of _gained, as it runs for every replica of the fleet."""
    return [
        None if new is None or old is None else new - old if new > old else 0.0
        for new, old in zip(COUNTS(last), COUNTS(base), strict=True)
    ]


def _gained(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None else new - old if new > old else 0.0


def _arrived(
    gained: tuple[float | None, float | None, float | None],
    last: PodSample,
    base: PodSample,
    ends: Sequence[PodSample],
) -> float | None:
    """Requests that arrived between two samples. Those that were refused count: else a full queue would hide how many more are asked. Those that
    were lost with an engine had arrived, so each engine since is counted by itself. Those that their client gave up are counted nowhere once
    they are gone, and make none of the others unseen."""
    finished, errors, refused = gained
    if finished is None:
        return None
    arrived = finished + (errors or 0.0) + (refused or 0.0)
    for end in ends:
        if base.at <= end.at:
            arrived += _more(end.running, base.running) + _more(end.waiting, base.waiting)
            base = _IDLE
    return max(0.0, arrived + _more(last.running, base.running) + _more(last.waiting, base.waiting))


def _most(peaks: Sequence[Peak], since: float) -> float | None:
    for at, held in peaks:
        if at >= since:
            return held
    return None


def _more(new: float | None, old: float | None) -> float:
    return 0.0 if new is None or old is None else new - old


def _together(running: float | None, waiting: float | None) -> float | None:
    """Requests in flight; None where the queue is not known, as an unknown queue is not an empty one."""
    return None if running is None or waiting is None else running + waiting


def _inflights(track: Track, span: float) -> list[float]:
    samples = track.samples
    first = bisect_left(samples, samples[-1].at - span, key=AT)
    return [s.running + s.waiting for s in samples[first:] if s.running is not None and s.waiting is not None]


def _mean(said: Sequence[float]) -> float | None:
    return sum(said) / len(said) if said else None


def _latencies(
    tracks: Sequence[Track], now: float, kinds: Collection[str], summed: Latencies | None
) -> Latencies:
    spans = [LATENCY_S - (now - track.last.at) for track in tracks]
    bases = [_base(track, span) for track, span in zip(tracks, spans, strict=True)]
    whole = all(
        base is not None and track.samples[-1].at - base.at >= span
        for track, base, span in zip(tracks, bases, spans, strict=True)
    )
    if summed is not None:
        return summed if whole else replace(summed, whole=False)

    def spread(name: str) -> Spread | None:
        if name not in kinds:
            return None
        parts = []
        for track, base in zip(tracks, bases, strict=True):
            last = track.samples[-1]
            new, old = getattr(last, name), getattr(base, name) if base is not None else None
            if new is not None and old is not None:
                parts.append(new.minus(old))
        return Spread.of(total(parts))

    return Latencies(
        ttft=spread("ttft"),
        itl=spread("itl"),
        e2e=spread("e2e"),
        prompt=spread("prompt_lengths"),
        output=spread("output_lengths"),
        whole=whole,
    )
