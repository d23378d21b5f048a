"""What came of a simulation: figures, timelines, and what was done. Plain values, which reports tell; they are counted in `tally`."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.record import Act
from plimsoll.simulate.causes import Late
from plimsoll.simulate.latencies import Latency
from plimsoll.simulate.spending import Spent


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
    """In the queues of replicas, and held in front of them."""
    arrivals_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The outcome of one policy in one world."""

    requests: int
    slo_pct: float | None
    """The smaller of two shares: of requests whose first token came in time (one that never came is late), and of gaps between tokens within
    their limit. None where no limit is declared."""
    failed: int
    """Requests that were refused by a full queue, lost in a crash, or met no replica."""
    unanswered: int
    """Still under way when the story ended."""
    gpu_hours: float
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    """Of those answered."""
    itl_p99_ms: float | None
    longest_stall_ms: float
    """The longest that an answer under way stood still because its request was preempted; 0 where none was."""
    preemptions_per_1000: float
    actions: int
    actions_per_day: float
    reversals: int
    """Changes of direction within two start-up times."""
    reversals_per_day: float
    replicas_mean: float
    replicas_most: int
    minutes_over_slo: int | None
    """Minutes in which less than 99% of those who arrived, or of the gaps, were within the limits. None where no limit is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """How long a deployment that may sleep was asleep, and who waited for it to wake."""

    times: int
    hours: float
    """Hours without any replica that was asked for or still there."""
    gpu_hours_saved: float
    """GPU-hours that one replica would have taken in that time."""
    waited: int
    """Requests that met no ready replica; their wait is part of their time to the first token."""
    wait_p50_s: float | None
    wait_p99_s: float | None
    wait_most_s: float | None
    asleep: tuple[tuple[float, float], ...]
    """From when to when it slept."""
    held: tuple[tuple[float, float], ...]
    """From when to when requests waited for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSet:
    """The figures of one set, where there are several."""

    gpu_hours: float
    replicas_mean: float
    replicas_most: int
    answered: int
    ready: tuple[tuple[float, int], ...]
    """By time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    figures: Figures
    points: tuple[Point, ...]
    served: tuple[tuple[float, float], ...]
    """By time: which share of the requests that arrived then, or of the gaps then, was within the limits; the smaller of the two. Of times in
    which nobody came there is none, and none at all where no limit is declared."""
    actions: tuple[Action, ...]
    latencies: tuple[Latency, ...] = ()
    """By time, of as many minutes together as `served`."""
    late: tuple[Late, ...] = ()
    sleep: Sleep | None = None
    """None where it may not."""
    sets: tuple[OfSet, ...] = ()
    """In the order of the plan, where it has several."""
    acts: tuple[Act, ...] = ()
    """What was done about engines' settings."""
    spent: Spent | None = None
    """None of policies that say nothing of what the load asks for, and where there are several sets."""
