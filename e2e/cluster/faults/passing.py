"""One connection of a client, with the one to the server that belongs to it: each call in turn meets its faults, then the server."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cluster.faults import http, stale
from cluster.faults.calls import Call, read_call
from cluster.faults.counts import Counts
from cluster.faults.rules import (
    Answer,
    CutWatch,
    Delay,
    ExpireWatch,
    Hang,
    LoseAnswer,
    Refuse,
    Rule,
    Rules,
    Stale,
)
from cluster.faults.stop import Stop
from cluster.faults.watches import Watch, expired_event

HEAD_LIMIT: Final = 1 << 20
POLL_SECONDS: Final = 0.02


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What all connections of one proxy have in common."""

    host: str
    port: int
    trust: ssl.SSLContext
    rules: Rules = field(default_factory=Rules)
    counts: Counts = field(default_factory=Counts)
    stop: Stop | None = None
    watches: set[Watch] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Request:
    """One, read whole."""

    head: http.Head
    body: bytes
    method: str
    call: Call


class Passing:
    """A connection; only for the proxy's thread."""

    def __init__(self, traffic: Traffic, reader: StreamReader, writer: StreamWriter) -> None:
        self._traffic = traffic
        self._reader, self._writer = reader, writer
        self._server: tuple[StreamReader, StreamWriter] | None = None

    async def run(self) -> None:
        """Until one side goes. Whatever ends one side ends the other, and that is all there is to say about it."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (request := await self._read()) and await self._one(request):
                pass
            self._leave_server()
            self._writer.close()
            await self._writer.wait_closed()
        self._leave_server()
        self._writer.transport.abort()

    async def _read(self) -> Request | None:
        head = await http.read_request(self._reader)
        if head is None:
            return None
        method, target, _ = head.first_line
        return Request(head, await http.read_body(self._reader, head), method, read_call(method, target))

    async def _one(self, request: Request) -> bool:
        """Whether another may follow on this connection."""
        with self._traffic.counts.during(request.call):
            if self._traffic.stop is not None and not self._traffic.stop.admits(request.call):
                return False
            struck = self._traffic.rules.met_by(request.call)
            for rule in struck:
                if isinstance(rule.fault, Delay):
                    await asyncio.sleep(rule.fault.seconds)
            again = await self._meet(request, struck[-1] if struck else None)
            return again and not request.head.closes

    async def _meet(self, request: Request, rule: Rule | None) -> bool:
        """The fault, and then the server if it still comes to that."""
        match rule and rule.fault:
            case Refuse():
                return False
            case Hang():
                assert rule is not None
                await self._unless_gone(_removed(rule))
                return False
            case Answer(status, retry_after):
                said = http.status_object(status, f"the test answers {status} here", retry_after)
                return await self._answer(status, http.answer(status, said, retry_after))
            case ExpireWatch():
                return await self._answer(200, http.answer(200, expired_event()))
            case CutWatch(seconds):
                return await self._watch(request, seconds)
            case LoseAnswer():
                return await self._call(request, lost=True)
            case Stale(version):
                return await self._read_at(request, version)
        if request.call.verb == "watch":
            return await self._watch(request)
        return await self._call(request)

    async def _call(self, request: Request, *, lost: bool = False) -> bool:
        answer, server = await self._ask(request)
        pieces = http.read_pieces(server, answer.length)
        stop = self._traffic.stop
        lost = lost or (stop is not None and stop.is_last(request.call) and not stop.answered)
        if lost:
            async for _ in pieces:
                pass
        else:
            self._traffic.counts.answered(answer.status)
            unsent = answer.raw  # goes with the first piece: each write is encrypted and sent by itself
            async for piece in pieces:
                self._writer.write(
                    unsent + (http.as_chunk(piece) if answer.length == http.CHUNKED else piece)
                )
                unsent = b""
                await self._writer.drain()
            self._writer.write(unsent + (http.LAST_CHUNK if answer.length == http.CHUNKED else b""))
            await self._writer.drain()
        if stop is not None:
            stop.done(request.call)
        return not (lost or answer.closes)

    async def _read_at(self, request: Request, version: str) -> bool:
        if request.call.verb == "list":
            return await self._call(replace(request, head=stale.list_at(request.head, version)))
        answer, server = await self._ask(replace(request, head=stale.one_at(request.head, version)))
        body = b"".join([piece async for piece in http.read_pieces(server, answer.length)])
        status = answer.status
        if status == 200:
            status, body = stale.only_item(body, request.call.name)
        return await self._answer(status, http.answer(status, body))

    async def _watch(self, request: Request, seconds: float | None = None) -> bool:
        answer, server = await self._ask(request)
        self._traffic.counts.answered(answer.status)
        watch = Watch(request.call, self._traffic.rules, self._writer)
        self._traffic.watches.add(watch)
        try:
            ended = await self._unless_gone(watch.pass_on(answer, server), seconds)
        finally:
            self._traffic.watches.discard(watch)
        return ended and not answer.closes

    async def _ask(self, request: Request) -> tuple[http.Head, StreamReader]:
        """The head of the server's answer, and where its body comes from."""
        if self._server is None or self._server[0].at_eof():
            self._leave_server()
            self._server = await self._opened()
        reader, writer = self._server
        writer.write(request.head.raw + request.body)
        return await http.read_answer(reader, method=request.method), reader

    async def _opened(self) -> tuple[StreamReader, StreamWriter]:
        """A connection to the server. One that is cancelled in its handshake would stay open, so it is opened to its end, and left then."""
        at = self._traffic
        opening = asyncio.ensure_future(
            asyncio.open_connection(at.host, at.port, ssl=at.trust, limit=HEAD_LIMIT)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_left)
            raise

    async def _answer(self, status: int, answer: bytes) -> bool:
        self._traffic.counts.answered(status)
        self._writer.write(answer)
        await self._writer.drain()
        return True

    async def _unless_gone(self, work: Coroutine[Any, Any, None], seconds: float | None = None) -> bool:
        """Whether it came to its end; not when the client goes away before, or when time is up."""
        working = asyncio.ensure_future(work)
        going = asyncio.ensure_future(self._reader.read(1))
        try:
            done, _ = await asyncio.wait(
                {working, going}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if working in done:
                working.result()
            return working in done and going not in done
        finally:
            for one in (working, going):
                one.cancel()
            await asyncio.gather(working, going, return_exceptions=True)

    def _leave_server(self) -> None:
        if self._server is not None:
            self._server[1].transport.abort()
            self._server = None


def _left(opening: asyncio.Future[tuple[StreamReader, StreamWriter]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[1].transport.abort()


async def _removed(rule: Rule) -> None:
    while not rule.gone.is_set():
        await asyncio.sleep(POLL_SECONDS)
