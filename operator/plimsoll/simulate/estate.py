"""The replicas of one deployment as a cluster keeps them: made, placed, started, drained, crashed, and what they cost.

Told a number, it does what a Deployment's controller and the scheduler do; everything with a time goes on one agenda.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Final

from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.world import World

STARTING: Final = (ReplicaState.STARTING, ReplicaState.NODE_COMING, ReplicaState.UNSCHEDULABLE)


@dataclass(slots=True, eq=False)
class Instance:
    """One replica, with its engine."""

    name: str
    ordinal: int
    engine: Engine
    state: ReplicaState
    created: float
    since: float
    scheduled: float | None = None
    on_new_node: bool = False

    def seen(self) -> Replica:
        return Replica(
            id=self.name, state=self.state, since=self.since, created=self.created, scheduled=self.scheduled
        )


@dataclass(slots=True)
class Estate:
    world: World
    histograms: bool = True
    """Whether anybody reads those of the engines."""
    told: int = 0
    instances: list[Instance] = field(default_factory=list)
    ready: list[Instance] = field(default_factory=list)
    engines: list[Engine] = field(default_factory=list)
    """Every one that ever ran, for the final figures."""
    retired: list[Engine] = field(default_factory=list)
    """Those that ended since the owner last looked: their last answers are still in them."""
    lost: list[Request] = field(default_factory=list)
    """Requests that a crash or an end of patience took, since the owner last looked."""
    device_seconds: float = 0.0
    version: int = 0
    """Changes with every change of the ready replicas, so that routers know."""
    _agenda: list[tuple[float, int, str, Instance]] = field(default_factory=list)
    _ordinals: int = 0
    _entries: int = 0

    @property
    def present(self) -> list[Instance]:
        return [one for one in self.instances if one.state is not ReplicaState.LEAVING]

    @property
    def next_at(self) -> float:
        return self._agenda[0][0] if self._agenda else inf

    def begin(self, replicas: int) -> None:
        """Replicas that are there when the story begins."""
        self.told = replicas
        for _ in range(replicas):
            instance = self._make(0.0)
            instance.scheduled = 0.0
            self._become_ready(instance, 0.0)

    def tell(self, replicas: int, now: float) -> None:
        self.told = replicas
        present = self.present
        for _ in range(replicas - len(present)):
            self._make(now)
        if replicas < len(present):
            # As a controller chooses: what does not serve yet first, then the youngest.
            ranked = sorted(present, key=lambda one: (one.state in STARTING, one.ordinal), reverse=True)
            for instance in ranked[: len(present) - replicas]:
                self._let_go(instance, now)
        self._place(now)

    def happen(self, now: float) -> None:
        """Everything that is due."""
        while self._agenda and self._agenda[0][0] <= now:
            at, _, what, instance = heappop(self._agenda)
            if instance in self.instances:
                self._do(what, instance, at)

    def sweep(self, now: float) -> None:
        """Replicas that have drained go; engines are to be advanced to now before."""
        for instance in [one for one in self.instances if one.state is ReplicaState.LEAVING]:
            if not instance.engine.in_flight:
                self._end(instance, now)

    def close(self, now: float) -> None:
        """The story ends: what still has devices is counted to now."""
        for instance in self.instances:
            self._charge(instance, now)

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
            instance.engine = self._engine()
            self.ready.remove(instance)
            self.version += 1
            instance.state, instance.since = ReplicaState.STARTING, at
            self._later(at + self.world.start_s(instance.ordinal + 7919), "ready", instance)

    def _later(self, at: float, what: str, instance: Instance) -> None:
        self._entries += 1
        heappush(self._agenda, (at, self._entries, what, instance))

    # Lives of replicas

    def _make(self, now: float) -> Instance:
        instance = Instance(
            name=f"replica-{self._ordinals:04d}",
            ordinal=self._ordinals,
            engine=self._engine(),
            state=ReplicaState.UNSCHEDULABLE,
            created=now,
            since=now,
        )
        self._ordinals += 1
        self.instances.append(instance)
        return instance

    def _engine(self) -> Engine:
        engine = Engine(self.world.times, self.world.limits, histograms=self.histograms)
        self.engines.append(engine)
        return engine

    def _retire(self, engine: Engine) -> None:
        self.lost += engine.requests
        self.retired.append(engine)

    def _place(self, now: float) -> None:
        """Waiting replicas get what is free, else a node that is made for them, else wait on."""
        hardware = self.world.hardware
        placed = sum(1 for one in self.instances if one.scheduled is not None and not one.on_new_node)
        made = sum(1 for one in self.instances if one.on_new_node)
        for instance in self.instances:
            if instance.state is not ReplicaState.UNSCHEDULABLE:
                continue
            if placed < hardware.ready:
                placed += 1
                self._start(instance, now)
            elif made < hardware.growing:
                made += 1
                instance.on_new_node = True
                instance.state, instance.since = ReplicaState.NODE_COMING, now
                self._later(now + self.world.node_s(instance.ordinal), "node", instance)

    def _start(self, instance: Instance, now: float) -> None:
        instance.scheduled = now
        instance.state, instance.since = ReplicaState.STARTING, now
        self._later(now + self.world.start_s(instance.ordinal), "ready", instance)

    def _become_ready(self, instance: Instance, now: float) -> None:
        instance.state, instance.since = ReplicaState.READY, now
        instance.engine.now = max(instance.engine.now, now)
        self.ready.append(instance)
        self.version += 1
        rate = self.world.crashes_per_replica_day / 86400
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

    def _charge(self, instance: Instance, now: float) -> None:
        if instance.scheduled is not None:
            self.device_seconds += (now - instance.scheduled) * self.world.hardware.devices
