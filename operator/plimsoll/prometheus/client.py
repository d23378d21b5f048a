"""Questions to a Prometheus, off the event loop: a few threads, each with a connection of its own, and one deadline for all.

A Prometheus that is slow, wrong or gone costs a tick its answers and nothing else. There is no second try within a tick:
the next one comes in a moment. What an answer says is read by whoever asked it, row by row, in the thread that got it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.exceptions import ReadTimeoutError

from plimsoll.api.plainjson import parsed
from plimsoll.prometheus.answers import Rows
from plimsoll.prometheus.deadline import Bounded
from plimsoll.prometheus.rows import lack_of, rows_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

NO_ANSWER: Final = "no answer in time"
NO_CONNECTION: Final = "no connection"
REFUSALS: Final = tuple(f"HTTP {code}: " for code in (400, 413, 414, 422))
"""How errors begin that are about the question itself. All other errors may pass by themselves."""
DATA_REFUSAL: Final = "HTTP 422: "
"""How those of them begin that may also be about the series that are there just now, of which two may be one too many to be matched."""
SENT_ON: Final = (301, 302, 303)
"""Statuses with which a question would go elsewhere without its text."""
SAID_MOST: Final = 300
THREADS: Final = 4
DEADLINE_S: Final = 10.0
CHUNK: Final = 1024 * 1024
"""Bytes that are read of a connection at once. They are many, as after each read a thread has to wait for Python's lock."""
LARGEST_ANSWER: Final = 128 * 1024 * 1024
"""Bytes of one answer, which is held whole until its rows are read: rows have about two hundred bytes, so it is some six hundred thousand."""


class Read(Protocol[T_co]):
    """Reads one answer: what it is about, and its rows, which can be iterated once."""

    def __call__(self, about: str, rows: Rows, /) -> T_co: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[T_co]):
    answers: Mapping[str, T_co]
    errors: Mapping[str, str]
    """By question: why there is no answer."""
    partial: Mapping[str, str] = field(default_factory=dict)
    """By question that has an answer: why series may be missing in it."""

    @property
    def reachable(self) -> bool:
        """Whether Prometheus is there: it answered something, or nothing was asked."""
        return bool(self.answers) or not self.errors


class Prometheus:
    def __init__(
        self,
        url: str,
        *,
        deadline_s: float = DEADLINE_S,
        headers: Callable[[], Mapping[str, str]] = dict,
        ca_file: str | None = None,
    ) -> None:
        """`headers` is called for each question, as a token may be renewed while the program runs."""
        self._url, self._deadline = url.rstrip("/"), deadline_s
        self._headers, self._ca_file = headers, ca_file
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="prometheus")
        self._own = threading.local()
        self._reading, self._counting = threading.Lock(), threading.Lock()
        self._busy = 0
        """How many threads work on a question, even if nobody waits for the answer any more."""

    async def ask(self, questions: Mapping[str, str], read: Read[T]) -> Answered[T]:
        """All of them at once; those that are not answered in time are among the errors."""
        if not questions:
            return Answered(answers={}, errors={})
        if self._busy >= THREADS:
            return Answered(answers={}, errors=dict.fromkeys(questions, NO_ANSWER))
        loop = asyncio.get_running_loop()
        asked = {
            about: loop.run_in_executor(self._threads, self._one, text, partial(read, about))
            for about, text in questions.items()
        }
        await asyncio.wait(asked.values(), timeout=self._deadline)
        answers, errors, lacking = {}, {}, {}
        for about, future in asked.items():
            if not future.done():
                # What has not begun never will; what has begun ends by its own deadline, and nobody waits for it.
                future.cancel()
                errors[about] = NO_ANSWER
            elif (error := future.exception()) is not None:
                errors[about] = _words(error)
            else:
                answers[about], lack = future.result()
                if lack:
                    lacking[about] = f"not whole: {lack}"[:SAID_MOST]
        return Answered(answers=answers, errors=errors, partial=lacking)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _one(self, query: str, read: Callable[[Rows], T]) -> tuple[T, str]:
        self._count(1)
        try:
            return self._answered(query, read)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self._busy += more

    def _answered(self, query: str, read: Callable[[Rows], T]) -> tuple[T, str]:
        client = self._client()
        client.headers = dict(self._headers())
        rows = client.custom_query(query, timeout=self._deadline)
        # Answers come at once and are read one after the other: Python runs one thread at a time, and threads that all want
        # to be it hold each other up, and the event loop with them.
        with self._reading:
            return read(rows), self._own.lack

    def _client(self) -> PrometheusConnect:
        client: PrometheusConnect | None = getattr(self._own, "client", None)
        if client is None:
            session = _Forms()
            # Proxies of the environment are for the outside; a Prometheus is inside.
            session.trust_env = False
            session.stream = True
            session.verify = self._ca_file or True
            session.hooks["response"].append(partial(_row_by_row, own=self._own))
            client = PrometheusConnect(url=self._url, session=session, timeout=self._deadline, method="POST")
            # After the client has mounted its own, which tries again and again.
            for beginning in ("http://", "https://", self._url):
                session.mount(beginning, Bounded())
            self._own.client = client
        return client


