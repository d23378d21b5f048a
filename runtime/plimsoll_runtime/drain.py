"""When an engine that is to end may be told so. A function of times and readings.

An engine that is told to end refuses or aborts what reaches it, so it is told when nobody waits for an answer any more, or when
what is left of the grace is only enough for it to end by itself.
"""

from __future__ import annotations

from enum import Enum

from plimsoll_runtime.readings import Reading

QUIET_SECONDS = 1.0
"""Endpoints forget a pod a moment after it is told: a request may still be on its way when nothing runs."""
MOST_ROOM = 10.0
"""For the engine's own end: it tears down workers, which takes seconds."""


class Step(Enum):
    WAIT = "wait"
    STOP = "stop"
    KILL = "kill"


class Drain:
    def __init__(self, now: float, grace: float) -> None:
        self._began, self._grace = now, grace
        self._quiet_since: float | None = None

    @property
    def room(self) -> float:
        return min(MOST_ROOM, self._grace / 3)

    @property
    def kill_at(self) -> float:
        """Before the kubelet does, so that what is to be said is said."""
        return self._began + self._grace - min(1.0, self._grace / 10)

    def step(self, now: float, reading: Reading | None, *, answers: bool) -> Step:
        """`answers`: whether the engine takes requests at all; `reading`: its last word, None where it gives none."""
        if now >= self.kill_at:
            return Step.KILL
        if not answers or now >= self._began + self._grace - self.room:
            return Step.STOP
        if reading is None or reading.idle is None:
            # Nothing to judge by: the engine's own way of ending is the best there is.
            return Step.STOP if now >= self._began + 3 * QUIET_SECONDS else Step.WAIT
        if not reading.idle:
            self._quiet_since = None
            return Step.WAIT
        if self._quiet_since is None:
            self._quiet_since = now
        return Step.STOP if now - self._quiet_since >= QUIET_SECONDS else Step.WAIT

    def follow(self, now: float, *, leader_there: bool) -> Step:
        """For a member that answers nobody itself: without it the leader's answers would be cut, so it goes last."""
        if now >= self.kill_at:
            return Step.KILL
        return Step.WAIT if leader_there and now < self._began + self._grace - self.room / 2 else Step.STOP
