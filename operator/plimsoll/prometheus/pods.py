"""The pods' own metrics pages, where no Prometheus is configured: the same samples, one connection a pod.

Good for a few hundred replicas; what a Prometheus adds is less traffic, and histories that outlive this program.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.exposition import sample_of
from plimsoll.prometheus.vocabulary import Vocabulary

DEADLINE_S: Final = 10.0
CONNECT_S: Final = 5.0
"""A connection that a NetworkPolicy drops is never refused, so it is given up sooner than an answer."""
LARGEST_PAGE: Final = 2 * 1024 * 1024
"""An engine says a tenth of a megabyte, and eight of them in a pod as many times that."""
LARGEST_LOOK: Final = 256 * 1024 * 1024
"""All pages of one look, which are held until the last one has come."""


@dataclass(frozen=True, slots=True)
class Page:
    """Where one replica publishes its metrics."""

    pod: str
    """UID of the leader's pod."""
    url: str


@dataclass(frozen=True, slots=True)
class Scraped:
    samples: tuple[PodSample, ...]
    errors: Mapping[str, str]
    """By pod: why there is no sample."""


async def scrape(
    pages: Iterable[Page], words: Vocabulary, *, now: float, deadline_s: float = DEADLINE_S
) -> Scraped:
    """All pages at once, by one deadline; each sample is of the time at which its page was read, `now` being that of the call."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    # All pages are asked at once: with a limit, pods that do not answer would keep others from being asked in time.
    everybody = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=deadline_s, sock_connect=min(CONNECT_S, deadline_s))
    held = _Held()
    async with aiohttp.ClientSession(timeout=timeout, connector=everybody, trust_env=False) as session:

        async def one(page: Page) -> _Fetched | str:
            try:
                return _Fetched(page.pod, await _body(session, page.url, held), now + clock() - begun)
            except Exception as error:  # noqa: BLE001 - whatever a page says, the others are still read
                return _words(error, deadline_s)

        listed = sorted(pages, key=lambda page: page.pod)
        fetched = await asyncio.gather(*map(one, listed))
    # They are read once all have come, as reading would keep the loop from taking in the others in time; and in a thread, as it takes long.
    found = await asyncio.to_thread(lambda: [_read(each, words) for each in fetched])
    return Scraped(
        samples=tuple(each for each in found if isinstance(each, PodSample)),
        errors={page.pod: each for page, each in zip(listed, found, strict=True) if isinstance(each, str)},
    )


class _Refused(Exception):
    """A page that is not taken, in words for the condition MetricsAvailable."""


@dataclass(slots=True)
class _Held:
    """Bytes that one look has taken in so far."""

    size: int = 0


@dataclass(frozen=True, slots=True)
class _Fetched:
    pod: str
    body: bytes
    at: float


def _read(fetched: _Fetched | str, words: Vocabulary) -> PodSample | str:
    if isinstance(fetched, str):
        return fetched
    try:
        text = fetched.body.decode("utf-8", errors="replace")
        return sample_of(text, words, pod=fetched.pod, at=fetched.at)
    except Exception as error:  # noqa: BLE001 - as above
        return _words(error)


def _words(error: Exception, deadline_s: float = DEADLINE_S) -> str:
    """An error in words without the pod's address, so that pods with the same trouble have the same words."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection in time"
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline_s:g} s"
    if isinstance(error, aiohttp.ClientSSLError):
        return "no connection: the pod speaks no TLS, or another one"
    if isinstance(error, aiohttp.ClientResponseError):
        return "what it answers is no HTTP"
    if isinstance(error, aiohttp.ClientConnectorError):
        code = error.os_error.errno
        return f"no connection: {os.strerror(code)}" if code else "no connection"
    if isinstance(error, _Refused):
        return str(error)
    return f"{type(error).__name__}: {error}"[:300]


async def _body(session: aiohttp.ClientSession, url: str, held: _Held) -> bytes:
    # A certificate is of the Service's name, and a pod is asked by its address.
    async with session.get(url, allow_redirects=False, ssl=False) as answer:
        if answer.status != 200:
            raise _Refused(f"its metrics page answers HTTP {answer.status}")
        body = bytearray()
        async for chunk in answer.content.iter_chunked(65536):
            body += chunk
            held.size += len(chunk)
            if held.size > LARGEST_LOOK:
                raise _Refused(f"all pages together are larger than {LARGEST_LOOK} bytes: set prometheusUrl")
            if len(body) > LARGEST_PAGE:
                raise _Refused(f"its metrics page is larger than {LARGEST_PAGE} bytes")
        return bytes(body)
