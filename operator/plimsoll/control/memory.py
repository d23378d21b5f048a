"""What must outlive a tick, and a restart: how long something has been so, what was learned, what was tried.

Plain frozen values of bounded size (a few kilobytes a deployment), written and read by `planning.codec`. An empty memory is
a safe one: it knows no start-up times and lets nothing go before a whole window has been seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STARTS_KEPT: Final = 20
WISHES_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Arrivals of one part of a day."""

    at: int
    """Number of the slot since the epoch."""
    rate: float
    """Mean of the arrivals a second that were seen in it."""
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadMemory:
    """Arrivals: their level and trend, and the days before."""

    at: float | None = None
    level: float = 0.0
    trend: float = 0.0
    """Change of the level a second."""
    slots: tuple[Slot, ...] = ()
    expected: tuple[tuple[float, float], ...] = ()
    """Forecasts that are not due yet: when, and what."""
    surprise: float | None = None
    """By which factor arrivals pass their forecast in one case of ten; None: not learned yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Of one set: what its replicas carry."""

    concurrency: float | None = None
    """Requests in flight of a replica at which the limits hold; None: as planned."""
    rate: float | None = None
    """Requests a second of a replica at that load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleMemory:
    begun: float | None = None
    """When this memory began; None: it is empty."""
    seen: float | None = None
    """The last tick."""
    over_since: float | None = None
    """Since when more was wanted than there is."""
    slow_since: float | None = None
    """Since when a latency limit has been passed."""
    changed: float | None = None
    """When the number of ready replicas last changed."""
    ready: int = 0
    """As of the last tick."""
    wishes: tuple[tuple[float, float], ...] = ()
    """When and how much was wanted: those that nothing larger came after, oldest and largest first."""
    up_at: float | None = None
    down_at: float | None = None
    starts: tuple[float, ...] = ()
    """Start-up times in seconds, newest last."""
    started_until: float = 0.0
    """Replicas that came to be ready until then are learned from."""
    load: LoadMemory = LoadMemory()
    learnt: Mapping[str, Learnt] = field(default_factory=dict)
    """By set."""
    blocked_until: float | None = None
    """No more is asked for until then: what was asked for could not be placed."""
    retry_s: float | None = None
    missing_since: float | None = None
    """Since when metrics are missing."""
    zero_at: float | None = None
    woken_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Of one deployment."""

    roles: Mapping[str, RoleMemory] = field(default_factory=dict)

    def of(self, role: str) -> RoleMemory:
        return self.roles.get(role, RoleMemory())
