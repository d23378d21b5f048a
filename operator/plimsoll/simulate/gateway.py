"""A gateway that holds requests while no replica is ready, and gives the signal that wakes the deployment.

It stands only in front of a deployment that may sleep; anywhere else a request that meets no ready replica is refused. It holds any
number of requests, and hands them on in their order as fast as the replicas' queues take them, so that none of them is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request

TRIES_S: Final = 1.0
"""Between two tries where no queue has room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Scaling to no replica, as the resource asks for it."""

    after_s: float
    queried: bool
    """Whether the signal is a query over the gateway's metrics; else it is the annotation that the gateway writes."""


class Gateway:
    def __init__(self) -> None:
        self.held: deque[Request] = deque()
        self.written = 0
        """How often the annotation was written: each time that a request is held and none was before."""
        self.spans: list[tuple[float, float]] = []
        """From when to when it held any request; without an end while it still does."""
        self.next_at = inf
        """When it next tries to hand on requests for which no queue had room."""
        self._waits: list[float] = []

    def hold(self, request: Request) -> None:
        if not self.held:
            self.written += 1
            self.spans.append((request.arrival, inf))
        self.held.append(request)

    def hand_on(self, pick: Callable[[float], Engine | None], now: float) -> int:
        """Hand requests to the replicas that are picked while their queues have room. Returns how many were refused there all the same."""
        refused = 0
        self.next_at = inf
        while self.held:
            engine = pick(now)
            if engine is None:
                return refused
            if not engine.has_room(now):
                self.next_at = now + TRIES_S
                return refused
            request = self.held.popleft()
            self._waits.append(now - request.arrival)
            refused += not engine.submit(request, now)
        if self.spans and self.spans[-1][1] == inf:
            self.spans[-1] = self.spans[-1][0], now
        return refused

    def waits(self, end: float) -> Iterator[float]:
        """How long each request had to wait, in seconds; those that are still held have waited until the end."""
        yield from self._waits
        for request in self.held:
            yield max(0.0, end - request.arrival)
