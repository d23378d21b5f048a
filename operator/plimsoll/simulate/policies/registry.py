"""All policies by name, each with its one main parameter: what it is usually set to, and what a benchmark tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.policies.base import Policy
from plimsoll.simulate.policies.dynamo import Dynamo
from plimsoll.simulate.policies.knative import Kpa
from plimsoll.simulate.policies.kubernetes import Hpa, Keda
from plimsoll.simulate.policies.oracle import Oracle, work_of
from plimsoll.simulate.policies.plimsoll import Plimsoll
from plimsoll.simulate.policies.reference import Reference
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.policies.wva import Wva1, Wva2
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a policy is made for. Only the oracle looks at what will arrive, and only it at the world's true times."""

    scenario: Scenario
    world: World
    arrivals: Arrivals
    work: tuple[float, ...] = field(init=False)
    """Replica-seconds that arrive in each minute."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", tuple(work_of(self.arrivals, self.world)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    parameter: str
    usual: float
    tried: tuple[float, ...]
    """Values of the parameter in the order of rising cost."""
    make: Callable[[Stage, float], Policy]
    hindsight: bool = False
    """Its parameter is found on the very trace that it is scored on: nobody could run it."""


def _plimsoll(stage: Stage, target: float) -> Policy:
    scenario = stage.scenario
    return Plimsoll(
        capacity=scenario.capacity,
        slo=scenario.slo,
        hardware=scenario.hardware,
        target=target,
        up_window_s=scenario.up_window_s,
        down_window_s=scenario.down_window_s,
    )


def _static(name: str) -> Callable[[Stage, float], Policy]:
    return lambda _stage, replicas: Static(round(replicas), name)


STATIC: Final = ("static_peak", "static_mean")
_KINDS: Final = (
    Kind(
        name="plimsoll", parameter="target", usual=0.7, tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3), make=_plimsoll
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
        make=lambda _stage, target: Hpa(target),
    ),
    Kind(
        name="keda",
        parameter="waiting_per_replica",
        usual=5,
        tried=(10, 5, 2, 1, 0.5, 0.2),
        make=lambda _stage, threshold: Keda(threshold),
    ),
    Kind(
        name="kpa",
        parameter="target_share",
        usual=0.7,
        tried=(0.9, 0.7, 0.5, 0.4, 0.3, 0.2),
        make=lambda stage, share: Kpa(stage.scenario.limits.max_num_seqs, share),
    ),
    Kind(
        name="wva1",
        parameter="kv_full",
        usual=0.8,
        tried=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda _stage, full: Wva1(full),
    ),
    Kind(
        name="wva2",
        parameter="up",
        usual=0.85,
        tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda _stage, up: Wva2(up),
    ),
    Kind(
        name="dynamo",
        parameter="capacity_share",
        usual=1.0,
        tried=(1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2),
        make=lambda stage, share: Dynamo(stage.scenario.slo, stage.scenario.requests_per_second, share),
    ),
    Kind(
        name="reference",
        parameter="target",
        usual=0.7,
        tried=(0.85, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda stage, target: Reference(
            capacity=stage.scenario.capacity, slo=stage.scenario.slo, target=target
        ),
    ),
    Kind(
        name="oracle",
        parameter="full",
        usual=0.6,
        tried=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3),
        make=lambda stage, full: Oracle(stage.work, full),
        hindsight=True,
    ),
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
SWEPT: Final = tuple(kind.name for kind in _KINDS if kind.name != "plimsoll" and not kind.hindsight)
"""Ways beside ours, whose parameter a benchmark may choose for them."""
