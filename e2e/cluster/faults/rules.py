"""The faults that a proxy can play, and which of them a call meets. What each does to a connection is `proxy`'s.

A test adds and removes rules from its own thread while calls are decided on in the proxy's: the rules are one tuple, replaced whole.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from cluster.faults.calls import Call, Where

ANY: Final = Where()
WATCHES: Final = Where(verbs=("watch",))


@dataclass(frozen=True, slots=True)
class Delay:
    """It takes that much longer. What else the call meets, it meets afterwards."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Answered in the API server's form, without asking it."""

    status: int
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Taken, not passed on, and not answered before the rule is gone; then the connection is closed."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The connection is closed; the API server hears nothing."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Done by the API server, and then the connection is closed, as if the network had gone just then."""


@dataclass(frozen=True, slots=True)
class CutWatch:
    """The watch is cut, that long after it began."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SilenceWatch:
    """The connection stays open and says nothing ever again, open watches too; only a new watch after the rule is gone hears."""


@dataclass(frozen=True, slots=True)
class LoseEvents:
    """Single events never arrive, on open watches too; share and times count events."""

    types: tuple[str, ...] = ("ADDED", "MODIFIED", "DELETED")
    name: str = ""
    """Of the object; empty: any."""


@dataclass(frozen=True, slots=True)
class ExpireWatch:
    """The watch begins with the error event by which the API server says that it no longer knows so old a version. In JSON."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Reads see the world as it was at that version, and watches, open ones too, hear the rest when the rule is gone.

    Parts of objects, such as /scale, are read as they are.
    """

    version: str


Fault = (
    Delay | Answer | Hang | Refuse | LoseAnswer | CutWatch | SilenceWatch | LoseEvents | ExpireWatch | Stale
)


@dataclass(slots=True, kw_only=True)
class Rule:
    """One fault for some calls. In a `with` it goes at the end; `remove` takes it away earlier."""

    fault: Fault
    where: Where
    share: float
    """Of the calls that match; which ones is drawn by `seed`."""
    times: int | None
    """It is spent after so many."""
    after: int
    """So many calls that match are let through first."""
    seed: int
    hits: int = 0
    """How often it struck."""
    passed: int = 0
    """How many were let through first."""
    gone: threading.Event = field(default_factory=threading.Event)
    _rules: Rules
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share is {self.share}; it is a part of the calls, above 0 and at most 1")
        self._random = random.Random(self.seed)

    def strikes(self, call: Call) -> bool:
        """Draws: ask once a call, or once an event."""
        if not self.where.matches(call) or (self.times is not None and self.hits >= self.times):
            return False
        if self.passed < self.after:
            self.passed += 1
            return False
        if self.share < 1.0 and self._random.random() >= self.share:
            return False
        self.hits += 1
        return True

    def remove(self) -> None:
        """It strikes no more."""
        self._rules.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Rules:
    """All that stand, in the order in which they came."""

    def __init__(self) -> None:
        self._standing: tuple[Rule, ...] = ()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._standing)

    def add(
        self, fault: Fault, where: Where, *, share: float, times: int | None, seed: int, after: int = 0
    ) -> Rule:
        """From any thread."""
        rule = Rule(fault=fault, where=where, share=share, times=times, seed=seed, after=after, _rules=self)
        with self._lock:
            self._standing = (*self._standing, rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """From any thread, more than once if need be."""
        with self._lock:
            self._standing = tuple(one for one in self._standing if one is not rule)
        rule.gone.set()

    def clear(self) -> None:
        """All of them."""
        for rule in self._standing:
            self.remove(rule)

    def met_by(self, call: Call) -> list[Rule]:
        """Those that strike the call itself: delays in any number, up to and with the first of another kind."""
        struck: list[Rule] = []
        for rule in self._standing:
            if not (_befalls(rule.fault, call) and rule.strikes(call)):
                continue
            struck.append(rule)
            if not isinstance(rule.fault, Delay):
                break
        return struck


def _befalls(fault: Fault, call: Call) -> bool:
    """Whether it is a fault of the call itself: not of another kind of call, nor of what a watch says later."""
    match fault:
        case LoseEvents() | SilenceWatch():
            return False
        case CutWatch() | ExpireWatch():
            return call.verb == "watch"
        case Stale():
            return call.verb in ("get", "list") and "/" not in call.resource
    return True
