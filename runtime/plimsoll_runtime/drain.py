"""Decides when an engine that is to end is told so, as a function of times and readings.

An engine that is told to end refuses or aborts requests. So it is told once no request is running any more, or once answers have had all the
time that they are given. Then it has a moment to end by itself.
"""

from __future__ import annotations

from enum import Enum

from plimsoll_runtime.readings import Reading

QUIET_SECONDS = 1.0
"""How long nothing must run, as requests may still be on their way for a moment after endpoints have dropped the pod."""
MOST_ROOM = 10.0
"""The most time for the engine's own end: it stops its workers, which takes seconds."""
LEAST_ROOM = 2.0
"""The least time for it, however short the grace: an engine that is killed at once leaves workers and shared memory behind."""


class Step(Enum):
    WAIT = "wait"
    STOP = "stop"
    KILL = "kill"


class Drain:
    def __init__(self, now: float, grace: float) -> None:
        self._began, self._grace = now, grace
        self._quiet_since: float | None = None

    @property
    def stop_at(self) -> float:
        return self._began + self._grace

    @property
    def kill_at(self) -> float:
        return self.stop_at + max(LEAST_ROOM, min(MOST_ROOM, self._grace / 3))

    def step(self, now: float, reading: Reading | None, *, answers: bool) -> Step:
        """What to do now. `answers`: whether the engine takes requests at all. `reading`: its newest one since it was to end; None where
        there is none, as from an engine that is too busy."""
        if now >= self.kill_at:
            return Step.KILL
        if not answers or now >= self.stop_at:
            return Step.STOP
        if reading is None:
            return Step.WAIT
        if reading.idle is None:
            # Its words say nothing of requests: its own way of ending is the best there is.
            return Step.STOP if now >= self._began + 3 * QUIET_SECONDS else Step.WAIT
        if not reading.idle:
            self._quiet_since = None
            return Step.WAIT
        if self._quiet_since is None:
            self._quiet_since = now
        return Step.STOP if now - self._quiet_since >= QUIET_SECONDS else Step.WAIT

    def follow(self, now: float, *, leader_there: bool) -> Step:
        """What a member does that answers no requests itself. The leader's answers need it, so it ends after the leader."""
        if now >= self.kill_at:
            return Step.KILL
        return Step.WAIT if leader_there and now < (self.stop_at + self.kill_at) / 2 else Step.STOP
