"""The replicas of one deployment as a cluster keeps them: made, placed, started, drained, crashed, and what they cost.

Told a number, it does what a Deployment's controller and the scheduler do; everything with a time goes on one agenda.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Final

from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.facts.spans import DAY_S
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.prefixes import PREFIX_BLOCK
from plimsoll.simulate.request import Request
from plimsoll.simulate.tuning import Try
from plimsoll.simulate.world import Site, World

STARTING: Final = (ReplicaState.STARTING, ReplicaState.NODE_COMING, ReplicaState.UNSCHEDULABLE)


@dataclass(slots=True, eq=False)
class Instance:
    """One replica, with its engine."""

    name: str
    ordinal: int
    engine: Engine
    site: int
    """Of which set it is, by its place in the plan."""
    state: ReplicaState
    created: float
    since: float
    scheduled: float | None = None
    on_new_node: bool = False
    tried: bool = False
    """It runs with a change of settings that is tried."""
    for_change: bool = False
    """It was made because settings change, and not because more replicas were asked for."""
    restarts: int = 0

    def seen(self) -> Replica:
        return Replica(
            id=self.name,
            state=self.state,
            since=self.since,
            created=self.created,
            scheduled=self.scheduled,
            restarts=self.restarts,
        )


@dataclass(slots=True)
class Estate:
    world: World
    histograms: bool = True
    """Whether anybody reads the engines' histograms."""
    prefix_tokens: int = PREFIX_BLOCK
    """What an id of a request's prefix stands for."""
    told_each: list[int] = field(init=False)
    """Replicas that are asked for, by set."""
    sites: tuple[Site, ...] = field(init=False)
    instances: list[Instance] = field(default_factory=list)
    ready: list[Instance] = field(default_factory=list)
    engines: list[Engine] = field(default_factory=list)
    """Every one that ever ran, for the final figures."""
    retired: list[Engine] = field(default_factory=list)
    """Engines that ended since the owner last looked, with answers that it has not taken yet."""
    lost: list[Request] = field(default_factory=list)
    """Requests that a crash or an end of patience took, since the owner last looked."""
    seconds_each: list[float] = field(init=False)
    """Device-seconds by set."""
    engines_each: list[list[Engine]] = field(init=False)
    asleep: list[tuple[float, float]] = field(default_factory=list)
    """From when to when no replica was asked for and none was left."""
    version: int = 0
    """Grows with every change of the ready replicas, so that routers notice it."""
    _try: Try | None = None
    """The change that is tried on some replicas of one set."""
    _asleep_since: float | None = None
    _closed: bool = False
    _agenda: list[tuple[float, int, str, Instance]] = field(default_factory=list)
    _ordinals: int = 0
    _entries: int = 0

    def __post_init__(self) -> None:
        self.sites = self.world.sites
        self.told_each = [0] * len(self.sites)
        self.seconds_each = [0.0] * len(self.sites)
        self.engines_each = [[] for _ in self.sites]

    @property
    def told(self) -> int:
        return sum(self.told_each)

    @property
    def device_seconds(self) -> float:
        return sum(self.seconds_each)

    @property
    def present(self) -> list[Instance]:
        return [one for one in self.instances if one.state is not ReplicaState.LEAVING]

    @property
    def next_at(self) -> float:
        return self._agenda[0][0] if self._agenda else inf

    def begin(self, replicas: int) -> None:
        """Replicas that are there when the story begins."""
        self.told_each = self.spread(replicas)
        for site, count in enumerate(self.told_each):
            for _ in range(count):
                instance = self._make(0.0, site)
                instance.scheduled = 0.0
                self._become_ready(instance, 0.0)

    def spread(self, replicas: int) -> list[int]:
        """So many replicas by set, where a policy does not say which set has how many. As in planning, the first set fills first, up to its
        room, and the last set shrinks first. Of several sets, none is asked for more than it has room for."""
        if len(self.sites) == 1:
            return [replicas]
        found, left = [], replicas
        for told in self.told_each:
            found.append(min(told, left))
            left -= found[-1]
        for place, site in enumerate(self.sites):
            more = max(0, min(left, site.room - found[place]))
            found[place] += more
            left -= more
        return found

    def tell(self, replicas: int, now: float) -> None:
        self.tell_each(self.spread(replicas), now)

    def tell_each(self, told: Sequence[int], now: float, *, for_change: bool = False) -> None:
        self.told_each = list(told)
        if self.told:
            self._awake(now)
        for site, count in enumerate(told):
            plain, tried = self._shared_out(site, count)
            self._tell(site, plain, now, tried=False, for_change=for_change)
            self._tell(site, tried, now, tried=True, for_change=for_change)
        self._place(now)

    def try_out(self, change: Try | None, now: float) -> None:
        """Try a change of settings on as many replicas of its set as it says; None ends the try. It is asked for at every look while it lasts,
        as replicas without the change go only once those with it have come."""
        if change is None and self._try is None:
            return
        self._try = change
        if change is not None and change.adopt:
            sites, place = list(self.sites), change.site
            sites[place] = self.world.varied(change.variant, place)
            # Where none runs with it yet, all are to go one by one, as where a change is taken back.
            new = not any(one.tried for one in self.instances if one.site == place)
            self.sites, self._try = tuple(sites), replace(change, replicas=0, adopt=False) if new else None
            for one in self.instances:
                one.tried = new and one.site == place
        self.tell_each(self.told_each, now, for_change=True)

    def _shared_out(self, site: int, whole: int) -> tuple[int, int]:
        """How many of a set's replicas are to run without the tried change, and how many with it, as the operator would ask for them."""
        change = self._try
        if change is None or change.site != site:
            return whole, 0
        extra = 1 if change.surge else 0
        if change.replicas:
            tried = min(change.replicas, whole)
            return whole - tried + min(extra, tried), tried
        # The change is taken back: replicas with it stay until others serve in their place.
        serve = sum(1 for one in self.ready if one.site == site and not one.tried)
        there = sum(1 for one in self.present if one.tried and one.state is ReplicaState.READY)
        return min(whole, serve + 1), min(there, max(0, whole - serve - 1 + extra))

    def _tell(self, site: int, count: int, now: float, *, tried: bool, for_change: bool) -> None:
        present = [one for one in self.present if one.site == site and one.tried == tried]
        for _ in range(count - len(present)):
            self._make(now, site, tried=tried, for_change=for_change)
        if count < len(present):
            # As a controller chooses: what does not serve yet first, then the youngest.
            ranked = sorted(present, key=lambda one: (one.state in STARTING, one.ordinal), reverse=True)
            for instance in ranked[: len(present) - count]:
                self._let_go(instance, now)

    def happen(self, now: float) -> None:
        """Do everything on the agenda that is due by now."""
        while self._agenda and self._agenda[0][0] <= now:
            at, _, what, instance = heappop(self._agenda)
            if instance in self.instances:
                self._do(what, instance, at)

    def sweep(self, now: float) -> None:
        """End replicas that have drained. Engines have to be advanced to now before."""
        for instance in [one for one in self.instances if one.state is ReplicaState.LEAVING]:
            if not instance.engine.in_flight:
                self._end(instance, now)

    def close(self, now: float) -> None:
        """End the accounting: devices are counted up to now and not beyond."""
        for instance in self.instances:
            self._charge(instance, now)
        self._awake(now)
        self._closed = True

    # What is on the agenda

    def _do(self, what: str, instance: Instance, at: float) -> None:
        if what == "node" and instance.state is ReplicaState.NODE_COMING:
            self._start(instance, at)
        elif what == "ready" and instance.state is ReplicaState.STARTING:
            self._become_ready(instance, at)
        elif what == "patience":
            instance.engine.advance(at)
            self._end(instance, at)
        elif what == "crash" and instance.state is ReplicaState.READY:
            instance.engine.advance(at)
            self._retire(instance.engine)
            instance.engine = self._engine(instance.site, tried=instance.tried)
            instance.restarts += 1
            self.ready.remove(instance)
            self.version += 1
            instance.state, instance.since = ReplicaState.STARTING, at
            self._later(
                at + self.world.start_s(instance.ordinal + 7919 * instance.restarts), "ready", instance
            )

    def _later(self, at: float, what: str, instance: Instance) -> None:
        self._entries += 1
        heappush(self._agenda, (at, self._entries, what, instance))

    # Lives of replicas

    def _make(self, now: float, site: int, *, tried: bool = False, for_change: bool = False) -> Instance:
        instance = Instance(
            name=f"replica-{self._ordinals:04d}",
            ordinal=self._ordinals,
            engine=self._engine(site, tried=tried),
            site=site,
            state=ReplicaState.UNSCHEDULABLE,
            created=now,
            since=now,
            tried=tried,
            for_change=for_change,
        )
        self._ordinals += 1
        self.instances.append(instance)
        return instance

    def _engine(self, site: int, *, tried: bool) -> Engine:
        kind = self.sites[site]
        if tried and self._try is not None:
            kind = self.world.varied(self._try.variant, site)
        engine = Engine(kind.times, kind.limits, histograms=self.histograms, prefix_tokens=self.prefix_tokens)
        self.engines.append(engine)
        self.engines_each[site].append(engine)
        return engine

    def _retire(self, engine: Engine) -> None:
        self.lost += engine.requests
        self.retired.append(engine)

    def _place(self, now: float) -> None:
        """Waiting replicas get what is free, else a node that is made for them, else wait on."""
        for site, kind in enumerate(self.sites):
            there = [one for one in self.instances if one.site == site]
            placed = sum(1 for one in there if one.scheduled is not None and not one.on_new_node)
            made = sum(1 for one in there if one.on_new_node)
            for instance in there:
                if instance.state is not ReplicaState.UNSCHEDULABLE:
                    continue
                if placed < kind.hardware.ready:
                    placed += 1
                    self._start(instance, now)
                elif made < kind.hardware.growing:
                    made += 1
                    instance.on_new_node = True
                    instance.state, instance.since = ReplicaState.NODE_COMING, now
                    node_s = self.world.node_s(instance.ordinal, kind.hardware)
                    self._later(now + node_s, "node", instance)

    def _start(self, instance: Instance, now: float) -> None:
        instance.scheduled = now
        instance.state, instance.since = ReplicaState.STARTING, now
        self._later(now + self.world.start_s(instance.ordinal), "ready", instance)

    def _become_ready(self, instance: Instance, now: float) -> None:
        instance.state, instance.since = ReplicaState.READY, now
        instance.engine.now = max(instance.engine.now, now)
        self.ready.append(instance)
        self.version += 1
        rate = self.world.crashes_per_replica_day / DAY_S
        if rate > 0:
            chance = Random(f"crash {self.world.seed} {instance.ordinal} {now}")  # noqa: S311 - repeatable by its seed
            self._later(now + chance.expovariate(rate), "crash", instance)

    def _let_go(self, instance: Instance, now: float) -> None:
        if instance.state is ReplicaState.READY:
            self.ready.remove(instance)
            self.version += 1
            instance.state, instance.since = ReplicaState.LEAVING, now
            self._later(now + self.world.drain_s, "patience", instance)
        else:
            self._end(instance, now)

    def _end(self, instance: Instance, now: float) -> None:
        self._charge(instance, now)
        self.instances.remove(instance)
        self._retire(instance.engine)
        self._place(now)
        if not self.told and not self.instances and not self._closed:
            self._asleep_since = now

    def _awake(self, now: float) -> None:
        if self._asleep_since is not None:
            self.asleep.append((self._asleep_since, now))
            self._asleep_since = None

    def _charge(self, instance: Instance, now: float) -> None:
        if instance.scheduled is not None and not self._closed:
            devices = self.sites[instance.site].hardware.devices
            self.seconds_each[instance.site] += (now - instance.scheduled) * devices
