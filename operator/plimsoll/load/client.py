"""A client of one endpoint: which models it serves, what it counts, and answers with the times at which they stream in.

Every request has a connection of its own, as different users have. So a Service spreads requests over its pods, and a server that closes idle
connections is not taken for one that fails. Times are those of the event loop.
"""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from plimsoll.api.plainjson import parsed
from plimsoll.load.answers import Answer, Outcome
from plimsoll.load.problems import EndpointError, LoadError
from plimsoll.load.prompts import SHORT_PROBE, Calibration, Prompts, calibrated, long_probe
from plimsoll.load.stream import DONE, Event, Events, StreamError, error_text, read_event
from plimsoll.load.workload import Ask

_REFUSALS: Final = frozenset({429, 503})
_CONNECT_S: Final = 10.0
_LONGEST_BODY: Final = 64 << 20
_LONGEST_ERROR: Final = 1 << 16
"""Bytes that are read of an answer that is an error."""
_READ_BUFFER: Final = 1 << 18
_DNS_SECONDS: Final = 60


class Api(StrEnum):
    CHAT = "chat"
    COMPLETIONS = "completions"


# What is asked for beyond the plain API: exactly as many tokens as wanted, and a count of tokens in every event. A server that refuses a set of
# these extras is tried with the next one, which asks for less; the result notes what is missing.
_LENGTH: Final[Mapping[str, Any]] = {"ignore_eos": True}
_COUNTED: Final[Mapping[str, Any]] = {
    "stream_options": {"include_usage": True, "continuous_usage_stats": True}
}
_SUMMED: Final[Mapping[str, Any]] = {"stream_options": {"include_usage": True}}
_EXTRAS: Final[tuple[Mapping[str, Any], ...]] = (
    {**_LENGTH, **_COUNTED},
    {**_LENGTH, **_SUMMED},
    _SUMMED,
    {},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests are sent, and what they name."""

    url: str
    """With or without /v1 at its end."""
    api: Api = Api.CHAT
    model: str | None = None
    """None: the model that the endpoint lists first."""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0

    @property
    def root(self) -> str:
        return self.url.rstrip("/").removesuffix("/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the endpoint said of itself before the load."""

    model: str
    context_tokens: int | None
    """The longest request, where the endpoint says so."""
    calibration: Calibration
    extras: Mapping[str, Any]
    """What the endpoint accepts beyond the plain API."""
    counts_tokens: bool

    @property
    def keeps_lengths(self) -> bool:
        return "ignore_eos" in self.extras


class Client:
    """A client of an endpoint, made by `connected`."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._session = session
        path = "chat/completions" if endpoint.api is Api.CHAT else "completions"
        self._url = f"{endpoint.root}/v1/{path}"

    async def get_acquainted(self, prompts: Prompts) -> Known:
        """Finds out the model, its context, which extras the endpoint accepts, and how many tokens a word is."""
        model, context = await self._model()
        refused = None
        for extras in _EXTRAS:
            known = Known(
                model=model,
                context_tokens=context,
                calibration=prompts.calibration,
                extras=extras,
                counts_tokens=False,
            )
            first = await self._probe(known, prompts.probe(SHORT_PROBE))
            if first.outcome is Outcome.OK:
                words = long_probe(context)
                second = await self._probe(known, prompts.probe(words))
                return replace(
                    known,
                    calibration=calibrated(first.input_tokens, second.input_tokens, words),
                    counts_tokens=first.output_tokens is not None,
                )
            refused = refused or first.problem
            if first.problem is None or not first.problem.startswith(("400", "422")):
                break
        raise EndpointError(f"{self._url} answers no request for model {model!r}: {refused}")

    async def ask(self, known: Known, ask: Ask, prompt: str, due: float | None = None) -> Answer:
        """Sends one request and follows its answer to its end. `due` is when a user would have sent it."""
        loop = asyncio.get_running_loop()
        following = _Following(loop.time)
        problem: str | None = None
        try:
            async with asyncio.timeout(self.endpoint.timeout_s):
                outcome, problem = await self._follow(self._body(known, ask, prompt), following)
        except aiohttp.ConnectionTimeoutError:
            outcome, problem = Outcome.REFUSED, f"no connection within {_CONNECT_S:g} s"
        except TimeoutError:
            outcome, problem = Outcome.TIMED_OUT, f"no end within {self.endpoint.timeout_s:g} s"
        except asyncio.CancelledError:
            # The run is over; what was seen until now counts.
            outcome = Outcome.UNFINISHED
        except aiohttp.ClientConnectorError as error:
            outcome, problem = Outcome.REFUSED, f"no connection: {error.os_error.strerror or error}"
        except (aiohttp.ClientError, StreamError, ConnectionError) as error:
            outcome = Outcome.CUT if following.began else Outcome.FAILED
            problem = f"connection lost: {error}" if not isinstance(error, StreamError) else str(error)
        return Answer(
            outcome=outcome,
            due=following.sent if due is None else due,
            sent=following.sent,
            ended=loop.time(),
            arrivals=following.arrivals,
            asked_input=ask.input_tokens,
            asked_output=ask.output_tokens,
            input_tokens=following.input_tokens,
            output_tokens=following.output_tokens,
            problem=problem,
        )

    async def is_away(self) -> str | None:
        """What keeps the endpoint from answering as it did when it was got acquainted with; None where it answers, with an error or without."""
        try:
            await self._models(f"{self.endpoint.root}/v1/models")
        except EndpointError as error:
            return str(error)
        return None

    async def text(self, url: str) -> str:
        """Reads a page of text, such as /metrics."""
        # Pods are asked by their addresses, and show the certificate that is of the Service's name.
        name = urlsplit(self.endpoint.root).hostname if _is_numeric(urlsplit(url).hostname) else None
        waits = aiohttp.ClientTimeout(total=_CONNECT_S)
        try:
            async with self._session.get(url, timeout=waits, server_hostname=name) as response:
                if response.status != 200:
                    raise EndpointError(f"{url} answers {response.status}")
                body = await response.content.read(_LONGEST_BODY)
                while more := await response.content.read(_LONGEST_BODY - len(body)):
                    body += more
                return body.decode("utf-8", "replace")
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            raise EndpointError(f"{url} does not answer: {_why(error)}") from None

    async def _model(self) -> tuple[str, int | None]:
        """The model to ask for, and its longest request where the endpoint says so."""
        url = f"{self.endpoint.root}/v1/models"
        wanted = self.endpoint.model
        status, models = await self._models(url)
        if status in (401, 403):
            raise EndpointError(
                f"{url} answers {status}: a key is asked for; give --api-key or OPENAI_API_KEY"
            )
        if not models and wanted is None:
            raise EndpointError(f"{url} answers {status} and lists no model; name one with --model")
        if wanted is not None and models and wanted not in models:
            served = ", ".join(sorted(models))
            raise EndpointError(f"model {wanted!r} is not served by {url}; it serves {served}")
        model = wanted or next(iter(models))
        context = models.get(model)
        return model, context if isinstance(context, int) and context > 0 else None

    async def _models(self, url: str) -> tuple[int, dict[str, Any]]:
        """The HTTP status, and the listed models with their context, which vLLM adds to the API."""
        try:
            async with self._session.get(url, timeout=aiohttp.ClientTimeout(total=_CONNECT_S)) as response:
                status = response.status
                try:
                    body = await response.json(content_type=None, loads=parsed) if status == 200 else None
                except ValueError:
                    raise EndpointError(
                        f"{url} is no JSON; give the address of an OpenAI-compatible server"
                    ) from None
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            raise EndpointError(f"{url} does not answer: {_why(error)}") from None
        listed = body.get("data") if isinstance(body, dict) else None
        return status, {
            one["id"]: one.get("max_model_len")
            for one in listed or ()
            if isinstance(one, dict) and isinstance(one.get("id"), str)
        }

    async def _probe(self, known: Known, prompt: str) -> Answer:
        return await self.ask(known, Ask(number=-1, at=None, input_tokens=1, output_tokens=1), prompt)

    def _body(self, known: Known, ask: Ask, prompt: str) -> dict[str, Any]:
        said: dict[str, Any] = {"prompt": prompt}
        if self.endpoint.api is Api.CHAT:
            said = {"messages": [{"role": "user", "content": prompt}]}
        return {"model": known.model, **said, "max_tokens": ask.output_tokens, "stream": True, **known.extras}

    async def _follow(self, body: Mapping[str, Any], following: _Following) -> tuple[Outcome, str | None]:
        async with self._session.post(self._url, json=body) as response:
            if response.status != 200:
                outcome = Outcome.REFUSED if response.status in _REFUSALS else Outcome.FAILED
                return outcome, f"{response.status}: {await _problem(response)}"
            if response.content_type == "application/json":
                said = await _problem(response)
                return Outcome.FAILED, f"no stream, but JSON: {said}"
            following.began = True
            async for data in response.content.iter_any():
                if following.take(data):
                    break
        return following.ending()


class _Following:
    """What is seen of one answer while it streams in."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.sent = clock()
        self.began = False
        self.arrivals = array("d")
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self._clock = clock
        self._events = Events()
        self._done = False
        self._finish: str | None = None
        self._error: str | None = None

    def take(self, data: bytes) -> bool:
        """Takes what came. Returns True once the answer is complete."""
        now = self._clock()
        for text in self._events.feed(data):
            if text == DONE:
                self._done = True
                return True
            self._count(read_event(text), now)
        return self._error is not None

    def _count(self, event: Event, now: float) -> None:
        if event.has_text or (event.has_choice and self._grew(event.output_tokens)):
            self.arrivals.append(now)
        self.input_tokens = self.input_tokens if event.input_tokens is None else event.input_tokens
        self.output_tokens = self.output_tokens if event.output_tokens is None else event.output_tokens
        self._finish = event.finish or self._finish
        self._error = event.error or self._error

    def _grew(self, tokens: int | None) -> bool:
        """Whether the count shows that a token came without text: a part of a character, or a token that is not shown."""
        if tokens is None:
            return False
        # The first count may be in the last event, for the whole answer.
        return tokens == len(self.arrivals) + 1 if self.output_tokens is None else tokens > self.output_tokens

    def ending(self) -> tuple[Outcome, str | None]:
        if self._error is not None:
            return Outcome.FAILED, self._error
        if self._finish in ("abort", "error"):
            return Outcome.CUT, f"finish reason {self._finish}"
        if self._finish is None and not self._done:
            return Outcome.CUT, "the stream ended without its end"
        return Outcome.OK, None


def _is_numeric(host: str | None) -> bool:
    """Whether a host is an address, and no name."""
    try:
        return bool(ip_address(host or ""))
    except ValueError:
        return False


def _why(error: Exception) -> str:
    """The error in the system's own words, as those of the HTTP library speak of TLS even where there is none."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        inner = error.os_error
        return os.strerror(inner.errno) if inner.errno and inner.errno > 0 else inner.strerror or str(error)
    return str(error) or type(error).__name__


async def _problem(response: aiohttp.ClientResponse) -> str:
    raw = (await response.content.read(_LONGEST_ERROR)).decode("utf-8", "replace")
    try:
        return error_text(parsed(raw))
    except ValueError:
        return error_text(raw) or response.reason or "no reason given"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host)


@asynccontextmanager
async def connected(
    endpoint: Endpoint, connector: Callable[[], aiohttp.BaseConnector] | None = None
) -> AsyncIterator[Client]:
    """A client of the endpoint; `connector` is for tests that need no port."""
    if not _is_address(endpoint.url):
        raise LoadError(
            f"{endpoint.url!r} is no address of an endpoint; write http://HOST:PORT, with or without /v1 "
            "(kubectl port-forward svc/NAME 8000:80 gives a Service one, http://localhost:8000)"
        )
    session = aiohttp.ClientSession(
        connector=connector()
        if connector
        else aiohttp.TCPConnector(limit=0, force_close=True, ttl_dns_cache=_DNS_SECONDS),
        headers=endpoint.headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        # A proxy that the environment names would be measured together with the endpoint.
        trust_env=False,
        auto_decompress=True,
        read_bufsize=_READ_BUFFER,
    )
    async with session:
        yield Client(session, endpoint)
