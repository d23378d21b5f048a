"""One stand-in engine in real time: a moment of the clock is a moment of the engine model, and tokens come when steps end.

Whoever listens to an answer keeps the engine's clock going; without listeners it is moved when somebody looks. What the
engine is told and how it speaks HTTP are others' (`told`, `api`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from enum import StrEnum

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.interference import Standstills
from plimsoll.simulate.request import Request
from standin.series import Beside, Page
from standin.told import Told

Clock = Callable[[], float]
_IDLE_S = 0.01
_MOMENT_S = 1e-6
"""The step that begins right now has begun."""


class State(StrEnum):
    STARTING = "starting"
    """Nobody listens on its port yet."""
    SERVING = "serving"
    DRAINING = "draining"
    """Answers what runs and aborts what comes."""
    HUNG = "hung"
    """Healthy by its own word, and no token moves."""
    DEAD = "dead"


class Refused(Exception):
    """A request that is not queued: the engine's queue is full, or it goes down."""


class Died(Exception):
    """The engine ended while it answered."""


class Aborted(Exception):
    """The engine is told to end, and finishes what runs where it is."""


class _Listener:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.told = 0
        self.news: asyncio.Queue[tuple[int, float] | Exception] = asyncio.Queue()
        """Tokens so far and when they are there, or how it ends."""


class Instance:
    def __init__(
        self, told: Told, *, clock: Clock | None = None, wall: Clock = time.time, state: State = State.SERVING
    ) -> None:
        """`clock` is the running event loop's where none is given; `wall` says when the process began."""
        self.told = told
        self.state = state
        self.engine = Engine(told.times, told.limits)
        self._clock: Clock = clock or asyncio.get_running_loop().time
        self._wall = wall
        self._begin = self._clock()
        self._standstills = Standstills(told.interference)
        self._stood = 0.0
        """How long the machine has done something else while this engine had work: its own time stood still."""
        self._started = wall()
        self._beside = Beside()
        self._facts, self._labels = told.facts, told.cache_labels()
        self._listeners: dict[Request, _Listener] = {}
        self._pace: asyncio.Task[None] | None = None

    # Its life

    def restart(self, told: Told | None = None) -> None:
        """A new process in its place: counters begin anew, the cache is empty."""
        self.die()
        self.told = told or self.told
        self.engine = Engine(self.told.times, self.told.limits)
        self._begin, self._started, self._stood = self._clock(), self._wall(), 0.0
        self._beside = Beside()
        self._facts, self._labels = self.told.facts, self.told.cache_labels()
        self.state = State.SERVING

    def die(self) -> None:
        """Everything in it is lost."""
        self.engine.crash()
        self.state = State.DEAD
        self._end(Died("the engine died"))

    def hang(self) -> None:
        self.look()
        self.state = State.HUNG

    def drain(self) -> None:
        """Told to end: what runs may finish, what comes is aborted. Who told it decides when patience ends."""
        self.state = State.DRAINING

    def abort(self) -> None:
        """What runs and what waits ends where it is; what is there by now is told first."""
        self.look()
        self._tell_all(self.engine.now)
        for request in self.engine.requests:
            self.engine.abort(request)
            self._beside.success["abort"] += 1
        self._end(Aborted("the engine is shutting down"))

    async def close(self) -> None:
        """No task is left of it."""
        self.die()
        if self._pace is not None:
            self._pace.cancel()
            await asyncio.gather(self._pace, return_exceptions=True)

    # What is asked of it

    def submit(
        self, input_tokens: int, output_tokens: int, prefix: Sequence[int] = (), *, at: float | None = None
    ) -> Request | None:
        """One request, that nobody listens to; None where it is refused. `at` is a moment of its own time."""
        if input_tokens >= self.told.limits.max_model_len:
            return None  # no matter of the queue, which alone is counted
        if at is None and self.state is not State.HUNG:
            self._advance()
        moment = self.now if at is None else at
        request = Request(moment, input_tokens, output_tokens, prefix)
        # One that hangs takes what comes into its queue, and no step.
        if self.engine.submit(request, self.engine.now if self.state is State.HUNG else moment):
            return request
        self._beside.refused["max_num_queued_reqs"] += 1
        return None

    async def answer(
        self, input_tokens: int, output_tokens: int, prefix: Sequence[int] = ()
    ) -> AsyncGenerator[int, None]:
        """How many tokens of the answer there are, whenever there are more. A client that goes away aborts it."""
        if self.state is State.DRAINING:
            self._beside.success["abort"] += 1
            raise Aborted("the engine is shutting down")
        request = self.submit(input_tokens, output_tokens, prefix)
        if request is None:
            raise Refused("too many requests are queued")
        listener = self._listeners[request] = _Listener(request)
        self._keep_pace()
        there = 0
        try:
            while there < request.output_tokens:
                news = await listener.news.get()
                if isinstance(news, Exception):
                    raise news
                there, at = news
                await asyncio.sleep(max(0.0, at - self.now))
                yield there
        finally:
            if self._listeners.pop(request, None) is not None:
                self.engine.abort(request)
                self._beside.success["abort"] += 1

    @property
    def now(self) -> float:
        """Seconds of its life."""
        return self._clock() - self._begin - self._stood

    @property
    def busy(self) -> int:
        return self.engine.in_flight

    def look(self) -> None:
        """Everything that has happened by now."""
        if self.state in (State.SERVING, State.DRAINING):
            self._advance()
        self._count()

    def metrics(self) -> str:
        self.look()
        told = self.told
        return Page(self.engine, self._beside, self._facts, told.model, self._labels, self._started).text()

    # Its own clock

    def _advance(self) -> None:
        before = self.engine.now
        self.engine.advance(self.now + _MOMENT_S)
        self._stood += self._standstills.during(self.engine.now - before)

    def _count(self) -> None:
        engine = self.engine
        for request in engine.finished:
            self._beside.finish(request, "length")
        engine.finished.clear()
        self._beside.look(engine)

    def _end(self, how: Exception) -> None:
        for listener in self._listeners.values():
            listener.news.put_nowait(how)
        self._listeners.clear()

    def _keep_pace(self) -> None:
        if self._pace is None or self._pace.done():
            self._pace = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._listeners:
            looked = self.now
            self.look()
            at = self.engine.now
            self._tell_all(at)
            # The next step begins where the last one ended. An engine that is not ahead of the clock has nothing to do.
            await asyncio.sleep(max(0.0, at - self.now) if at >= looked else _IDLE_S)

    def _tell_all(self, at: float) -> None:
        for listener in list(self._listeners.values()):
            self._tell(listener, at)

    def _tell(self, listener: _Listener, at: float) -> None:
        request = listener.request
        there = self.engine.tokens(request)
        if there > listener.told:
            listener.told = there
            listener.news.put_nowait((there, at + request.outside))
        if there >= request.output_tokens:
            del self._listeners[request]
