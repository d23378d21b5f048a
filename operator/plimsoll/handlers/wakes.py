"""Decides when each deployment has a turn: at most one turn of a key runs at a time, and wakes during a turn lead to one more.

A wake is nothing but the key, as every turn starts from what is there. A turn that fails is repeated after longer and longer times. How many
turns run at once is bounded, since each may make a plan.
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
"""The longest time before a turn is repeated that failed for the API server, so that turns go on soon after the server is back."""
AT_ONCE: Final = 16
LONGER: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Bounds of the histogram of turns' seconds: a turn that finds nothing to do takes a millisecond, one that plans a tenth of a second."""


@dataclass(slots=True)
class _Key:
    running: bool = False
    again: bool = False
    queued: bool = False
    failures: int = 0
    due: float | None = None
    """When a timer wakes the key. Of several timers only the earliest counts."""


@dataclass(slots=True)
class TurnCounts:
    """Counts for the operator's own metrics and for its liveness probe."""

    turns: int = 0
    seconds: float = 0.0
    running: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    """Failed turns by reason: a status of the API server, the name of another of its errors, or Bug."""
    took: list[int] = field(default_factory=lambda: [0] * (len(LONGER) + 1))
    """Turns by how long they took: between two bounds of LONGER each, and at last those beyond all bounds."""


FAILURES: Final = (
    "403",
    "404",
    "409",
    "422",
    "429",
    "500",
    "503",
    "504",
    "Bug",
    "NotLeading",
    "Silent",
    "Unreachable",
)
"""What turns fail of, but for statuses that are seldom: they are counted from 0 on, so that the first of each is seen as it is counted."""


def _reason(error: Exception) -> str:
    """A word for an error, of which there are few, as it is a label of a metric."""
    if isinstance(error, Refused):
        return str(error.status)
    return type(error).__name__ if isinstance(error, KubeError) else "Bug"


class Wakes:
    """`turn` does the work of a key. It may return in how many seconds the key is to have another turn."""

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
        self.counts = TurnCounts()

    @property
    def waiting(self) -> int:
        """How many keys wait for a turn that is due."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        return not self._ready and not self._tasks

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._keys)

    def wake(self, key: str) -> None:
        """Gives a key a turn, as something about it may have changed."""
        state = self._keys.setdefault(key, _Key())
        if state.running:
            state.again = True
        elif not state.queued:
            state.queued = True
            self._ready.append(key)
            self._news.set()

    def wake_in(self, key: str, seconds: float) -> None:
        """Gives a key a turn later, unless an earlier one is planned already."""
        state = self._keys.setdefault(key, _Key())
        due = asyncio.get_running_loop().time() + seconds
        if state.due is None or due < state.due:
            state.due = due
            heapq.heappush(self._timers, (due, next(self._order), key))
            self._news.set()

    async def run(self) -> None:
        """Runs until cancelled. Turns that run then are given a little time to finish."""
        try:
            while True:
                self._news.clear()
                wait = self._fire()
                while self._ready and len(self._tasks) < self._at_once:
                    self._start(self._ready.popleft())
                if self._ready:
                    wait = None  # as many turns run as may, and the end of one sets the event
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
        """Wakes the keys whose time has come. Returns how long it is until the next one's."""
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
            self.counts.failures[_reason(error)] += 1
            state.failures += 1
            passes = isinstance(error, KubeError) and error.passes
            longest = LONGEST_WITHOUT_ANSWER if passes else LONGEST_BACKOFF
            again = min(longest, FIRST_BACKOFF * 2 ** min(state.failures - 1, 16))
            # An answer of the API server is logged in a line, anything else with its stack, as it is a bug of ours.
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
            # Not at once after a failure, as what woke it may be what makes it fail.
            if state.failures:
                self.wake_in(key, again or FIRST_BACKOFF)
            else:
                self.wake(key)
        elif again is not None:
            self.wake_in(key, again)
        elif state.due is None:
            # Nothing more is to be done about it, as when the resource is gone, so it is forgotten.
            del self._keys[key]
