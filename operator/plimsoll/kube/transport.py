"""Sends single requests to the API server: connection, certificates, token, timeouts, typed errors, counts.

How many run at once, and what is tried again, is decided by the `door`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from plimsoll.api.plainjson import parsed
from plimsoll.kube.credentials import Access
from plimsoll.kube.errors import Silent, Unreachable, refusal
from plimsoll.kube.kinds import resource_in
from plimsoll.kube.pace import Pace

CONNECT_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 60.0
"""How long an unused connection is kept. The API server keeps them for longer."""
CLOSING_SECONDS: Final = 0.1
JSON: Final = "application/json"
_MOST_WORDS: Final = 1000
"""Characters that are kept of an answer that is no Status object, as proxies give them."""


@dataclass(slots=True)
class Calls:
    """Counts of calls, for metrics."""

    count: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Calls by verb, resource and status code, which is `unreachable` where there was no answer."""
    seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Time spent waiting for answers, by verb and resource."""
    in_flight: int = 0
    most_in_flight: int = 0

    def begin(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self, verb: str, path: str, code: str, seconds: float) -> None:
        self.in_flight -= 1
        resource = resource_in(path)
        self.count[verb, resource, code] += 1
        self.seconds[verb, resource] += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str
    """The verb of RBAC, but with `apply` told apart from `patch`."""
    method: str
    path: str
    query: Mapping[str, str]
    accept: str
    seconds: float | None
    """How long the call may take as a whole; None for a stream."""
    silence_seconds: float | None = None
    """How long nothing may come."""
    data: bytes | None = None
    content: str = JSON

    def headers(self, token: str | None) -> dict[str, str]:
        headers = {"Accept": self.accept, "User-Agent": "plimsoll"}
        if self.data is not None:
            headers["Content-Type"] = self.content
        if token is not None:
            headers["Authorization"] = token
        return headers


class Transport:
    def __init__(self, access: Access, pace: Pace) -> None:
        self.calls = Calls()
        self._access = access
        self._pace = pace

    async def open(self) -> None:
        # Watches hold a connection each, and calls are bounded by the door, so the pool itself has no limit.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        await self._session.close()
        # Closed connections are not gone at once, and nothing tells when they are.
        await asyncio.sleep(CLOSING_SECONDS)

    async def call(self, request: Request) -> dict[str, Any]:
        """The whole answer."""
        began, code = self._pace.now(), "unreachable"
        self.calls.begin()
        try:
            async with self._send(request) as answer:
                code = str(answer.status)
                await _raise_refusal(answer)
                found: dict[str, Any] = parsed(await answer.read())
                return found
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # The stream refers to its error, and the error's traceback to the stream with all that had come. Without this the two would
            # keep megabytes until the next garbage collection.
            raise _unreachable(request, error) from error.with_traceback(None)
        finally:
            self.calls.end(request.verb, request.path, code, self._pace.now() - began)

    async def lines(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The answer line by line, as it comes. The first line is empty and says that the answer has begun."""
        code, missed = "unreachable", Unreachable
        try:
            async with self._send(request) as answer:
                code = str(answer.status)
                await _raise_refusal(answer)
                try:
                    yield b""
                    missed = Silent
                    # The lines are cut here, as the reader's own limit for a line is far below the size of an object.
                    left = b""
                    async for chunk in answer.content.iter_any():
                        *whole, left = (left + chunk).split(b"\n") if left else chunk.split(b"\n")
                        for line in whole:
                            yield line
                finally:
                    # A stream that is left before its end is cut off, without waiting for the server.
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
        except aiohttp.SocketTimeoutError as error:
            words = f"{request.verb} {request.path}: nothing was said for too long"
            raise missed(words) from error.with_traceback(None)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(request, error) from error.with_traceback(None)
        finally:
            self.calls.count[request.verb, resource_in(request.path), code] += 1

    @asynccontextmanager
    async def _send(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request. Where the server does not accept the token it is renewed, and the request sent once more."""
        limits = aiohttp.ClientTimeout(
            sock_connect=CONNECT_SECONDS, sock_read=request.silence_seconds, total=request.seconds
        )
        for again in (True, False):
            token = await self._access.authorization()
            async with self._session.request(
                request.method,
                self._access.server + request.path,
                params=request.query,
                data=request.data,
                headers=request.headers(token),
                timeout=limits,
                ssl=self._access.ssl,
                server_hostname=self._access.server_name,
                proxy=self._access.proxy,
            ) as answer:
                if answer.status != 401 or not again or not await self._access.unknown(token):
                    yield answer
                    return


def _unreachable(request: Request, error: Exception) -> Unreachable:
    return Unreachable(f"{request.verb} {request.path}: {str(error) or type(error).__name__}")


async def _raise_refusal(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 300:
        return
    text = await answer.read()
    try:
        body = parsed(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"reason": answer.reason, "message": text[:_MOST_WORDS].decode(errors="replace")}
    named = answer.headers.get("Retry-After") or (body.get("details") or {}).get("retryAfterSeconds")
    try:
        # HTTP also allows a date, which is ignored, as API servers and what is in front of them give seconds.
        retry_after = None if named is None else float(named)
    except ValueError:
        retry_after = None
    raise refusal(answer.status, body, retry_after=retry_after)
