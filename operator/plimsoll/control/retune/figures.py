"""The few figures by which replicas with and without a change are compared, in the same minutes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final

from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.retune.chance import CHANCE, Share
from plimsoll.control.samples import Track, Window
from plimsoll.control.signals import LATENCY_S, Signals
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample

QUEUE_LEAST: Final = 1.0
COUNTED: Final = ("finished", "preemptions", "errors", "generation_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What some replicas did over the last minutes. None: no replica says it, or too little was seen."""

    preempted: float | None = None
    """Preemptions for each finished request."""
    finished: float | None = None
    """Requests a second of a replica."""
    tokens: float | None = None
    """Output tokens a second of a replica."""
    errors: float | None = None
    """Share of the requests that ended which failed."""
    ended: float | None = None
    """How many requests that is a share of. It is not stored, as older releases could not read it."""
    ttft_p99: float | None = None
    itl_p99: float | None = None
    gap: float | None = None
    """The longest gap between two tokens, as far as buckets tell."""
    gaps: float | None = None
    """How many gaps there were, of which that is the longest."""
    longer: tuple[tuple[float, float], ...] = ()
    """Pairs of a bound and how many gaps were longer, the shortest bound first."""
    e2e_p99: float | None = None
    e2e_least: float | None = None
    """What the true p99 surely is at least, however few requests were seen."""
    kept: float | None = None
    """1 less the shares of first tokens and of gaps between tokens that are surely later than promised, added up. It is no share of requests:
    each has one first token and many gaps, and which of them are the same request's nobody says. It compares with its like alone."""
    waiting: float | None = None
    """Waiting requests of a replica, in the mean of these minutes, as a single look finds this many or that by chance."""
    waiting_now: float | None = None
    """The same at the last look alone. It is not stored, as older releases could not read it."""
    samples: float = 0.0
    """Requests behind the latencies."""

    @property
    def queues(self) -> bool:
        """Whether requests have been waiting all the time and still are. Where none wait any more, less is done only since less is asked."""
        return self.waiting is not None and self.waiting >= QUEUE_LEAST and self.waiting_now != 0

    @property
    def written(self) -> Figures:
        return replace(self, waiting_now=None, ended=None)

    @property
    def without_latencies(self) -> Figures:
        return replace(self, itl_p99=None, gap=None, e2e_p99=None, kept=None)

    @property
    def failing(self) -> Share | None:
        """How many requests failed; None: not said. In the minutes that latencies are of about as many ended as began to be answered."""
        of = max(1.0, self.samples) if self.ended is None else self.ended
        return None if self.errors is None else Share(self.errors * of, of)

    @property
    def breaking(self) -> Share | None:
        """How much came later than promised, of both together, as if so many requests had done so: for chance, which is of requests. None:
        not said."""
        of = max(1.0, self.samples)
        return None if self.kept is None else Share((1 - self.kept) * of, of)

    def gaps_beyond(self, bound: float) -> float | None:
        """How many gaps may have been longer than the bound: a bucket that it cuts counts as a whole."""
        return next((count for at, count in reversed(self.longer) if at <= bound), self.gaps)

    def over(self, tally: Tally) -> Figures:
        """The figures with the counts of a whole phase in place of those of the last minutes."""
        if not tally.seconds:
            return self
        return replace(
            self,
            preempted=_share(tally.preempted, tally.finished),
            finished=tally.finished / tally.seconds,
            tokens=None if tally.tokens is None else tally.tokens / tally.seconds,
            errors=None if tally.failing is None else tally.failing.part,
            ended=tally.ended,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What replicas counted since a phase began. Rates would look back further, to when the load was shared in another way."""

    finished: float = 0.0
    preempted: float | None = 0.0
    """None, as for the next two: it was not counted for all that finished, so their share is not known."""
    errors: float | None = 0.0
    tokens: float | None = 0.0
    seconds: float = 0.0
    """Of all replicas together."""
    until: float | None = None
    """Of the newest sample that is counted."""

    @property
    def ended(self) -> float:
        """Requests that ended, well or not."""
        return self.finished + (self.errors or 0.0)

    @property
    def failing(self) -> Share | None:
        """How many of those that ended failed; None: not said, or none ended."""
        return Share(self.errors, self.ended) if self.errors is not None and self.ended >= 1 else None

    def plus(self, window: Window, signals: Signals | None) -> Tally:
        """The tally with what these replicas have counted since its newest sample."""
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
    """Samples that hold every counter which any sample of the track holds.

    A sample for which one question had no answer is passed over, as the next one counts on. A counter that is no longer exported is
    missing once no sample in the window holds it.
    """
    said = [name for name in COUNTED if any(getattr(sample, name) is not None for sample in track.samples)]
    whole = [sample for sample in track.samples if all(getattr(sample, name) is not None for name in said)]
    return whole or track.samples


def _before(samples: Sequence[PodSample], until: float) -> PodSample:
    """The newest sample that was counted already; the first one, for a replica that has come since."""
    return next((sample for sample in reversed(samples) if sample.at <= until), samples[0])


def _more(counted: float | None, last: float | None, base: float | None) -> float | None:
    return None if counted is None or last is None or base is None else counted + max(0.0, last - base)


def _share(counted: float | None, ended: float) -> float | None:
    return counted / ended if counted is not None and ended >= 1 else None


NOTHING: Final = Tally()
UNSEEN: Final = Window()


def figures_of(signals: Signals, slo: Slo, window: Window = UNSEEN, *, since: float = -inf) -> Figures:
    """The figures of what signals say. How many wait is the mean of the samples in `window` since a moment."""
    count, latencies = len(signals.replicas), signals.latencies
    finished, tokens = signals.rate("finished"), signals.rate("generation_tokens")
    # Over the minutes that latencies look back, as failures are rare and the more requests there are the more they say.
    counted = Tally(until=signals.at - LATENCY_S).plus(window, signals)
    failing = counted.failing or _failing(signals)
    ttft, itl, e2e = _trusted(latencies.ttft), _trusted(latencies.itl), _trusted(latencies.e2e)
    return Figures(
        preempted=signals.preempted_share,
        finished=None if finished is None or not count else finished / count,
        tokens=None if tokens is None or not count else tokens / count,
        errors=None if failing is None else failing.part,
        ended=None if failing is None else failing.of,
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


def _failing(signals: Signals) -> Share | None:
    errors = signals.sum("errors")
    ended = (signals.sum("finished") or 0.0) + (errors or 0.0)
    return Share(errors, ended) if errors is not None and ended else None


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
    # One request more than so many standard deviations: of a few requests chance hardly ever makes more than that late.
    late = 0.01 + CHANCE * sqrt(0.99 * 0.01 / spread.samples) + 1 / spread.samples
    return spread.shape.quantile(max(0.0, 1 - late))


def _kept(latencies: Latencies, slo: Slo) -> float | None:
    promised = ((latencies.ttft, slo.ttft_p99_s), (latencies.itl, slo.itl_p99_s))
    late = [_late(spread, limit) for spread, limit in promised if spread is not None and limit is not None]
    said = [share for share in late if share is not None]
    return max(0.0, 1 - sum(said)) if said else None


def _late(spread: Spread, limit: float) -> float | None:
    """Share that is surely beyond the limit: a bucket that the limit cuts is not counted, as nobody knows which part of it is."""
    shape = spread.shape
    if shape is None or not shape.count:
        return None
    place = min(bisect_left(shape.bounds, limit), len(shape.counts) - 1)
    return 1 - shape.counts[place] / shape.count
