"""One measurement from beginning to end: ask the endpoint what it is, send the load, sum up the answers.

A `Session` keeps what is known of the endpoint, so that the steps of a ramp share it; `bench` is a session with one measurement.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import aiohttp

from plimsoll.load.client import Client, Endpoint, Known, connected
from plimsoll.load.drive import Limits, Send, drive
from plimsoll.load.problems import Stopped
from plimsoll.load.prompts import ASSUMED, Prompts
from plimsoll.load.result import Result
from plimsoll.load.slo import Slo
from plimsoll.load.tally import About, Tally
from plimsoll.load.workload import Ask, ClosedLoop, Workload, asks

Watch = Callable[[Tally, float], None]
"""Called a few times a second with what is counted so far, and the time."""
Connector = Callable[[], aiohttp.BaseConnector]

T = TypeVar("T")

LAG_SHARE: Final = 0.1
"""The client's own lateness is noted where it is above this share of the median gap."""
TOKENS_PER_EVENT: Final = 1.05
"""Tokens for each event above which gaps between events and between tokens are told apart."""
MOST_UNSEEN: Final = 0.01
"""Share of requests without a first token above which a note says so."""


@dataclass(frozen=True, slots=True)
class Session:
    """An endpoint, and what it said of itself."""

    client: Client
    known: Known
    prompts: Prompts

    async def measure(
        self,
        workload: Workload,
        limits: Limits,
        *,
        slo: Slo | None,
        stop: asyncio.Event,
        watch: Watch | None = None,
    ) -> Result:
        loop = asyncio.get_running_loop()
        start = loop.time()
        until = math.inf if limits.seconds is None else start + limits.seconds
        tally = Tally(start=start, warmup=limits.warmup_s, until=until, slo=slo)
        clipped = _Clipped(self.known.context_tokens)
        pattern = workload.pattern
        with asks(workload) as wanted:
            await drive(
                self._prepare,
                clipped.fitting(wanted),
                limits,
                tally,
                start=start,
                concurrency=pattern.concurrency if isinstance(pattern, ClosedLoop) else None,
                stop=stop,
                watch=None if watch is None else lambda: watch(tally, loop.time()),
            )
        about = About(
            url=self.client.endpoint.url, model=self.known.model, pattern=str(pattern), seed=workload.seed
        )
        result = tally.result(about, now=loop.time(), interrupted=stop.is_set())
        return replace(result, notes=(*_notes(result, tally, self.known), *clipped.notes()))

    def _prepare(self, ask: Ask) -> Send:
        prompt = self.prompts.text(ask)
        return lambda due: self.client.ask(self.known, ask, prompt, due)


@asynccontextmanager
async def session(
    endpoint: Endpoint,
    seed: int,
    *,
    salt: int = 0,
    connector: Connector | None = None,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[Session]:
    """A session with an endpoint. Raises EndpointError where it does not answer, and Stopped where `stop` comes before it does. For `salt` see
    Prompts."""
    async with connected(endpoint, connector) as client:
        prompts = Prompts(seed, ASSUMED, salt=salt)
        known = await unless(stop or asyncio.Event(), client.get_acquainted(prompts))
        prompts.calibration = known.calibration
        yield Session(client, known, prompts)


async def unless(stop: asyncio.Event, work: Coroutine[None, None, T]) -> T:
    """What comes of the work, which is given up where it is stopped first: an endpoint that sleeps or is full answers late."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Stopped
        return working.result()
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def bench(
    endpoint: Endpoint,
    workload: Workload,
    limits: Limits,
    *,
    slo: Slo | None = None,
    stop: asyncio.Event | None = None,
    watch: Watch | None = None,
    salt: int = 0,
    connector: Connector | None = None,
) -> Result:
    """A session with one measurement."""
    stop = stop or asyncio.Event()
    async with session(endpoint, workload.seed, salt=salt, connector=connector, stop=stop) as opened:
        return await opened.measure(workload, limits, slo=slo, stop=stop, watch=watch)


class _Clipped:
    """Cuts requests to what the endpoint takes, and counts how many were cut."""

    def __init__(self, context: int | None) -> None:
        self._context = context
        self._cut = 0

    def fitting(self, wanted: Iterator[Ask]) -> Iterator[Ask]:
        # Words are not exactly tokens, so 1% of the context, and at least 8 tokens, are left free.
        room = math.inf if self._context is None else max(2, self._context - max(8, self._context // 100))
        for ask in wanted:
            if ask.input_tokens + ask.output_tokens <= room:
                yield ask
                continue
            self._cut += 1
            output = min(ask.output_tokens, max(1, int(room) // 2))
            yield replace(ask, input_tokens=max(1, int(room) - output), output_tokens=output)

    def notes(self) -> Iterator[str]:
        if self._cut:
            yield f"{self._cut} requests were longer than the {self._context:,} tokens that the server takes, and were cut"


def _notes(result: Result, tally: Tally, known: Known) -> Iterator[str]:
    """What a reader has to know to read the figures right."""
    counts, lengths = result.counts, result.lengths
    if not counts.sent:
        yield "no request was due in the measured time"
    if not known.calibration.measured:
        yield "the server does not count prompt tokens: a word was taken for 1.33 tokens, and prompts may be off by half"
    if not known.counts_tokens:
        yield "the server does not count output tokens: a token is an event that held text"
    if not known.keeps_lengths:
        yield "the server refuses ignore_eos: answers may end before the tokens that were asked for"
    if lengths.tokens_per_event is not None and lengths.tokens_per_event > TOKENS_PER_EVENT:
        yield (
            f"{lengths.tokens_per_event:g} tokens came with each event: ITL is the gap between events, TPOT between tokens"
        )
    if counts.unfinished:
        hung = (
            f"; {tally.silent} of them had said nothing for up to {tally.silence_s:.0f} s"
            if tally.silent
            else ""
        )
        yield f"{counts.unfinished} requests were still being answered at the end; what they showed until then counts{hung}"
    if counts.not_sent:
        yield f"{counts.not_sent} requests were due and not sent: more were in flight than this client holds"
    if counts.bad and result.ttft_ms is not None and result.ttft_ms.count < (1 - MOST_UNSEEN) * counts.sent:
        unseen = counts.sent - result.ttft_ms.count
        yield f"{unseen} of {counts.sent} requests never saw a first token; percentiles are of those that did"
    if result.lag_ms and result.itl_ms and result.lag_ms.p95 > max(1.0, LAG_SHARE * result.itl_ms.p50):
        yield "this client's own clock was late by a good part of what it measured (see its lag): smaller differences are its own"
