"""What a policy is given at a tick and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from plimsoll.control.record import Act
from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate.tuning import Try

FRESH_S = 300.0
"""Samples of a live replica older than this are none, as Prometheus itself has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """Of one set of several."""

    replicas: tuple[Replica, ...]
    told: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    now: float
    replicas: tuple[Replica, ...]
    latest: Mapping[str, PodSample]
    """The newest sample of each replica that ever had one."""
    arrived: tuple[PodSample, ...]
    """Since the last tick."""
    told: int
    least: int
    most: int
    waiting: float | None = None
    """Requests that a gateway holds, as of its last scrape; None where no query asks it."""
    written: int = 0
    """Times that the wake annotation was written."""
    sets: tuple[SetView, ...] = ()
    """In the order of the plan, where it has several: whose the replicas are."""
    tried: frozenset[str] = frozenset()
    """Replicas that run with a change that is tried."""

    @property
    def ready(self) -> tuple[Replica, ...]:
        return tuple(one for one in self.replicas if one.state is ReplicaState.READY)

    @property
    def present(self) -> int:
        """All but those that leave."""
        return sum(1 for one in self.replicas if one.state is not ReplicaState.LEAVING)

    @property
    def pending(self) -> int:
        """On their way."""
        return self.present - len(self.ready)

    def samples(self) -> tuple[PodSample, ...]:
        """The newest of each ready replica, where it is not too old."""
        found = (self.latest.get(one.id) for one in self.ready)
        return tuple(one for one in found if one is not None and self.now - one.at <= FRESH_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a law said of the replicas that there are."""

    wanted: int | None
    """As many as the load asks for; None where nothing says it."""
    waits: bool
    """What holds those beyond that is a wait that is not over, and not that those left would be too few."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How many replicas, and why."""

    replicas: int
    reason: str
    message: str
    each: tuple[int, ...] | None = None
    """By set; None leaves it to the plan."""
    change: Try | None = None
    acts: tuple[Act, ...] = ()
    """What was done about engines' settings, and why."""
    asked: Asked | None = None
    """None of policies that do not say it, and of several sets, whose replicas do not carry alike."""


class Policy(Protocol):
    name: str
    settings: Mapping[str, float]
    """What it runs with, as printed."""
    histograms: bool
    """Whether it reads histograms."""

    def decide(self, view: View) -> Wish | None:
        """None leaves things as they are."""
        ...
