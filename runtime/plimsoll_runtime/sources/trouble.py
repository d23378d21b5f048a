"""What can go wrong on the way to a model, in three kinds: what passes, what a server refuses, and what ends the start with a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple, TypeVar

from plimsoll_runtime.failure import Failure

_T = TypeVar("_T")
REACH = "let the pods reach it (proxy, mirror, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights"
ANEW = "correct spec.model.source and spec.model.revision, or put the files there anew"
_LIMIT = re.compile(r";\s*([rt])=(\d+)")
"""How much is left of a limit, and in how many seconds it is counted anew."""


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
    longest: float = 330.0
    """How long a server is heeded that asks for a longer pause. Hubs count requests over 5 minutes, and a start has time for one such wait."""

    def pause(self, attempt: int, asked: float | None) -> float:
        own = min(self.most, self.first * float(1 << min(attempt - 1, 10)))
        return max(own, min(self.longest, asked or 0.0))


def failed(word: str, message: str, remedy: str) -> FetchFailed:
    return FetchFailed(Failure(word, message, remedy))


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """How many seconds a server asks to wait, if it does: by Retry-After, or by a limit of RateLimit that is used up. Dates are of its own clock."""
    after = headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    until, now = parsedate_tz(after), parsedate_tz(headers.get("date", ""))
    if until and now:
        try:
            return max(0.0, float(mktime_tz(until) - mktime_tz(now)))
        except (ValueError, OverflowError):  # a date that is none
            return None
    limits = (dict(_LIMIT.findall(limit)) for limit in headers.get("ratelimit", "").split(","))
    return max((float(one["t"]) for one in limits if one.get("r") == "0" and "t" in one), default=None)


def patiently(call: Callable[[], _T], patience: Patience, wait: Callable[[float, str], bool]) -> _T:
    """Calls until it succeeds, fails for good, or patience is at its end. `wait` waits for so many seconds and for that reason, and returns
    true where the fetch is to end."""
    attempt = 0
    while True:
        try:
            return call()
        except Transient as trouble:  # noqa: PERF203 - a try is cheap beside a request
            attempt += 1
            if attempt >= patience.attempts:
                raise failed("Download", f"the model cannot be fetched: {trouble}", REACH) from trouble
            if wait(patience.pause(attempt, trouble.after), str(trouble)):
                raise Stopped from None
