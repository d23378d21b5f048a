"""How many requests a second a replica answers in time when they come as users come: each by chance, and each as long as chance has it.

In a closed loop (`closed_loop`) somebody comes when somebody else is done, so a replica can be busy all the time and nobody waits for
long. Users come at any time. A request then waits for the prompts that are before it, the longer the more their lengths differ, and
for a place where all are taken. Both queues have textbook formulas: the tail of an M/G/1 queue for prompts, which are computed one
after another in what steps have room for, and that of an M/M/c queue for places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf
from typing import Final

from plimsoll.planning.speed.closed_loop import STEPS_WAITED

LATE: Final = 0.01
"""The share of requests that may be late: targets are about 99 of 100."""
PATIENCE_S: Final = 1.0
"""What anybody waits for prompts who is promised nothing, though an answer may take less, as a vector does."""
HALVINGS: Final = 12
"""How often the range is halved in which the most requests in flight lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as they come: lengths that are equally likely stand for all."""

    prompts: tuple[float, ...]
    """Tokens to be computed of each; what is in the cache already is left out."""
    answers: tuple[float, ...]
    shared: float = 0.0
    """Tokens that all prompts begin with, in the cache once."""
    first_s: float | None = None
    """Within how long the first token is promised; None where nothing is."""

    @property
    def prompt(self) -> float:
        """Of the mean request."""
        return sum(self.prompts) / len(self.prompts)

    @property
    def answer(self) -> float:
        return sum(self.answers) / len(self.answers)

    @property
    def held(self) -> float:
        """Tokens in the cache of a request that runs, on average: whoever has the longer answer runs for longer."""
        return self.prompt + sum(one * one for one in self.answers) / (2 * sum(self.answers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a replica takes, in seconds, and what it has room for."""

    decode: Callable[[float], float]
    """A step in which so many sequences each get a token."""
    token: float
    """A token of a prompt."""
    seen: float
    """The same for each token before it."""
    launch: float
    """What a step takes longer for having prompt tokens in it."""
    outside: Callable[[float, float], float]
    """What happens outside the device before the first token of a prompt of so many tokens, beside so many other requests."""
    step_tokens: float
    """That a step has room for."""
    places: float
    """Sequences that run together at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A load that a replica can go on with."""

    per_second: float
    """Requests that come and go."""
    in_flight: float
    """That run, on average."""
    late: float
    """Share of them that is late."""
    kept: bool = True
    """Whether 99 of 100 are in time."""


def steady(
    traffic: Traffic,
    pace: Pace,
    most: float,
    *,
    worth: float = 0.0,
    else_at: float = 1.0,
    wanted: float = inf,
) -> Steady:
    """The most that is answered in time with no more than `most` in flight on average.

    Where that is less than what is wanted, and less than the share `worth` of what can be answered at all, it is the share `else_at`, and
    more of it is late. Without a promised first token, 99 of 100 are to find a place at once, and to wait no longer for prompts than for
    their own answer, or a second.
    """
    top = _most(traffic, pace, most)
    kept, _ = _around(top, lambda in_flight: at(traffic, pace, in_flight).late <= LATE)
    found = at(traffic, pace, kept)
    enough = min(wanted, share_of_all(traffic, pace, most, worth).per_second)
    if found.late <= LATE and found.per_second >= enough:
        return found
    return replace(share_of_all(traffic, pace, most, else_at), kept=False)


def share_of_all(traffic: Traffic, pace: Pace, most: float, share: float) -> Steady:
    """A share of what is answered with `most` in flight, in time or not."""
    top = _most(traffic, pace, most)
    aim = share * at(traffic, pace, top).per_second
    _, in_flight = _around(top, lambda in_flight: at(traffic, pace, in_flight).per_second < aim)
    return at(traffic, pace, in_flight)


def _most(traffic: Traffic, pace: Pace, most: float) -> float:
    """The most in flight that there is room for. For each token of an answer so many of prompts are computed, and steps have to hold both."""
    return min(most, pace.places, pace.step_tokens / (1 + traffic.prompt / traffic.answer))


def _around(top: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """The last number up to which something holds, and the first from which on it does not."""
    low, high = 0.0, top
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def at(traffic: Traffic, pace: Pace, in_flight: float) -> Steady:
    """The load at which so many are in flight on average."""
    step, room = pace.decode(in_flight), max(1.0, pace.step_tokens - in_flight)
    # Prompts make the steps longer in which those that decode get their tokens.
    computing = [one * (pace.token + pace.seen * one / 2) for one in traffic.prompts]
    mean = sum(computing) / len(computing)
    launches = pace.launch * max(1.0, traffic.prompt / room)
    life = traffic.answer * step + in_flight * (mean + launches)
    per_second = in_flight / life
    took = [
        own + one / room * (step + pace.launch) for own, one in zip(computing, traffic.prompts, strict=True)
    ]
    prompts = _Prompts.of(took, per_second)
    places = _Places.of(pace.places, in_flight, life)
    if traffic.first_s is None:
        late = min(1.0, prompts.longer_than(max(life, PATIENCE_S)) + places.longer_than(0.0))
        return Steady(per_second=per_second, in_flight=in_flight, late=late)
    late = 0.0
    for one, own in zip(traffic.prompts, took, strict=True):
        left = traffic.first_s - own - STEPS_WAITED * (step + pace.launch) - pace.outside(one, in_flight)
        late += 1.0 if left <= 0 else min(1.0, prompts.longer_than(left) + places.longer_than(left))
    return Steady(per_second=per_second, in_flight=in_flight, late=late / len(took))


@dataclass(frozen=True, slots=True)
class _Prompts:
    """The queue of those whose prompts are computed one after another."""

    busy: float
    """Share of the time in which one is."""
    decay: float
    """By which the share of those that wait longer falls, for each second."""

    @staticmethod
    def of(took: list[float], per_second: float) -> _Prompts:
        mean = sum(took) / len(took)
        squares = sum(one * one for one in took) / len(took)
        busy = per_second * mean
        return _Prompts(busy, 2 * (1 - busy) * mean / squares if squares else 0.0)

    def longer_than(self, seconds: float) -> float:
        """The share that waits longer."""
        return 1.0 if self.busy >= 1 else self.busy * exp(-self.decay * seconds)


@dataclass(frozen=True, slots=True)
class _Places:
    """The queue of those who wait for a place."""

    waiting: float
    """Share that finds none at once."""
    decay: float

    @staticmethod
    def of(places: float, in_flight: float, life: float) -> _Places:
        if in_flight >= places:
            return _Places(1.0, 0.0)
        return _Places(_erlang_c(int(places), in_flight), (places - in_flight) / life)

    def longer_than(self, seconds: float) -> float:
        return self.waiting * exp(-self.decay * seconds)


def _erlang_c(places: int, load: float) -> float:
    """The share of those that come who find all places taken."""
    if load >= places:
        return 1.0
    blocked = 1.0
    for count in range(1, places + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1 - load / places * (1 - blocked))
