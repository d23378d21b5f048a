"""What can go wrong on the way to a model, in three kinds: what passes, what a server refuses, and what ends the start with a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from plimsoll_runtime.failure import Failure

_T = TypeVar("_T")
REACH = "let the pods reach it (proxy, mirror, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights"
ANEW = "correct spec.model.source and spec.model.revision, or put the files there anew"


class FetchFailed(Exception):
    """A fetch that trying again would not help. It carries what to tell."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Stopped(Exception):
    """Whoever asked for the fetch wants it to end."""


class Transient(Exception):
    """Something that may pass: a connection that was cut, or a server that is busy."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after
        """How many seconds the server asks to wait, if it does."""
        self.reached: int | None = None
        """The byte up to which the file was read."""


class Refused(Exception):
    """An answer of 400 or more that would be the same if it were asked for again."""

    elsewhere = False
    """Whether it came from where another answer had sent us."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str, where: str) -> None:
        super().__init__(f"{where} answers {status}")
        self.status, self.headers, self.body, self.where = status, headers, body, where


class Patience(NamedTuple):
    attempts: int = 8
    """How often something is tried in a row without one byte that came."""
    first: float = 1.0
    most: float = 30.0
    """The longest pause between two attempts, in seconds; pauses begin with `first` and double."""
    timeout: float = 30.0
    """After how many seconds a connection that says nothing is given up."""

    def pause(self, attempt: int, asked: float | None) -> float:
        return min(self.most, max(asked or 0.0, self.first * float(1 << min(attempt - 1, 10))))


def failed(word: str, message: str, remedy: str) -> FetchFailed:
    return FetchFailed(Failure(word, message, remedy))


def patiently(call: Callable[[], _T], patience: Patience, wait: Callable[[float], bool]) -> _T:
    """Calls until it succeeds, fails for good, or patience is at its end. `wait` waits for so many seconds, and returns true where the fetch is to end."""
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
