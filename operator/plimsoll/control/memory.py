"""What must outlive a tick, and a restart: how long something has been so, what was learned, what was tried.

Plain frozen values of bounded size (a few kilobytes a deployment), written and read by `planning.codec`. An empty memory is
a safe one: it knows no start-up times and lets nothing go before a whole window has been seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.control.curve import NOTHING, Points
from plimsoll.control.prompts import NOTHING_SEEN, StepMemory
from plimsoll.control.situation import ServingSet

STARTS_KEPT: Final = 20
WISHES_KEPT: Final = 64
FAILS: Final = " fails"
"""After the name of a set that is left alone since its replicas failed, and not since they found no GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadMemory:
    """Arrivals: their level and trend, the same time of the days before, and how far forecasts were off."""

    at: float | None = None
    level: float = 0.0
    trend: float = 0.0
    """Change of the level a second."""
    burstiness: float = 1.0
    """Variance of the arrivals of half a minute over that of independent ones; at least 1."""
    stepped_at: float | None = None
    """Since when the last half minute has had more arrivals than chance and burstiness explain; None: it has not."""
    slot: int | None = None
    """The part of a day that is under way, counted since the epoch."""
    slot_sum: float = 0.0
    slot_seen: int = 0
    """Looks in that part, and the sum of their arrivals a second."""
    profile: tuple[float | None, ...] = ()
    """Arrivals a second by part of a day, the days before weighed together; empty before the first part is over."""
    parts_seen: int = 0
    """Parts of days that went into the profile."""
    expected: tuple[tuple[float, float, float], ...] = ()
    """Forecasts that are not due yet: when, what, and the most that had been seen by then."""
    surprise: float | None = None
    """By which factor arrivals pass their forecast in one case of ten; None: not learned yet."""
    record: float | None = None
    """By which factor they pass the most that had been seen, likewise."""
    most: float = 0.0
    """The most arrivals a second of the last hours; older ones count less."""
    rush: float = 0.0
    """The same in half a minute."""

    def unwatched(self) -> LoadMemory:
        """After a time in which nobody saw what arrives: the load from before says nothing about now, and forecasts for that time cannot be
        judged."""
        return replace(self, at=None, level=0.0, trend=0.0, stepped_at=None, expected=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Of one set: what its replicas carry."""

    concurrency: float | None = None
    """Requests in flight of a replica at which the limits hold; None: as planned."""
    points: Points = NOTHING
    """Seconds that a request takes, by how many are in flight."""
    steps: StepMemory = NOTHING_SEEN
    most: float | None = None
    """Requests a second that a replica finishes while others wait for it, which is the most that it can; None: never seen."""


NOTHING_LEARNT: Final = Learnt()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A set whose replicas could not be placed, or failed for long: nothing more is asked of it for a while."""

    until: float
    retry_s: float

    @property
    def since(self) -> float:
        return self.until - self.retry_s


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
    """When replicas last came or went, or a queue was last there: latencies from before that belong to another state."""
    ready: int | None = None
    """As of the last tick."""
    since: float | None = None
    """Since when so many have been ready."""
    owing_since: float | None = None
    """Since when requests wait."""
    wanted: float | None = None
    """At the last tick."""
    wishes: tuple[tuple[float, float], ...] = ()
    """When how much was wanted, oldest and largest first. A wish is dropped once a later one is as large."""
    up_at: float | None = None
    down_at: float | None = None
    regrets: float = 0.0
    """Steps down that were soon taken back, as counted at the last of them; older ones count less."""
    regretted_at: float | None = None
    """When the last of them was."""
    starts: tuple[float, ...] = ()
    """Start-up times in seconds, newest last."""
    started_until: float = 0.0
    """Starts up to that moment have been learned from."""
    load: LoadMemory = LoadMemory()
    learnt: Mapping[str, Learnt] = field(default_factory=dict)
    """By digest of a set's entry in the plan; by the set's name where an older release wrote it."""
    learnt_at: float | None = None
    blocked: Mapping[str, Blocked] = field(default_factory=dict)
    """By set; where its replicas failed, by the set and FAILS, which an older release passes over."""
    unmade_since: Mapping[str, float] = field(default_factory=dict)
    """By set, where there are several: since when some of its replicas cannot be made."""
    missing_since: float | None = None
    """Since when the load has not decided: metrics are missing, or a person paused it or set the number."""
    zero_at: float | None = None
    """When the last replica was let go."""
    woken_at: float | None = None

    def learnt_of(self, each: ServingSet) -> Learnt:
        return self.learnt.get(each.known_by) or self.learnt.get(each.name) or NOTHING_LEARNT

    def looked_before(self, now: float, jump_s: float) -> bool:
        """Whether the last look was one tick or a few ago; False at the first look, after a jump of the clock and after a long absence."""
        return self.seen is not None and 0 <= now - self.seen <= jump_s

    def wish(self, now: float, wanted: float, window_s: float) -> RoleMemory:
        """With one more wish. Wishes older than the window, and those that are no larger than this one, are forgotten.

        A wish of a single tick starts no replica, so it keeps none either: the smaller of the last two wishes is what counts.
        """
        lasting = wanted if self.wanted is None else min(wanted, self.wanted)
        kept = [(at, size) for at, size in self.wishes if at > now - window_s and size > lasting]
        kept.append((now, lasting))
        while len(kept) > WISHES_KEPT:
            # Of the two oldest the larger stays, with the later time: rather should a step down wait too long than come too soon.
            kept[:2] = [(kept[1][0], kept[0][1])]
        return replace(self, wishes=tuple(kept), wanted=wanted)

    def regrets_at(self, now: float, fades_s: float) -> float:
        """Steps down that were soon taken back, and are not forgotten yet."""
        if self.regretted_at is None:
            return 0.0
        return self.regrets * math.exp(-max(0.0, now - self.regretted_at) / fades_s)

    @property
    def most_wished(self) -> float:
        return self.wishes[0][1] if self.wishes else 0.0

    def unasked(self, now: float) -> RoleMemory:
        """The memory at a tick in which the load does not decide."""
        since = now if self.missing_since is None else self.missing_since
        return replace(self, over_since=None, missing_since=since)

    def blinded(self, now: float) -> RoleMemory:
        """The memory after a time that nobody watched.

        Nobody knows whether fewer replicas would have done in it, or whether what was so before it went on: both begin anew, and what was wished
        stays so until a whole window has asked for less.
        """
        return replace(
            self,
            begun=now,
            over_since=None,
            slow_since=None,
            owing_since=None,
            wanted=None,
            wishes=((now, self.most_wished),) if self.wishes else (),
            load=self.load.unwatched(),
        )

    def jumped(self, now: float) -> RoleMemory:
        """After a jump of the clock: what was learned stays, what was timed begins anew."""
        blinded = self.blinded(now)
        return replace(
            blinded,
            changed=now,
            since=now,
            up_at=None if self.up_at is None else now,
            down_at=None if self.down_at is None else now,
            regretted_at=None if self.regretted_at is None else now,
            blocked={
                name: replace(each, until=min(each.until, now + each.retry_s))
                for name, each in self.blocked.items()
            },
            unmade_since={},
            started_until=now,
            missing_since=None,
            learnt_at=None,
            zero_at=None if self.zero_at is None else min(self.zero_at, now),
            woken_at=None if self.woken_at is None else now,
            load=replace(blinded.load, slot=None, slot_sum=0.0, slot_seen=0),
        )


NOTHING_KNOWN: Final = RoleMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Of one deployment."""

    roles: Mapping[str, RoleMemory] = field(default_factory=dict)

    def of(self, role: str) -> RoleMemory:
        return self.roles.get(role, NOTHING_KNOWN)
