"""Everything around the engines that a policy does not decide: hardware, nodes, start-ups, clients, scrapes.

It is one frozen value, drawn by seed, and the same for every policy of a comparison. Its times are drawn from the lists and spreads
given here, never taken from the planner's own belief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from random import Random
from typing import Final

from plimsoll.control.situation import Slo
from plimsoll.simulate.steps import Limits, StepTimes, drawn
from plimsoll.simulate.tuning import Variant

STARTS_S: Final = (
    65, 68, 72, 75, 78, 82, 85, 88, 92, 95, 98, 102, 105, 108, 112, 115, 118, 121, 125, 128,
    132, 135, 139, 142, 148, 155, 160, 168, 175, 185, 195, 210, 225, 240, 260, 290, 330, 390, 480, 1200,
)  # fmt: skip
"""From GPU to ready: most take 65 to 139 s, as published for a 32B model, some 2 to 7 minutes, one in forty 20 minutes."""
START_P90_S: Final = float(STARTS_S[ceil(0.9 * len(STARTS_S)) - 1])
SCRAPE_S: Final = 15.0
DECIDE_AFTER_S: Final = 5.0
"""A policy looks this long after a scrape, once between two scrapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Who calls a Service: connections stay with the replica they found, and only new ones find new replicas. Where engines close them after
    each answer, each request finds one anew."""

    closed: bool = False
    connections: int = 200
    lifetime_s: float = 300.0
    """Mean; a client then connects again, to any ready replica."""


KEPT: Final = Clients()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrapes:
    lost: float = 0.02
    late: float = 0.02
    """Share of the samples that arrive one interval late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Room for replicas, counted in replicas."""

    ready: int
    """On nodes that are there."""
    growing: int = 0
    """On nodes that are made when somebody waits for them."""
    node_s: float = 150.0
    """Mean time until such a node is there."""
    devices: float = 1.0
    """Of one replica."""

    @property
    def most(self) -> int:
        return self.ready + self.growing


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What replicas of one set of the plan are, and how many there is room for."""

    times: StepTimes
    limits: Limits
    hardware: Hardware
    allowed: int | None = None
    """Replicas that the budget leaves to it after the sets before it; None: any number."""

    @property
    def room(self) -> int:
        most = self.hardware.most
        return most if self.allowed is None else min(most, self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`times`, `limits` and `hardware` are those of the plan's first set."""

    seed: int
    times: StepTimes
    limits: Limits
    slo: Slo
    hardware: Hardware
    clients: Clients = Clients()
    scrapes: Scrapes = Scrapes()
    crashes_per_replica_day: float = 0.0
    drain_s: float = 300.0
    """After which a replica that was let go ends, whatever still runs on it."""
    allowed: int | None = None
    """Replicas of the first set that the budget leaves, where there are others beside it."""
    beside: tuple[Site, ...] = ()
    """Further sets, on other hardware."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """All sets, in the order of the plan."""
        first = Site(times=self.times, limits=self.limits, hardware=self.hardware, allowed=self.allowed)
        return first, *self.beside

    def varied(self, variant: Variant, place: int = 0) -> Site:
        """A set with other settings, as far from the planner's belief as the set without them."""
        times, limits = drawn(variant.times, variant.limits, _random(self.seed, place))
        return replace(self.sites[place], times=times, limits=limits)

    def start_s(self, ordinal: int) -> float:
        """How long the n-th replica that is made takes to start; the same for every policy."""
        return float(Random(f"start {self.seed} {ordinal}").choice(STARTS_S))  # noqa: S311 - repeatable by its seed

    def node_s(self, ordinal: int, hardware: Hardware | None = None) -> float:
        random = Random(f"node {self.seed} {ordinal}")  # noqa: S311
        return (hardware or self.hardware).node_s * random.uniform(0.7, 1.6)


def draw_world(
    *,
    seed: int,
    times: StepTimes,
    limits: Limits,
    slo: Slo,
    hardware: Hardware,
    crashes_per_replica_day: float = 0.0,
    clients: Clients = KEPT,
    allowed: int | None = None,
    beside: Sequence[Site] = (),
) -> World:
    """The world of one seed, around the planner's belief, from which each set differs in its own way."""
    times, limits = drawn(times, limits, _random(seed))
    others = []
    for place, site in enumerate(beside, 1):
        one, other = drawn(site.times, site.limits, _random(seed, place))
        others.append(replace(site, times=one, limits=other))
    return World(
        seed=seed,
        times=times,
        limits=limits,
        slo=slo,
        hardware=hardware,
        crashes_per_replica_day=crashes_per_replica_day,
        clients=clients,
        allowed=allowed,
        beside=tuple(others),
    )


def _random(seed: int, place: int = 0) -> Random:
    """The randomness of one set's world."""
    return Random(f"world {seed} set {place}" if place else f"world {seed}")  # noqa: S311
