"""Counts while a story runs how far the limits are kept, what it costs and what is done, and sums it up as an `outcome`.

A limit is kept as the resource promises it and as the operator sees it: by 99 of 100 requests for first tokens, by 99 of 100
gaps of all answers together for what follows. So at least 99% here means that both 99th percentiles are within their limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.control.record import Act
from plimsoll.control.situation import Slo
from plimsoll.facts.spans import DAY_S
from plimsoll.simulate.causes import Causes, Late
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.estate import Estate, Instance
from plimsoll.simulate.gateway import Gateway
from plimsoll.simulate.latencies import Latencies
from plimsoll.simulate.meters import ITL, Histogram
from plimsoll.simulate.outcome import Action, Figures, OfSet, Outcome, Point, Sleep
from plimsoll.simulate.request import Request
from plimsoll.simulate.spending import Spending
from plimsoll.simulate.world import SCRAPE_S, START_P90_S

POINTS: Final = 600
"""Of a timeline."""


@dataclass(slots=True)
class Tally:
    slo: Slo
    span_s: float
    actions: list[Action] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    failed: int = 0
    requests: int = 0
    met: int = 0
    spending: Spending = field(default_factory=Spending)
    latencies: Latencies = field(init=False)
    preemptions: int = 0
    replicas_most: int = 0
    _arrived: list[int] = field(default_factory=list)
    _good: list[int] = field(default_factory=list)
    _gaps: list[float] = field(default_factory=list)
    _short: list[float] = field(default_factory=list)
    """By minute: all gaps, and those within the limit."""
    causes: Causes = field(init=False)
    _counted: dict[Engine, tuple[float, float]] = field(default_factory=dict)
    """Gaps, and those within the limit, of each engine at the last look."""
    _present: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    """Where there are several sets: pairs of seconds, and how many replicas of each set were there for so long."""
    _ready: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    """By time, how many of each were ready."""
    _every: float = 0.0
    _next_point: float = 0.0
    _replica_seconds: float = 0.0

    def __post_init__(self) -> None:
        minutes = int(self.span_s // 60) + 1
        self._arrived, self._good = [0] * minutes, [0] * minutes
        self._gaps, self._short = [0.0] * minutes, [0.0] * minutes
        self.causes = Causes(minutes)
        self.latencies = Latencies(minutes, served_every(minutes))
        self._every = max(SCRAPE_S, round(self.span_s / POINTS / SCRAPE_S) * SCRAPE_S)

    def arrivals(
        self, at: Sequence[float], inputs: Sequence[int], *, refused_from: int, late_from: int
    ) -> None:
        """Note all arrivals. Prompts of `refused_from` tokens and more are refused by all replicas, those of `late_from` late at best."""
        self.requests = len(at)
        for moment in at:
            self._arrived[int(moment // 60)] += 1
        self.causes.arrivals(at, inputs, refused_from=refused_from, late_from=late_from)

    def answered(self, finished: list[Request]) -> None:
        """Count these requests, and empty the list."""
        ttft_most = self.slo.ttft_p99_s if self.slo.ttft_p99_s is not None else 1e18
        note, good = self.latencies.answered, self._good
        for request in finished:
            ttft, minute = request.first_at - request.arrival, int(request.arrival // 60)
            note(minute, ttft)
            if ttft <= ttft_most:
                self.met += 1
                good[minute] += 1
        finished.clear()

    def look(self, estate: Estate, now: float, *, held: int = 0) -> None:
        """Note how the estate stands, at every scrape, and how many requests a gateway holds in front of it. Engines have to be advanced to now
        before."""
        present, passes = len(estate.present), max(0.0, min(SCRAPE_S, self.span_s - now))
        self._replica_seconds += present * passes
        self.spending.look(estate, passes)
        self.replicas_most = max(self.replicas_most, present)
        minute = self._minute(now)
        self.causes.look(estate, minute)
        several = len(estate.sites) > 1
        if several:
            self._present.append((passes, _by_set(estate, estate.present)))
        if now + SCRAPE_S > self.span_s or self.latencies.ends(minute, self._minute(now + SCRAPE_S)):
            self.latencies.look(estate, minute)
        if self.slo.itl_p99_s is not None:
            self._look_at_gaps(estate, now, self.slo.itl_p99_s)
        if now < self._next_point:
            return
        self._next_point = now + self._every
        if several:
            self._ready.append((now, _by_set(estate, estate.ready)))
        engines = [one.engine for one in estate.ready]
        leaving = len(estate.instances) - present
        minute, minutes = int(now // 60), arrivals_over(self._every)
        recent = self._arrived[max(0, minute - minutes) : max(1, minute)]
        kvs = [engine.kv_fraction for engine in engines]
        self.points.append(
            Point(
                at=now,
                told=estate.told,
                ready=len(engines),
                starting=present - len(engines),
                leaving=leaving,
                kv=sum(kvs) / len(kvs) if kvs else 0.0,
                kv_most=max(kvs, default=0.0),
                running=sum(len(engine.running) for engine in engines),
                waiting=held + sum(engine.queued for engine in engines),
                arrivals_per_s=sum(recent) / min(60 * len(recent), self.span_s),
            )
        )

    def _minute(self, now: float) -> int:
        """Number of the minute that ends with this look, or is under way."""
        return min(int(max(0.0, now - SCRAPE_S) // 60), len(self._gaps) - 1)

    def _look_at_gaps(self, estate: Estate, now: float, limit: float) -> None:
        """Count the gaps since the last look. Those that an engine counted between its last look and its end are in no minute, though they are
        in the figures."""
        minute, counted = self._minute(now), {}
        for engine in (one.engine for one in estate.instances):
            seen = float(engine.itl.count), engine.itl.within(limit)
            before = self._counted.get(engine, (0.0, 0.0))
            counted[engine] = seen
            self._gaps[minute] += seen[0] - before[0]
            self._short[minute] += seen[1] - before[1]
        self._counted = counted

    def outcome(self, estate: Estate, gateway: Gateway | None = None) -> Outcome:
        itl = Histogram(ITL)
        for engine in estate.engines:
            itl.merge(engine.itl)
        ordered = self.latencies.ordered()
        answered = len(ordered)
        days = self.span_s / DAY_S
        asked = self.slo.ttft_p99_s is not None or self.slo.itl_p99_s is not None
        reversals = sum(
            (one.after > one.before) != (other.after > other.before) and other.at - one.at <= 2 * START_P90_S
            for one, other in zip(self.actions, self.actions[1:], strict=False)
        )
        gap = itl.quantile(0.99)
        late = self._late() if asked else ()
        figures = Figures(
            requests=self.requests,
            slo_pct=100 * self._attained(itl) if asked and self.requests else None,
            failed=self.failed,
            unanswered=self.requests - answered - self.failed,
            gpu_hours=estate.device_seconds / 3600,
            ttft_p50_ms=_of(ordered, 0.50),
            ttft_p99_ms=_of(ordered, 0.99),
            itl_p99_ms=None if gap is None else 1000 * gap,
            longest_stall_ms=1000 * max((one.longest_stall for one in estate.engines), default=0.0),
            preemptions_per_1000=1000 * sum(one.preemptions for one in estate.engines) / max(1, answered),
            actions=len(self.actions),
            actions_per_day=len(self.actions) / days,
            reversals=reversals,
            reversals_per_day=reversals / days,
            replicas_mean=self._replica_seconds / self.span_s,
            replicas_most=self.replicas_most,
            minutes_over_slo=len(late) if asked else None,
        )
        return Outcome(
            figures=figures,
            points=tuple(self.points),
            served=self._served() if asked else (),
            latencies=self.latencies.points(),
            actions=tuple(self.actions),
            late=late,
            sleep=None if gateway is None else self._slept(estate, gateway),
            sets=tuple(self._of_set(estate, site) for site in range(len(estate.sites)))
            if len(estate.sites) > 1
            else (),
            acts=tuple(self.acts),
            spent=self.spending.spent(figures.gpu_hours),
        )

    def _of_set(self, estate: Estate, site: int) -> OfSet:
        return OfSet(
            gpu_hours=estate.seconds_each[site] / 3600,
            replicas_mean=sum(seconds * each[site] for seconds, each in self._present) / self.span_s,
            replicas_most=max((each[site] for _, each in self._present), default=0),
            answered=sum(engine.finished_count for engine in estate.engines_each[site]),
            ready=tuple((at, each[site]) for at, each in self._ready),
        )

    def _slept(self, estate: Estate, gateway: Gateway) -> Sleep:
        waits = sorted(gateway.waits(self.span_s))
        hours = sum(until - since for since, until in estate.asleep) / 3600
        return Sleep(
            times=len(estate.asleep),
            hours=hours,
            gpu_hours_saved=hours * estate.world.hardware.devices,
            waited=len(waits),
            wait_p50_s=_at(waits, 0.50),
            wait_p99_s=_at(waits, 0.99),
            wait_most_s=waits[-1] if waits else None,
            asleep=tuple(estate.asleep),
            held=tuple((since, min(until, self.span_s)) for since, until in gateway.spans),
        )

    def _served(self) -> tuple[tuple[float, float], ...]:
        each = served_every(len(self._arrived))
        begins = range(0, len(self._arrived), each)
        kept = ((60.0 * begin, self._kept(begin, begin + each)) for begin in begins)
        return tuple((at, share) for at, share in kept if share is not None)

    def _late(self) -> tuple[Late, ...]:
        kept = ((minute, self._kept(minute, minute + 1)) for minute in range(len(self._arrived)))
        return tuple(
            self.causes.late(
                minute,
                good=self._good[minute],
                arrived=self._arrived[minute],
                smooth=self._short[minute] >= 0.99 * self._gaps[minute],
            )
            for minute, share in kept
            if share is not None and share < 0.99
        )

    def _kept(self, begin: int, end: int) -> float | None:
        """The share within the limits over some minutes; None where no request came."""
        arrived, gaps = sum(self._arrived[begin:end]), sum(self._gaps[begin:end])
        if not arrived:
            return None
        first = sum(self._good[begin:end]) / arrived
        return first if not gaps else min(first, sum(self._short[begin:end]) / gaps)

    def _attained(self, gaps: Histogram) -> float:
        first, limit = self.met / self.requests, self.slo.itl_p99_s
        return first if limit is None or not gaps.count else min(first, gaps.within(limit) / gaps.count)


def arrivals_over(every_s: float) -> int:
    """Of how many minutes each point's arrivals are the mean, where points are so far apart."""
    return max(1, round(every_s / 60))


def served_every(minutes: int) -> int:
    """How many minutes each share in `served` is of, when so many are replayed."""
    return max(1, -(-minutes // POINTS))


def _by_set(estate: Estate, instances: Iterable[Instance]) -> tuple[int, ...]:
    found = [0] * len(estate.sites)
    for one in instances:
        found[one.site] += 1
    return tuple(found)


def _of(ordered: Sequence[float], share: float) -> float | None:
    """A quantile of seconds, in milliseconds."""
    found = _at(ordered, share)
    return None if found is None else 1000 * found


def _at(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
