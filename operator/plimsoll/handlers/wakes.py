"""Which deployment is to be looked at, and when: one turn of one key at a time, wakes in between make one more.

A wake carries nothing but the key, as every turn starts from what is there. A turn that fails is tried again later and
later; one that asks for another look gets it. How many run at once is bounded, since each may plan.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from plimsoll.handlers.ending import TURNS_SECONDS, ended
from plimsoll.kube.errors import KubeError, Refused

LOG: Final = logging.getLogger(__name__)
FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 300.0
LONGEST_WITHOUT_ANSWER: Final = 30.0
"""An API server that was away for minutes must not be waited for as long again once it is back."""
AT_ONCE: Final = 16
LONGER: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Seconds that turns are told apart by: a look that finds nothing to do takes one millisecond, a plan a tenth of a second."""


@dataclass(slots=True)
class _Key:
    running: bool = False
    again: bool = False
    queued: bool = False
    failures: int = 0
    due: float | None = None
    """When a timer wakes it; only the earliest counts."""


@dataclass(slots=True)
class Counts:
    """What the operator's own metrics and its liveness read."""

    turns: int = 0
    failed: int = 0
    seconds: float = 0.0
    running: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    """By reason: the API server's status, how it did not answer, or Bug."""
    took: list[int] = field(default_factory=lambda: [0] * (len(LONGER) + 1))
    """Turns that took up to each of LONGER and more than the one before, and those that took longer than all."""


def _reason(error: Exception) -> str:
    """In a word of which there are few."""
    if isinstance(error, Refused):
        return str(error.status)
    return type(error).__name__ if isinstance(error, KubeError) else "Bug"


class Wakes:
    """`turn` does the work of one key and may answer in how many seconds to look again."""

    def __init__(
        self,
        turn: Callable[[str], Awaitable[float | None]],
        *,
        at_once: int = AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turn = turn
        self._at_once = at_once
        self._clock = clock
        self._keys: dict[str, _Key] = {}
        self._ready: deque[str] = deque()
        self._timers: list[tuple[float, int, str]] = []
        self._order = count()
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = Counts()

    @property
    def waiting(self) -> int:
        """Keys that a turn is due for."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        return not self._ready and not self._tasks

    def __len__(self) -> int:
        """Keys of which anything is remembered."""
        return len(self._keys)

    def wake(self, key: str) -> None:
        """Something about it may have changed."""
        state = self._keys.setdefault(key, _Key())
        if state.running:
            state.again = True
        elif not state.queued:
            state.queued = True
            self._ready.append(key)
            self._news.set()

    def wake_in(self, key: str, seconds: float) -> None:
        """Look again later, unless an earlier look is planned already."""
        state = self._keys.setdefault(key, _Key())
        due = asyncio.get_running_loop().time() + seconds
        if state.due is None or due < state.due:
            state.due = due
            heapq.heappush(self._timers, (due, next(self._order), key))
            self._news.set()

    async def run(self) -> None:
        """Until cancelled; turns that run then are finished, those of them that can be soon."""
        try:
            while True:
                self._news.clear()
                wait = self._fire()
                while self._ready and len(self._tasks) < self._at_once:
                    self._start(self._ready.popleft())
                if self._ready:
                    wait = None  # a turn that ends makes news
                try:
                    # Not by wait_for, which forgets that it was cancelled where a wake comes at the same time.
                    async with asyncio.timeout(wait):
                        await self._news.wait()
                except TimeoutError:
                    continue
        finally:
            if self._tasks:
                _, late = await asyncio.wait(set(self._tasks), timeout=TURNS_SECONDS)
                for task in late:
                    LOG.warning("%s is cut off: it did not end within %.0f s", task.get_name(), TURNS_SECONDS)
                    await ended(task)

    def _fire(self) -> float | None:
        """Wake the keys whose time has come; how long until the next one."""
        now = asyncio.get_running_loop().time()
        while self._timers:
            due, _, key = self._timers[0]
            state = self._keys.get(key)
            if state is None or state.due != due:  # nothing was left to do, or another timer was earlier
                heapq.heappop(self._timers)
                continue
            if due > now:
                return due - now
            heapq.heappop(self._timers)
            state.due = None
            self.wake(key)
        return None

    def _start(self, key: str) -> None:
        state = self._keys[key]
        state.queued, state.running, state.again = False, True, False
        task = asyncio.create_task(self._work(key, state), name=f"turn of {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, key: str, state: _Key) -> None:
        began = self.counts.running[key] = self._clock()
        try:
            again = await self._turn(key)
        except Exception as error:
            self.counts.failed += 1
            self.counts.failures[_reason(error)] += 1
            state.failures += 1
            passes = isinstance(error, KubeError) and error.passes
            longest = LONGEST_WITHOUT_ANSWER if passes else LONGEST_BACKOFF
            again = min(longest, FIRST_BACKOFF * 2 ** min(state.failures - 1, 16))
            # What the API server answers is told in a line; anything else is a mistake of ours to be found.
            LOG.error(  # noqa: TRY400
                "turn of %s failed, tried again in %.0f s: %s", key, again, error,
                exc_info=not isinstance(error, KubeError), extra={"deployment": key},
            )  # fmt: skip
        else:
            state.failures = 0
        finally:
            del self.counts.running[key]
            self.counts.turns += 1
            took = self._clock() - began
            self.counts.seconds += took
            self.counts.took[bisect_left(LONGER, took)] += 1
            state.running = False
            self._news.set()
        if state.again:
            # Not at once after a failure: what woke it may be what fails.
            if state.failures:
                self.wake_in(key, again or FIRST_BACKOFF)
            else:
                self.wake(key)
        elif again is not None:
            self.wake_in(key, again)
        elif state.due is None:
            # Nothing is to be done about it, as when it is gone: it is not remembered for ever.
            del self._keys[key]
