"""Sends requests when they are due, and hands their answers to the tally.

In an open loop a request is sent when it is due, whatever became of those before it. So a server that stalls cannot slow down the load that is
to show the stall (an error of measurement that is known as coordinated omission). Nothing here knows HTTP: `prepare` makes a request ready
before it is due, and returns what sends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Final

from plimsoll.load.answers import Answer, Outcome
from plimsoll.load.tally import Tally
from plimsoll.load.workload import Ask

Send = Callable[[float | None], Awaitable[Answer]]
"""Sends a request. It takes the time at which the request was due, or None where that is when it is sent."""
Prepare = Callable[[Ask], Send]

_TICK_S: Final = 0.05
_TICKS_SHOWN: Final = 5
_REFUSED_PAUSE_S: Final = 0.5
"""How long a user in a closed loop waits after a failed request. Without a pause a dead server would get thousands of requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a run ends, whichever comes first."""

    seconds: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    """Seconds at the start in which requests are sent but not measured."""
    drain_s: float = 60.0
    """How long answers are waited for after the last request was sent."""
    in_flight: int = 4096
    """Requests that an open loop has in flight at most. Those that would exceed it are counted as not sent."""


async def drive(
    prepare: Prepare,
    asks: Iterator[Ask],
    limits: Limits,
    tally: Tally,
    *,
    start: float,
    concurrency: int | None,
    stop: asyncio.Event,
    watch: Callable[[], None] | None = None,
) -> None:
    """Runs a closed loop where `concurrency` is given, else an open one. `stop` ends it at once, and what was seen until then counts."""
    deadline = None if limits.seconds is None else start + limits.seconds
    ticker = asyncio.create_task(_tick(tally, watch))
    try:
        async with asyncio.TaskGroup() as group:
            run = _Run(prepare, asks, limits, tally, group, stop, start, deadline)
            if concurrency is None:
                await run.open_loop()
                ends: float | None = asyncio.get_running_loop().time() + limits.drain_s
            else:
                for _ in range(concurrency):
                    run.fly(run.user())
                ends = None if deadline is None else deadline + limits.drain_s
            await _drained(run, ends)
            run.end()
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    finally:
        ticker.cancel()
        if watch is not None:
            watch()


@dataclass(slots=True)
class _Run:
    prepare: Prepare
    asks: Iterator[Ask]
    limits: Limits
    tally: Tally
    group: asyncio.TaskGroup
    stop: asyncio.Event
    start: float
    deadline: float | None
    flying: set[asyncio.Task[None]] = field(default_factory=set)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0
    over: bool = False

    def __post_init__(self) -> None:
        self.idle.set()

    def fly(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self.group.create_task(coroutine)
        self.flying.add(task)
        self.idle.clear()
        task.add_done_callback(self._landed)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self.flying.discard(task)
        if not self.flying:
            self.idle.set()

    def end(self) -> None:
        """Ends all requests that are in flight at once, as unfinished."""
        self.over = True
        for task in self.flying:
            task.cancel()

    async def open_loop(self) -> None:
        while (ask := self._next()) is not None:
            due = self.start + (ask.at or 0.0)
            if self.deadline is not None and due >= self.deadline:
                await _sleep_until(self.deadline, self.stop)
                return
            send = self.prepare(ask)
            await _sleep_until(due, self.stop)
            if self.stop.is_set():
                return
            if self.tally.in_flight >= self.limits.in_flight:
                self.tally.not_sent += due >= self.tally.since
                continue
            self.tally.begin()
            self.fly(self._one(send, due))

    async def user(self) -> None:
        """One user of a closed loop."""
        loop = asyncio.get_running_loop()
        while not (self.over or self.stop.is_set()):
            if self.deadline is not None and loop.time() >= self.deadline:
                return
            ask = self._next()
            if ask is None:
                return
            send = self.prepare(ask)
            self.tally.begin()
            answer = await send(None)
            self.tally.add(answer)
            if answer.outcome not in (Outcome.OK, Outcome.UNFINISHED):
                await asyncio.sleep(_REFUSED_PAUSE_S)

    async def _one(self, send: Send, due: float) -> None:
        self.tally.add(await send(due))

    def _next(self) -> Ask | None:
        if self.limits.requests is not None and self.begun >= self.limits.requests:
            return None
        self.begun += 1
        return next(self.asks, None)


async def _sleep_until(when: float, stop: asyncio.Event) -> None:
    """Sleeps until then, or until the run is stopped. Even when that time is past, it lets other tasks run."""
    left = when - asyncio.get_running_loop().time()
    if left <= 0:
        await asyncio.sleep(0)
        return
    try:
        async with asyncio.timeout(left):
            await stop.wait()
    except TimeoutError:
        pass


async def _drained(run: _Run, ends: float | None) -> None:
    """Waits until all requests are answered, the time for that is up, or the run is stopped."""
    left = None if ends is None else max(0.0, ends - asyncio.get_running_loop().time())
    waits = [asyncio.create_task(run.idle.wait()), asyncio.create_task(run.stop.wait())]
    try:
        await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _tick(tally: Tally, watch: Callable[[], None] | None) -> None:
    """Measures how late the event loop is, and calls `watch` now and then."""
    loop = asyncio.get_running_loop()
    ticks = 0
    while True:
        before = loop.time()
        await asyncio.sleep(_TICK_S)
        tally.lag.add(max(0.0, loop.time() - before - _TICK_S))
        ticks += 1
        if watch is not None and ticks % _TICKS_SHOWN == 0:
            watch()
