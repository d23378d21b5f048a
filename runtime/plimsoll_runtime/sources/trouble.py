"""What can go wrong on the way to a model, in three kinds: what passes, what a server refuses, and what ends the start with a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from plimsoll_runtime.failure import Failure

_T = TypeVar("_T")
REACH = "let the pods reach it (proxy, mirror, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights"
ANEW = "correct spec.model.source and spec.model.revision, or put the files there anew"


class FetchFailed(Exception):
    """Trying again would not help; carries what to tell."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Stopped(Exception):
    """Whoever asked wants to end."""


class Transient(Exception):
    """A connection that was cut, a server that is busy."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after
        """Seconds that the server asks for."""
        self.reached: int | None = None
        """The byte that was not reached any more."""


class Refused(Exception):
    """An answer of 400 and more that is meant."""

    elsewhere = False
    """Whether it came from where another answer had sent us."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str, where: str) -> None:
        super().__init__(f"{where} answers {status}")
        self.status, self.headers, self.body, self.where = status, headers, body, where


class Patience(NamedTuple):
    attempts: int = 8
    """In a row, without one byte."""
    first: float = 1.0
    most: float = 30.0
    """Seconds between two attempts, which double."""
    timeout: float = 30.0
    """Of a connection that says nothing."""

    def pause(self, attempt: int, asked: float | None) -> float:
        return min(self.most, max(asked or 0.0, self.first * float(1 << min(attempt - 1, 10))))


def failed(word: str, message: str, remedy: str) -> FetchFailed:
    return FetchFailed(Failure(word, message, remedy))


def patiently(call: Callable[[], _T], patience: Patience, wait: Callable[[float], bool]) -> _T:
    """`wait` is for so many seconds, and true where all is to end."""
    attempt = 0
    while True:
        try:
            return call()
        except Transient as trouble:  # noqa: PERF203 - a try is cheap beside a request
            attempt += 1
            if attempt >= patience.attempts:
                raise failed("Download", f"the model cannot be fetched: {trouble}", REACH) from trouble
            if wait(patience.pause(attempt, trouble.after)):
                raise Stopped from None
