"""A watch on its way through the proxy: passed on line by line as it comes, unless it is silenced, robbed of events, or cut."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from typing import Final

from cluster.faults import http
from cluster.faults.calls import Call
from cluster.faults.rules import LoseEvents, Rule, Rules, SilenceWatch, Stale

POLL_SECONDS: Final = 0.02


class Watch:
    """One open watch. Its methods are for the proxy's own thread."""

    def __init__(self, call: Call, rules: Rules, client: StreamWriter) -> None:
        self.call = call
        self._rules = rules
        self._client = client
        self._silenced = False
        self._asked: list[Rule] = []

    async def pass_on(self, head: http.Head, server: StreamReader) -> None:
        """Until the server ends it."""
        self._client.write(head.raw)
        pieces = http.read_pieces(server, head.length)
        if head.header(b"content-type").startswith(b"application/json"):
            pieces = _lines(pieces)
        async for piece in pieces:
            while self._is_held():
                await asyncio.sleep(POLL_SECONDS)
            if self._hears(piece):
                self._client.write(http.as_chunk(piece) if head.length == http.CHUNKED else piece)
                await self._client.drain()
        if head.length == http.CHUNKED and not self._silenced:
            self._client.write(http.LAST_CHUNK)
        while self._silenced:  # the server's end of it is not heard either
            await asyncio.sleep(3600)

    def expire(self) -> None:
        """End it with the error event, as the API server does when it has forgotten what is asked about; in JSON."""
        self._client.write(http.as_chunk(expired_event()) + http.LAST_CHUNK)
        self._client.close()

    def cut(self) -> None:
        """In the middle of wherever it is."""
        self._client.transport.abort()

    def _is_held(self) -> bool:
        return any(isinstance(rule.fault, Stale) and rule.where.matches(self.call) for rule in self._rules)

    def _hears(self, piece: bytes) -> bool:
        """Whether the client gets this piece."""
        for rule in self._rules:
            if isinstance(rule.fault, SilenceWatch) and self._is_new(rule) and rule.strikes(self.call):
                self._silenced = True
        if self._silenced:
            return False
        losing = [rule for rule in self._rules if isinstance(rule.fault, LoseEvents)]
        return not losing or not any(_loses(rule, self.call, piece) for rule in losing)

    def _is_new(self, rule: Rule) -> bool:
        """A rule that silences is asked once a watch."""
        if any(one is rule for one in self._asked):
            return False
        self._asked.append(rule)
        return True


def expired_event() -> bytes:
    """As it stands in a watch."""
    status = json.loads(http.status_object(410, "too old resource version: 1 (2)"))
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def _loses(rule: Rule, call: Call, piece: bytes) -> bool:
    assert isinstance(rule.fault, LoseEvents)
    try:
        event = json.loads(piece)
    except ValueError:
        return False
    named = event["object"].get("metadata", {}).get("name", "")
    return event["type"] in rule.fault.types and rule.fault.name in ("", named) and rule.strikes(call)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """One event each."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"
