"""What a rollout comes to: the sets that should exist now, with how many replicas, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plimsoll.facts.serving import PodSeen

State = Literal["Serving", "Starting", "Canary", "Draining", "Failed"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A set of the plan."""

    name: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    replicas: int
    state: State
    reason: str = ""
    planned: bool = False
    """Whether it is a set of the plan, and not one that is being left or was rolled back to."""
    beyond: int = 0
    """How many of them are beyond the wanted number, while others leave their nodes, or cannot go before those that serve."""
    groups: tuple[int, ...] = ()
    """Numbers of the replicas, where each is an object of its own; fewer than `replicas` while one was let go."""
    let_go: tuple[PodSeen, ...] = ()
    """Leaders of groups to be let go, where those have no objects of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """Why none that serves goes before another one has come, however long that finds no room."""

    why: str
    """With what follows of it, in a clause each."""
    unless: str
    """The field with which one would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    targets: tuple[Target, ...]
    """Sets that should exist. Any other set that is seen may go."""
    reason: str
    """A reason of condition Progressing."""
    message: str
    settled: bool = False
    """Every replica wanted is ready, on the sets of the plan."""
    failed: tuple[tuple[str, str], ...] = ()
    """Sets that are given up now, each with the reason, which is written into its revision."""
    first: First | None = None
    """None where one that serves goes for one that finds no room."""
    stay: int | None = None
    """How many pods evictions must leave; None: as many as are wanted."""
    look_again_seconds: float | None = None
    """In how many seconds time alone would change the answer; None where it would not."""
