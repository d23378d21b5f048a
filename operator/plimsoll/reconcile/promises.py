"""Devices for pods that are not on a node yet: reserved between turns, so that no other deployment's plan counts on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.facts.groups import Reservation
from plimsoll.facts.serving import Serving, SetSeen, Stage
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.reconcile.seen import Seen


def promises(seen: Seen, made: Plan, sets: Iterable[str]) -> tuple[Reservation, ...]:
    """What a plan's pods still have to be given. `sets` are the names of the plan's sets, in its order."""
    return tuple(
        found
        for name, chosen in zip(sets, made.sets, strict=True)
        for found in _to_come(seen, chosen, chosen.replicas, seen.serving.set_named(name))
    )


def standing(seen: Seen) -> tuple[Reservation, ...]:
    """What the pods of the sets that exist still have to be given, where a turn writes none: their objects go on making pods."""
    # A set keeps where its first replicas went; the plans know better.
    plans = [plan for plan in (seen.kept.previous, seen.kept.plan) if plan is not None]
    planned = {chosen.digest: chosen for plan in plans for chosen in plan.sets}
    entries = {name: revision.entry for name, revision in seen.revisions.items()}
    return tuple(
        found
        for there in seen.serving.sets
        if (entry := entries.get(there.name)) is not None
        for found in _to_come(seen, planned.get(entry.digest, entry), there.replicas, there)
    )


def _to_come(seen: Seen, chosen: PlanSet, replicas: int, there: SetSeen | None) -> Iterator[Reservation]:
    owner = f"{seen.deployment.namespace}/{seen.deployment.name}"
    placed = 0 if there is None else there.placed
    missing = replicas * chosen.pods_per_replica - placed
    for placement in chosen.placements:
        # It is not known in which pool those pods are that have a node, so in each pool devices are held for all that may still come there.
        pods = min(missing, placement.replicas * chosen.pods_per_replica)
        if pods > 0:
            devices = chosen.resources.devices
            yield Reservation(deployment=owner, pool=placement.pool, devices=devices, pods=pods)


def lacks_nodes(serving: Serving) -> bool:
    """Whether any pod is without a node, so that a change of the fleet may help."""
    return any(pod.stage is Stage.UNSCHEDULED for seen in serving.sets for pod in seen.pods)
