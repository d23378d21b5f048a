"""Which replica a request reaches: a Service, which chooses for each connection, or an InferencePool, which chooses for each request.

A Service takes any ready replica by chance. Where connections are kept, a new replica fills only as clients connect anew; where engines close
them after each answer, it gets its share at once. An InferencePool takes the replica with the fewest in flight, as of a moment ago.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Final, Protocol

from plimsoll.simulate.estate import Estate, Instance

LOOK_S: Final = 0.25
"""How old the picker's knowledge of other replicas may be."""


class Routing(StrEnum):
    SERVICE = "service"
    POOL = "inferencepool"


class Router(Protocol):
    def pick(self, now: float) -> Instance | None:
        """None where no replica is ready."""
        ...


class Service:
    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        world = estate.world
        self._random = Random(f"clients {world.seed}")  # noqa: S311 - repeatable by its seed
        self._connections = world.clients.connections
        self._lifetime = world.clients.lifetime_s
        self._closed = world.clients.closed
        self._to: list[Instance | None] = [None] * self._connections
        self._until = [0.0] * self._connections
        self._version = -1
        self._ready: frozenset[int] = frozenset()

    def pick(self, now: float) -> Instance | None:
        estate, random = self._estate, self._random
        ready = estate.ready
        if not ready:
            return None
        if self._closed:
            return ready[int(random.random() * len(ready))]
        if estate.version != self._version:
            self._version = estate.version
            self._ready = frozenset(map(id, ready))
        place = int(random.random() * self._connections)
        target = self._to[place]
        if target is None or self._until[place] <= now or id(target) not in self._ready:
            target = ready[int(random.random() * len(ready))]
            self._to[place] = target
            self._until[place] = now + random.expovariate(1 / self._lifetime)
        return target


class InferencePool:
    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._looked = -1.0
        self._turn = 0

    def pick(self, now: float) -> Instance | None:
        ready = self._estate.ready
        if not ready:
            return None
        if now - self._looked >= LOOK_S:
            self._looked = now
            for instance in ready:
                instance.engine.advance(now)
        # Among equals each in turn, so that an idle estate is not all on its first replica.
        self._turn += 1
        best, fewest = ready[0], -1
        for place in range(len(ready)):
            instance = ready[(place + self._turn) % len(ready)]
            load = instance.engine.in_flight
            if fewest < 0 or load < fewest:
                best, fewest = instance, load
        return best


def router_of(routing: Routing, estate: Estate) -> Router:
    return Service(estate) if routing is Routing.SERVICE else InferencePool(estate)
