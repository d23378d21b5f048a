"""All policies by name, each with its main parameter and the one set beside it: what is usual, and what a benchmark tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.policies.base import Policy
from plimsoll.simulate.policies.dynamo import FLOOR_EVERY_S, Dynamo, Profile
from plimsoll.simulate.policies.knative import STABLE_S, Kpa
from plimsoll.simulate.policies.kubernetes import DOWN_WINDOW_S, Hpa, Keda
from plimsoll.simulate.policies.oracle import Oracle, work_of
from plimsoll.simulate.policies.plimsoll import Plimsoll
from plimsoll.simulate.policies.reference import Reference
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.policies.wva import GAP, QUEUE_FULL, Followed, Wva1, Wva2
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a policy is made for. Only the oracle looks at what will arrive, and only it at the world's true times."""

    scenario: Scenario
    world: World
    arrivals: Arrivals
    work: tuple[float, ...] = field(init=False)
    """Replica-seconds of the first set that arrive in each minute."""
    carry: tuple[tuple[int, float], ...] = field(init=False)
    """Where there are several sets: of each, how many replicas there may be, and what one carries in replicas of the first set."""

    def __post_init__(self) -> None:
        work = tuple(work_of(self.arrivals, self.world))
        object.__setattr__(self, "work", work)
        sites = self.world.sites if self.world.beside else ()
        theirs = [
            sum(work_of(self.arrivals, replace(self.world, times=one.times, limits=one.limits)))
            for one in sites
        ]
        carry = tuple(
            (one.room, sum(work) / each if each else 1.0) for one, each in zip(sites, theirs, strict=True)
        )
        object.__setattr__(self, "carry", carry)

    def replicas(self, units: float) -> int:
        """How many replicas carry as much as `units` of the first set, where the first set fills first."""
        if not self.carry:
            return ceil(units)
        found, left = 0, units
        for room, each in self.carry:
            count = min(room, ceil(left / each)) if left > 0 else 0
            found, left = found + count, left - count * each
        return found + max(0, ceil(left))


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What users of a policy set beside its main parameter."""

    name: str
    usual: float
    tried: tuple[float, ...]


NO_SECOND: Final = Second(name="", usual=0.0, tried=(0.0,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    parameter: str
    usual: float
    tried: tuple[float, ...]
    """Values of the parameter in the order of rising cost."""
    make: Callable[[Stage, float, float], Policy]
    """Makes the policy with a main and a second parameter; without a second one, its value has no meaning."""
    second: Second = NO_SECOND
    hindsight: bool = False
    """Its parameter is found on the very trace that it is scored on: nobody could run it."""
    sleeps: bool = False
    """Whether it goes to no replica where the resource asks for that."""
    paced: bool = False
    """Whether it decides as often as the admin's config says; others do at every scrape."""

    def named(self, parameter: float, second: float) -> dict[str, float]:
        """The parameters of a setting by name, for people."""
        return {self.parameter: parameter} | ({self.second.name: second} if self.second.name else {})


def _plimsoll(stage: Stage, target: float, _second: float) -> Policy:
    scenario = stage.scenario
    return Plimsoll(
        capacity=scenario.capacity,
        slo=scenario.slo,
        hardware=scenario.hardware,
        target=target,
        up_window_s=scenario.up_window_s,
        down_window_s=scenario.down_window_s,
        interval_s=scenario.interval_s,
        zero=scenario.zero,
        sets=scenario.sets,
        limits=scenario.limits_together,
        tunable=scenario.tunable,
    )


def _profile(scenario: Scenario) -> Profile:
    return Profile(times=scenario.times, limits=scenario.limits, slo=scenario.slo)


def _static(name: str) -> Callable[[Stage, float, float], Policy]:
    return lambda _stage, replicas, _second: Static(round(replicas), name)


STATIC: Final = ("static_peak", "static_mean")
_DOWN_WINDOW: Final = Second(name="down_window_s", usual=DOWN_WINDOW_S, tried=(60, 300, 900))
_KINDS: Final = (
    Kind(
        name="plimsoll",
        parameter="target",
        usual=0.7,
        tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=_plimsoll,
        sleeps=True,
        paced=True,
    ),
    Kind(
        name="static_peak",
        parameter="replicas",
        usual=0,
        tried=(),
        make=_static("static_peak"),
        hindsight=True,
    ),
    Kind(
        name="static_mean",
        parameter="replicas",
        usual=0,
        tried=(),
        make=_static("static_mean"),
        hindsight=True,
    ),
    Kind(
        name="hpa",
        parameter="target_kv",
        usual=0.7,
        tried=(0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2),
        second=_DOWN_WINDOW,
        make=lambda _stage, target, window: Hpa(target, window),
    ),
    Kind(
        name="keda",
        parameter="waiting_per_replica",
        usual=5,
        tried=(10, 5, 2, 1, 0.5, 0.2),
        second=_DOWN_WINDOW,
        make=lambda _stage, threshold, window: Keda(threshold, window),
    ),
    Kind(
        name="kpa",
        parameter="target_share",
        usual=0.7,
        tried=(0.9, 0.7, 0.5, 0.4, 0.3, 0.2),
        second=Second(name="stable_s", usual=STABLE_S, tried=(60, 180, 600)),
        make=lambda stage, share, stable: Kpa(stage.scenario.limits.max_num_seqs, share, stable),
    ),
    Kind(
        name="wva1",
        parameter="kv_full",
        usual=0.8,
        tried=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3),
        second=Second(name="queue_full", usual=QUEUE_FULL, tried=(4, 5, 10)),
        make=lambda _stage, full, queue: Followed(Wva1(full, queue)),
    ),
    Kind(
        name="wva2",
        parameter="up",
        usual=0.85,
        tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3),
        second=Second(name="gap", usual=GAP, tried=(0.05, 0.15, 0.25)),
        make=lambda stage, up, gap: Followed(Wva2(stage.scenario.limits, up, gap)),
    ),
    Kind(
        name="dynamo",
        parameter="capacity_share",
        usual=1.0,
        tried=(1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2),
        second=Second(name="floor_every_s", usual=FLOOR_EVERY_S, tried=(60, 180, 600)),
        make=lambda stage, share, every: Dynamo(_profile(stage.scenario), share, every),
    ),
    Kind(
        name="reference",
        parameter="target",
        usual=0.7,
        tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda stage, target, _second: Reference(
            capacity=stage.scenario.capacity, slo=stage.scenario.slo, target=target
        ),
    ),
    Kind(
        name="oracle",
        parameter="full",
        usual=0.6,
        tried=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda stage, full, _second: Oracle(stage.work, full, stage.replicas),
        hindsight=True,
    ),
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
SWEPT: Final = tuple(kind.name for kind in _KINDS if kind.name != "plimsoll" and not kind.hindsight)
"""Policies beside ours whose parameters a benchmark may tune."""
