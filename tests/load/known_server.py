"""An OpenAI-compatible server that does exactly what it is told: delays, failures, cuts, refusals, and counts of it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

DEEP = "[" * 60_000
"""More than Python goes down."""


@dataclass
class Behaviour:
    ttft_s: float = 1.0
    gap_s: float = 0.1
    fate: Callable[[int], str] = lambda number: "ok"
    """By the number of the request; the two by which a client gets acquainted are answered at once and do not count."""
    tokens_per_event: int = 1
    counts: bool = True
    refuses: tuple[str, ...] = ()
    """Fields of the request that are answered with 400."""
    template_tokens: int = 7
    tokens_per_word: float = 1.5
    context: int | None = None
    gap_of: Callable[[int], float] | None = None
    """The gap by how many are answered at once, instead of gap_s."""
    silent: tuple[int, ...] = ()
    """Tokens, by their place in the answer, that have no text."""
    metrics: Callable[[KnownServer], str] | None = None
    lists: str | None = None
    """Instead of its models."""
    seats: int | None = None
    """Answers at once; more wait for a first token."""


def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


@dataclass
class KnownServer:
    behaviour: Behaviour = field(default_factory=Behaviour)
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    probes: int = 0
    answering: int = 0
    most: int = 0
    streaming: int = 0
    gone: bool = False
    """Since a request whose fate was to end it: every connection is cut."""
    stuck: bool = False
    """Since a request whose fate was that: it answers none, and says no more of its models."""
    asked_when_stuck: bool = False

    def __post_init__(self) -> None:
        self._seats = asyncio.Semaphore(self.behaviour.seats or 1_000_000)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/completions", self._answer)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _models(self, request: web.Request) -> web.Response:
        if self.gone:
            _hang_up(request)
        if self.stuck:
            self.asked_when_stuck = True
            await asyncio.sleep(1e6)
        if self.behaviour.lists is not None:
            return web.Response(text=self.behaviour.lists)
        entry: dict[str, Any] = {"id": "tiny", "object": "model"}
        if self.behaviour.context:
            entry["max_model_len"] = self.behaviour.context
        return web.json_response({"object": "list", "data": [entry]})

    async def _metrics(self, _request: web.Request) -> web.Response:
        if self.behaviour.metrics is None:
            raise web.HTTPNotFound
        return web.Response(text=self.behaviour.metrics(self))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        refused = [name for name in self.behaviour.refuses if name in json.dumps(body)]
        if refused:
            return web.json_response({"error": {"message": f"unknown field {refused[0]}"}}, status=400)
        if self.probes < 2:
            self.probes += 1
            return await self._stream(request, body, "probe")
        number = len(self.times)
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.times.append(asyncio.get_running_loop().time())
        self.answering += 1
        self.most = max(self.most, self.answering)
        try:
            fate = self.behaviour.fate(number)
            self.gone = self.gone or fate == "gone"
            self.stuck = self.stuck or fate == "stuck"
            if self.gone or self.stuck:
                _hang_up(request)
            if fate == "a deep answer":
                return web.Response(text=DEEP, content_type="application/json")
            if fate == "a deep refusal":
                return web.Response(text=DEEP, status=500)
            if fate == "json":
                return web.json_response({"choices": [{"message": {"content": "whole"}}]})
            if fate.isdigit():
                return web.json_response({"error": {"message": "not today"}}, status=int(fate))
            async with self._seats:
                self.streaming += 1
                try:
                    return await self._stream(request, body, fate)
                finally:
                    self.streaming -= 1
        finally:
            self.answering -= 1

    async def _stream(self, request: web.Request, body: Mapping[str, Any], fate: str) -> web.StreamResponse:
        it = self.behaviour
        chat = "messages" in body
        words = len((body["messages"][0]["content"] if chat else body["prompt"]).split())
        prompt = round(it.template_tokens + words * it.tokens_per_word)
        if it.context and prompt + body["max_tokens"] > it.context:
            return web.json_response({"error": {"message": f"longer than {it.context}"}}, status=400)
        options = body.get("stream_options") or {}
        continuous = it.counts and options.get("continuous_usage_stats")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(choice: Mapping[str, Any] | None, tokens: int, *, usage: bool) -> None:
            event: dict[str, Any] = {"choices": [] if choice is None else [choice]}
            if usage:
                event["usage"] = {"prompt_tokens": prompt, "completion_tokens": tokens}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())

        if chat:
            await send({"delta": {"role": "assistant", "content": ""}}, 0, usage=bool(continuous))
        wanted, given = body["max_tokens"], 0
        while given < wanted:
            if fate == "hang" and given >= wanted // 2:
                await asyncio.sleep(1e6)
            if given >= wanted // 2 and fate in ("cut", "reset", "error", "abort", "deep"):
                break
            if fate != "probe":
                gap = it.gap_of(self.streaming) if it.gap_of else it.gap_s
                await asyncio.sleep(gap if given else it.ttft_s)
            now = min(it.tokens_per_event, wanted - given)
            text = "" if given in it.silent else "word " * now
            given += now
            part = {"delta": {"content": text}} if chat else {"text": text}
            await send(
                {**part, "finish_reason": "length" if given == wanted else None},
                given,
                usage=bool(continuous),
            )
        if fate in ("cut", "reset", "error", "deep"):
            return await self._broken(request, response, fate)
        if fate == "abort":
            await send({"delta": {}, "finish_reason": "abort"}, given, usage=bool(continuous))
        if it.counts and options.get("include_usage"):
            await send(None, given, usage=True)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _broken(
        self, request: web.Request, response: web.StreamResponse, fate: str
    ) -> web.StreamResponse:
        if fate == "reset":
            assert request.transport is not None
            request.transport.abort()
        if fate == "deep":
            await response.write(f"data: {DEEP}\n\n".encode())
        if fate == "error":
            await response.write(b'data: {"error": {"message": "the engine died"}}\n\n')
        return response


@asynccontextmanager
async def serving(server: KnownServer) -> AsyncIterator[Callable[[], aiohttp.BaseConnector]]:
    """The server on a socket of the file system; gives what makes a client's connector to it."""
    with tempfile.TemporaryDirectory() as folder:
        runner = web.AppRunner(server.app(), access_log=None, handler_cancellation=True)
        await runner.setup()
        path = str(Path(folder) / "s")
        await web.UnixSite(runner, path).start()
        try:
            yield lambda: aiohttp.UnixConnector(path, limit=0, force_close=True)
        finally:
            await runner.cleanup()