class _Forms(requests.Session):
    """Questions go as forms: those of a large fleet are longer than servers and proxies let an address be."""

    def request(self, method: str, url: str, params: Any = None, **more: Any) -> requests.Response:  # type: ignore[override]
        return super().request(method, url, data=params, **more)


def _row_by_row(response: requests.Response, *, own: threading.local, **_: Any) -> None:
    """Make the response's JSON one whose rows are read one by one. The client takes them out of what should be the whole answer. What it
    may lack is noted beside it, for the thread that asked."""
    status = response.status_code
    if status in SENT_ON:
        where = response.headers.get("Location", "").partition("?")[0]
        raise PrometheusApiClientException(
            f"HTTP {status}: sent on to {where}; prometheusUrl has to name where it answers"
        )
    if response.is_redirect:
        return
    content = _content(response)
    if status == 504 or (status == 503 and _said(content, "errorType") == "timeout"):
        # A proxy or Prometheus itself gave up first: the question is as slow as one that our own deadline ends.
        raise requests.Timeout
    if status != 200:
        raise PrometheusApiClientException(f"HTTP {status}: {_told(content)}")

    def decoded(**_: Any) -> Any:
        text = content.decode()
        own.lack = lack_of(text)
        return {"data": {"result": rows_of(text)}}

    response.json = decoded  # type: ignore[method-assign]


def _content(response: requests.Response) -> bytes:
    parts, size = [], 0
    try:
        for part in response.iter_content(CHUNK):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                response.close()
                raise PrometheusApiClientException(f"the answer is larger than {LARGEST_ANSWER} bytes")
    except requests.ConnectionError as error:
        # So requests calls a body that does not come in time.
        if isinstance(error.__context__, ReadTimeoutError):
            raise requests.Timeout from error
        raise
    return b"".join(parts)


def is_refusal(why: str) -> bool:
    """Whether the same question would be refused again in a moment."""
    return why.startswith(REFUSALS)


def is_lasting(why: str) -> bool:
    """Whether it would be refused again whenever it is asked."""
    return is_refusal(why) and not why.startswith(DATA_REFUSAL)


def _words(error: BaseException) -> str:
    if isinstance(error, requests.Timeout):
        return NO_ANSWER
    if isinstance(error, requests.exceptions.SSLError):
        return f"no connection that is trusted: {_inmost(error)}"[:SAID_MOST]
    if isinstance(error, requests.ConnectionError):
        return NO_CONNECTION
    if isinstance(error, requests.exceptions.InvalidHeader):
        # Its own words quote the token.
        return "the token holds what no header may"
    if isinstance(error, PrometheusApiClientException):
        return str(error)[:SAID_MOST]
    return f"{type(error).__name__}: {error}"[:SAID_MOST]


def _told(content: bytes) -> str:
    """What Prometheus says is wrong, from the content of its answer."""
    return _said(content, "error") or content.decode(errors="replace").strip() or "without a word"


def _said(content: bytes, name: str) -> str:
    """A field of an answer; empty where it has none."""
    try:
        return str(parsed(content.decode(errors="replace"))[name])
    except (ValueError, KeyError, TypeError):
        return ""


def _inmost(error: BaseException) -> str:
    """The message of the first error in a chain: those that were raised from it say the same in more words."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error)
