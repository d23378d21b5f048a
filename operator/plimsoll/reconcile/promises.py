"""Devices that pods of a plan will take and that are on no node yet: reserved for them between turns, so that nobody else plans on them."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.facts.groups import Reservation
from plimsoll.facts.serving import Serving, Stage
from plimsoll.planning.plan import Plan


def promises(owner: str, made: Plan, sets: Iterable[str], serving: Serving) -> tuple[Reservation, ...]:
    """`sets` are the names of the plan's, in its order."""
    found = []
    for name, chosen in zip(sets, made.sets, strict=True):
        there = serving.set_named(name)
        placed = 0 if there is None else sum(pod.node is not None for pod in there.pods)
        missing = chosen.replicas * chosen.pods_per_replica - placed
        for placement in chosen.placements:
            # Nobody tells in which pool those are that have a node, so each pool is held for all that may still come to it.
            pods = min(missing, placement.replicas * chosen.pods_per_replica)
            if pods > 0:
                devices = chosen.resources.devices
                found.append(Reservation(deployment=owner, pool=placement.pool, devices=devices, pods=pods))
    return tuple(found)


def waits(serving: Serving) -> bool:
    """Whether pods of it have no node: a change of the fleet may help."""
    return any(pod.stage is Stage.UNSCHEDULED for seen in serving.sets for pod in seen.pods)
