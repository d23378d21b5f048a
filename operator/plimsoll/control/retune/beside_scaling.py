"""What a retune is told of the scaling that goes on beside it. The operator's loop and the simulator both ask here, so they mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from plimsoll.control.decision import Told, is_limited
from plimsoll.control.demand import beside
from plimsoll.control.gate import gate_of
from plimsoll.control.law import Law
from plimsoll.control.learning import lead_s
from plimsoll.control.memory import RoleMemory
from plimsoll.control.retune.scene import Scene
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Role, ServingSet


def beside_scaling(
    scene: Scene,
    *,
    role: RoleMemory,
    told: Iterable[Told],
    sets: Sequence[ServingSet],
    name: str,
    signals: Signals,
    law: Law,
    counted: bool,
    more: bool,
) -> Scene:
    """The scene with what this look has decided about the number of replicas.

    `role` is what is remembered after that decision: a wish that came up in this look counts in it, and so do replicas that it adds. `told`
    are its conditions, `sets` all sets of the plan of which `name` is looked at, and `signals` those of all replicas. `counted`: the load
    decides how many there are; `more`: it may have further ones, and they find devices.
    """
    each, others = beside(tuple(sets), name)
    return replace(
        scene,
        wants_more=role.over_since is not None,
        wanted=role.wanted / each if counted and role.wanted is not None else None,
        beside=others,
        more_replicas=more and not is_limited(told),
        start_s=lead_s(role, Role(sets=(scene.serving,), signals=signals), law),
        data=gate_of(signals, law).retunes,
        scaled_at=role.up_at,
    )
