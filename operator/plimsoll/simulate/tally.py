"""What came of it: who was served within the limits, what it cost, what was done; and the timelines of a report."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.control.situation import Slo
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.meters import ITL, Histogram
from plimsoll.simulate.request import Request
from plimsoll.simulate.world import SCRAPE_S, START_P90_S

POINTS: Final = 600
"""Of a timeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    at: float
    before: int
    after: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of the timelines."""

    at: float
    told: int
    ready: int
    starting: int
    leaving: int
    kv: float
    """Mean share of the pools in use."""
    kv_most: float
    running: int
    waiting: int
    arrivals_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The outcome of one policy in one world."""

    requests: int
    slo_pct: float | None
    """Share that was answered with a first token and a mean gap within the limits; None where no limit is declared."""
    failed: int
    """Refused by a full queue, lost, or without any replica."""
    unanswered: int
    """Still under way when the story ended."""
    gpu_hours: float
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    """Of those answered."""
    itl_p99_ms: float | None
    longest_stall_ms: float
    preemptions_per_1000: float
    actions: int
    actions_per_day: float
    reversals: int
    """Changes of direction within two start-up times."""
    reversals_per_day: float
    replicas_mean: float
    replicas_most: int
    minutes_over_slo: int
    """Minutes in which less than 99% of those who arrived were served within the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    figures: Figures
    points: tuple[Point, ...]
    served: tuple[tuple[float, float], ...]
    """By time: the share of those who arrived then that was served within the limits."""
    actions: tuple[Action, ...]


@dataclass(slots=True)
class Tally:
    slo: Slo
    span_s: float
    actions: list[Action] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    failed: int = 0
    requests: int = 0
    met: int = 0
    ttfts: array[float] = field(default_factory=lambda: array("d"))
    preemptions: int = 0
    replicas_most: int = 0
    _arrived: list[int] = field(default_factory=list)
    _good: list[int] = field(default_factory=list)
    _every: float = 0.0
    _next_point: float = 0.0
    _replica_seconds: float = 0.0

    def __post_init__(self) -> None:
        minutes = int(self.span_s // 60) + 1
        self._arrived, self._good = [0] * minutes, [0] * minutes
        self._every = max(SCRAPE_S, round(self.span_s / POINTS / SCRAPE_S) * SCRAPE_S)

    def arrivals(self, at: Sequence[float]) -> None:
        self.requests = len(at)
        for moment in at:
            self._arrived[int(moment // 60)] += 1

    def answered(self, finished: list[Request]) -> None:
        """Takes them over and empties the list."""
        ttft_most = self.slo.ttft_p99_s if self.slo.ttft_p99_s is not None else 1e18
        gap_most = self.slo.itl_p99_s if self.slo.itl_p99_s is not None else 1e18
        ttfts, good = self.ttfts, self._good
        for request in finished:
            first = request.first_at
            ttft = first - request.arrival
            ttfts.append(ttft)
            if (
                ttft <= ttft_most
                and request.finished_at - first <= gap_most * (request.output_tokens - 1) + 1e-9
            ):
                self.met += 1
                good[int(request.arrival // 60)] += 1
        finished.clear()

    def look(self, estate: Estate, now: float) -> None:
        """At every scrape, with engines advanced to now."""
        present = len(estate.present)
        self._replica_seconds += present * SCRAPE_S
        self.replicas_most = max(self.replicas_most, present)
        if now < self._next_point:
            return
        self._next_point = now + self._every
        engines = [one.engine for one in estate.ready]
        leaving = len(estate.instances) - present
        minute, minutes = int(now // 60), max(1, round(self._every / 60))
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
                waiting=sum(engine.queued for engine in engines),
                arrivals_per_s=sum(recent) / (60 * len(recent)),
            )
        )

    def outcome(self, estate: Estate) -> Outcome:
        itl = Histogram(ITL)
        for engine in estate.engines:
            itl.merge(engine.itl)
        answered = len(self.ttfts)
        ordered = sorted(self.ttfts)
        days = self.span_s / 86400
        asked = self.slo.ttft_p99_s is not None or self.slo.itl_p99_s is not None
        reversals = sum(
            (one.after > one.before) != (other.after > other.before) and other.at - one.at <= 2 * START_P90_S
            for one, other in zip(self.actions, self.actions[1:], strict=False)
        )
        gap = itl.quantile(0.99)
        over = sum(good < 0.99 * arrived for good, arrived in zip(self._good, self._arrived, strict=True))
        figures = Figures(
            requests=self.requests,
            slo_pct=100 * self.met / self.requests if asked and self.requests else None,
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
            minutes_over_slo=over if asked else 0,
        )
        return Outcome(
            figures=figures, points=tuple(self.points), served=self._served(), actions=tuple(self.actions)
        )

    def _served(self) -> tuple[tuple[float, float], ...]:
        each = max(1, -(-len(self._arrived) // POINTS))
        rows = []
        for begin in range(0, len(self._arrived), each):
            arrived = sum(self._arrived[begin : begin + each])
            if arrived:
                rows.append((begin * 60.0, sum(self._good[begin : begin + each]) / arrived))
        return tuple(rows)


def _of(ordered: Sequence[float], share: float) -> float | None:
    if not ordered:
        return None
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
