"""Whoever holds requests while no replica is ready, and says so to whoever may wake the deployment.

Only in front of a deployment that may sleep: anywhere else a request that meets no ready replica is refused. It holds without a
limit, and hands on in the order they came, as fast as the queues of the replicas take them: who was held is not refused.
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
    """By a query over the gateway's metrics; else by the annotation that the holder of the requests writes."""


class Gateway:
    def __init__(self) -> None:
        self.held: deque[Request] = deque()
        self.written = 0
        """Times that the annotation was written: whenever one is held and none was before."""
        self.spans: list[tuple[float, float]] = []
        """When it held any: from the first that came to the last that was handed on."""
        self.next_at = inf
        """When it tries again what no queue had room for."""
        self._waits: list[float] = []

    def hold(self, request: Request) -> None:
        if not self.held:
            self.written += 1
            self.spans.append((request.arrival, inf))
        self.held.append(request)

    def hand_on(self, pick: Callable[[float], Engine | None], now: float) -> int:
        """To the replicas, while one is picked whose queue has room; how many were refused there all the same."""
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
        """Seconds that each had to wait; of those still held, until the end."""
        yield from self._waits
        for request in self.held:
            yield max(0.0, end - request.arrival)
