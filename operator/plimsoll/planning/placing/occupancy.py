"""What is left of the pools once a set's replicas have found their places, for the next set or the next deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from plimsoll.facts.inventory import Pool
from plimsoll.planning.layouts.layout import Shape
from plimsoll.planning.placing.placement import (
    Slot,
    has_disk,
    has_memory,
    holds_pod,
    room,
    room_when_empty,
    same_devices,
    spread,
    take,
)
from plimsoll.planning.plan import Placement, PlanSet


def occupied(pool: Pool, placement: Placement, shape: Shape, owner: str) -> Pool:
    """The pool after replicas were placed in it: they take devices that the owner's pods hold already first, then free ones, then those
    of nodes that may be made."""
    pods = placement.replicas * shape.pods
    held = pool.held.get(owner, 0)
    own = min(pods, held // shape.devices)
    free, coming = dict(pool.free), dict(pool.coming)
    for _ in range(pods - own):
        if not any(size >= shape.devices and nodes for size, nodes in free.items()):
            made = min(
                (size for size, nodes in coming.items() if size >= shape.devices and nodes), default=None
            )
            if made is None:
                break
            coming[made] -= 1
            free[made] = free.get(made, 0) + 1
        free = take(free, Shape(1, shape.devices), 1)
    return replace(pool.having(free, coming), held={**pool.held, owner: held - own * shape.devices})


class Ground:
    """The devices that one deployment may use, as its sets take them one after the other."""

    def __init__(self, slots: Sequence[Slot], owner: str) -> None:
        self.slots = slots
        self.owner = owner
        self.pools = {pool.key: pool for slot in slots for pool in slot.pools}

    def occupy(self, chosen: PlanSet, placements: Iterable[Placement]) -> None:
        """Takes the devices of a set's replicas out of the pools."""
        for placement in placements:
            pool = self.pools.get(placement.pool)
            if pool is not None:
                self.pools[pool.key] = occupied(pool, placement, chosen.shape, self.owner)

    def room(self, chosen: PlanSet) -> int:
        """How many further replicas of a set find devices."""
        return sum(room(pool, chosen.shape, chosen.layout, self.owner) for pool in self.hosts(chosen))

    def place(self, chosen: PlanSet, replicas: int) -> tuple[Placement, ...]:
        """Places so many further replicas, and says where."""
        placements = spread(self.hosts(chosen), chosen.shape, chosen.layout, replicas, self.owner)
        self.occupy(chosen, placements)
        return placements

    def could_hold(self, chosen: PlanSet) -> bool:
        """Whether one replica would find devices if nothing else ran on them."""
        asked = chosen.resources
        return any(
            room_when_empty(pool, chosen.shape, chosen.layout)
            for pool in self._alike(chosen)
            if has_memory(pool, asked) and has_disk(pool, asked, self.owner)
        )

    def hosts(self, chosen: PlanSet) -> list[Pool]:
        """Pools of the set's devices, with what is taken by now, whose hosts have enough memory and disk for a pod."""
        alike = [self.pools[pool.key] for pool in self._alike(chosen)]
        return [pool for pool in alike if holds_pod(pool, chosen.resources, self.owner)]

    def _alike(self, chosen: PlanSet) -> list[Pool]:
        """Pools of the set's devices, as they were before any set took some."""
        return [
            pool for slot in self.slots if same_devices(slot.hardware, chosen.hardware) for pool in slot.pools
        ]
