"""What is decided at one tick, with everything that is told about it: the noun that operator, simulator and tests share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from plimsoll import names
from plimsoll.control.memory import Memory
from plimsoll.values import light

RISING: Final = "Rising"
"""The reason while more is wanted and scaling.upWindowSeconds is not over."""


class Action(StrEnum):
    HOLD = "hold"
    MOVE = "move"
    """As many as there are, in other sets."""
    UP = "up"
    DOWN = "down"
    ZERO = "zero"
    WAKE = "wake"


@dataclass(frozen=True, slots=True)
class Told:
    """A condition of the resource without its times; type and reason are those of api/conditions."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    besides: tuple[str, ...] = ()
    """Further reasons, which the message tells too."""


def finds_no_gpus(told: Iterable[Told]) -> bool:
    """Whether sets find no more GPUs, whatever else keeps the load from getting the replicas that it asks for."""
    return any(one.type == names.SCALING and "GPUsUnavailable" in (one.reason, *one.besides) for one in told)


def is_limited(told: Iterable[Told]) -> bool:
    """Whether anything keeps the load from getting the replicas that it asks for."""
    return any(one.type == names.SCALING and one.status == "True" for one in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWish:
    """How many replicas one set is to have: the number itself, never a difference."""

    set: str
    replicas: int


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many replicas each view asks for, before bounds; None: it cannot say. What `explain` and timelines show."""

    tokens: float | None = None
    running: float | None = None
    prompts: float | None = None
    latency: float | None = None
    forecast: float | None = None
    gateway: float | None = None
    """By what waits at the gateway alone, while no replica serves; else that is a part of the others."""
    lead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Awake:
    """Why one that may sleep does not. It says until when or what has to change, and not for how long it has been so, as whoever tells of it
    writes it down at each change."""

    why: str = ""
    """Empty where nothing is to be said."""
    condition: str = ""
    """The type of the condition that `why` refers to; empty where it refers to none."""


SAYS_NOTHING: Final = Awake()


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDecision:
    role: str
    action: Action
    wishes: tuple[SetWish, ...]
    """Every set of the role, in the order of the situation."""
    wanted: int
    """Replicas that the load asks for, before bounds and budgets."""
    reason: str
    """One stable word."""
    message: str
    """One sentence, with the figures that decided."""
    need: Need = Need()
    early: bool = False
    """Whether replicas stay only because it is too early for them to go."""
    awake: Awake = SAYS_NOTHING
    """Why it does not sleep now, where it may sleep and does not."""

    @property
    def wished(self) -> Mapping[str, int]:
        """By set."""
        return {wish.set: wish.replicas for wish in self.wishes}

    @property
    def replicas(self) -> int:
        return sum(wish.replicas for wish in self.wishes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    name: str
    roles: tuple[RoleDecision, ...]
    conditions: tuple[Told, ...]
    memory: Memory
    """To be kept and handed in again; it outlives the program."""

    @property
    def wishes(self) -> tuple[SetWish, ...]:
        return tuple(wish for role in self.roles for wish in role.wishes)

    @property
    def replicas(self) -> int:
        return sum(role.replicas for role in self.roles)
