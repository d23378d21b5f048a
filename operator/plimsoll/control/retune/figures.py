"""The few figures by which replicas with and without a change are compared, in the same minutes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final

from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.samples import Track, Window
from plimsoll.control.signals import LATENCY_S, Signals
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample

CHANCE: Final = 3.0
"""Standard deviations by which a share of a few requests is another one by chance alone."""
QUEUE_LEAST: Final = 1.0
COUNTED: Final = ("finished", "preemptions", "errors", "generation_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some replicas, over the last minutes. None: not said, or too little of it to say."""

    preempted: float | None = None
    """For each finished request."""
    finished: float | None = None
    """Requests a second of a replica."""
    tokens: float | None = None
    """Output tokens a second of a replica."""
    errors: float | None = None
    """For each request that ended."""
    ttft_p99: float | None = None
    itl_p99: float | None = None
    gap: float | None = None
    """The longest gap between two tokens, as far as buckets tell."""
    gaps: float | None = None
    """Of which it is the longest."""
    longer: tuple[tuple[float, float], ...] = ()
    """Gaps that were longer than each of these bounds, the shortest first."""
    e2e_p99: float | None = None
    e2e_least: float | None = None
    """What that is at least, whatever chance has made of the requests that were seen, were they ever so few."""
    kept: float | None = None
    """Share of requests that meet all that is promised: at least so many, as whoever waits for one thing may wait for another."""
    waiting: float | None = None
    """Requests of a replica, in the mean of these minutes: what one look finds is chance."""
    waiting_now: float | None = None
    """The same at the last look. Not written down, as older releases know nothing of it."""
    samples: float = 0.0
    """Requests behind the latencies."""

    @property
    def queues(self) -> bool:
        """Whether a request of each replica waits at any time, and still does: once nobody asks any more, less is done for that alone."""
        return self.waiting is not None and self.waiting >= QUEUE_LEAST and self.waiting_now != 0

    @property
    def written(self) -> Figures:
        return replace(self, waiting_now=None)

    def gaps_beyond(self, bound: float) -> float | None:
        """How many were longer; those of a bucket that the bound cuts may all have been."""
        return next((count for at, count in reversed(self.longer) if at <= bound), self.gaps)

    def over(self, tally: Tally) -> Figures:
        """Counts of a whole phase in place of those of the last minutes."""
        if not tally.seconds:
            return self
        return replace(
            self,
            preempted=_share(tally.preempted, tally.finished),
            finished=tally.finished / tally.seconds,
            tokens=None if tally.tokens is None else tally.tokens / tally.seconds,
            errors=tally.failed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts since a phase began, as the counters moved: rates look back minutes, to when the load was shared otherwise."""

    finished: float = 0.0
    preempted: float | None = 0.0
    """None, as the next two: not said of all that finished, so that nothing is known of their share."""
    errors: float | None = 0.0
    tokens: float | None = 0.0
    seconds: float = 0.0
    """Of all replicas together."""
    until: float | None = None
    """Of the newest sample that is counted."""

    @property
    def ended(self) -> float:
        """Requests, well or not."""
        return self.finished + (self.errors or 0.0)

    @property
    def failed(self) -> float | None:
        """Share of those that ended; None: not said, or none ended."""
        return _share(self.errors, self.ended)

    def plus(self, window: Window, signals: Signals | None) -> Tally:
        """With what the replicas of now have counted since."""
        told = [
            _telling(track)
            for each in (() if signals is None else signals.replicas)
            if (track := window.tracks.get(each.replica)) is not None
        ]
        if not told:
            return self
        after = replace(self, until=max(samples[-1].at for samples in told))
        if self.until is None:
            return after
        for samples in told:
            last, base = samples[-1], _before(samples, self.until)
            if last.finished is None or base.finished is None:
                continue
            after = replace(
                after,
                finished=after.finished + max(0.0, last.finished - base.finished),
                preempted=_more(after.preempted, last.preemptions, base.preemptions),
                errors=_more(after.errors, last.errors, base.errors),
                tokens=_more(after.tokens, last.generation_tokens, base.generation_tokens),
                seconds=after.seconds + last.at - base.at,
            )
        return after


def _telling(track: Track) -> Sequence[PodSample]:
    """Samples that say all that any of them says: one of which a question had no answer is passed over, as the next one
    counts on. A count that is said no more is missing once the window holds no sample that says it."""
    said = [name for name in COUNTED if any(getattr(sample, name) is not None for sample in track.samples)]
    whole = [sample for sample in track.samples if all(getattr(sample, name) is not None for name in said)]
    return whole or track.samples


def _before(samples: Sequence[PodSample], until: float) -> PodSample:
    """The newest sample that was counted; of a replica that has come since, the first one."""
    return next((sample for sample in reversed(samples) if sample.at <= until), samples[0])


def _more(counted: float | None, last: float | None, base: float | None) -> float | None:
    return None if counted is None or last is None or base is None else counted + max(0.0, last - base)


def _share(counted: float | None, ended: float) -> float | None:
    return counted / ended if counted is not None and ended >= 1 else None


NOTHING: Final = Tally()
UNSEEN: Final = Window()


def figures_of(signals: Signals, slo: Slo, window: Window = UNSEEN, *, since: float = -inf) -> Figures:
    """`window` has the looks behind the signals, of which those since a moment tell how many wait."""
    count, latencies = len(signals.replicas), signals.latencies
    finished, errors = signals.rate("finished"), signals.rate("errors")
    tokens = signals.rate("generation_tokens")
    ended = (finished or 0.0) + (errors or 0.0)
    ttft, itl, e2e = _trusted(latencies.ttft), _trusted(latencies.itl), _trusted(latencies.e2e)
    return Figures(
        preempted=signals.preempted_share,
        finished=None if finished is None or not count else finished / count,
        tokens=None if tokens is None or not count else tokens / count,
        errors=None if errors is None or not ended else errors / ended,
        ttft_p99=None if ttft is None else ttft.p99,
        itl_p99=None if itl is None else itl.p99,
        gap=None if itl is None else itl.worst,
        gaps=None if itl is None else itl.samples,
        longer=() if itl is None or itl.shape is None else _longer(itl.shape),
        e2e_p99=None if e2e is None else e2e.p99,
        e2e_least=None if latencies.e2e is None else _least_p99(latencies.e2e),
        kept=_kept(latencies, slo),
        waiting=_waiting(signals, window, since),
        waiting_now=signals.mean("waiting"),
        samples=0.0 if latencies.ttft is None else latencies.ttft.samples,
    )


def _waiting(signals: Signals, window: Window, since: float) -> float | None:
    since = max(since, signals.at - LATENCY_S)
    means = []
    for each in signals.replicas:
        track = window.tracks.get(each.replica)
        said = [] if track is None else [one.waiting for one in track.samples if one.at >= since]
        told = [waiting for waiting in said if waiting is not None]
        if told:
            means.append(sum(told) / len(told))
    return sum(means) / len(means) if means else signals.mean("waiting")


def _trusted(spread: Spread | None) -> Spread | None:
    return spread if spread is not None and spread.trusted else None


def _longer(gaps: Histogram) -> tuple[tuple[float, float], ...]:
    return tuple((bound, gaps.above(bound)) for bound in gaps.bounds[:-1])


def _least_p99(spread: Spread) -> float | None:
    if spread.shape is None:
        return spread.p99 if spread.trusted else None
    # One more than so many standard deviations: of a few requests that is what chance hardly ever makes late.
    late = 0.01 + CHANCE * sqrt(0.99 * 0.01 / spread.samples) + 1 / spread.samples
    return spread.shape.quantile(max(0.0, 1 - late))


def _kept(latencies: Latencies, slo: Slo) -> float | None:
    promised = ((latencies.ttft, slo.ttft_p99_s), (latencies.itl, slo.itl_p99_s))
    late = [_late(spread, limit) for spread, limit in promised if spread is not None and limit is not None]
    said = [share for share in late if share is not None]
    return max(0.0, 1 - sum(said)) if said else None


def _late(spread: Spread, limit: float) -> float | None:
    """Share that is surely beyond the limit: of a bucket that the limit cuts nobody knows which part is."""
    shape = spread.shape
    if shape is None or not shape.count:
        return None
    place = min(bisect_left(shape.bounds, limit), len(shape.counts) - 1)
    return 1 - shape.counts[place] / shape.count
