"""The room that the fleet has for further replicas, by what one of them needs; counted once a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.config import OperatorConfig
from plimsoll.api.config_fleet import PROVISION_S, provision_of
from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.placing.placement import barring, room
from plimsoll.planning.plan import Hardware
from plimsoll.reconcile.loop.subject import Planned


@dataclass(frozen=True, slots=True)
class Ground:
    """The room that the fleet has for replicas of one kind."""

    key: str
    """The same for all sets that find the same room."""
    replicas: int
    """How many further replicas find devices, on nodes that could still be made too."""
    provision_s: float | None
    """How long a node takes to come, 0 where devices are free; None where there is no room and none is to come."""
    declared: bool
    """Whether a node may be on its way, as far as is known."""


class Grounds:
    """Room by kind of replica, counted once a tick."""

    def __init__(self, inventory: Inventory, config: OperatorConfig) -> None:
        self._inventory = inventory
        self._provision = provision_of(config.node_classes)
        self._known: dict[tuple[object, ...], Ground] = {}
        self._free: dict[str, float] = {}
        self._parts: dict[str, frozenset[str]] = {}
        self.gpus = sum((pool.nodes * pool.devices_per_node / pool.sharing for pool in inventory.pools), 0.0)

    def of(
        self, hardware: Hardware, shape: Shape, layout: Layout, bears: tuple[Toleration, ...] = ()
    ) -> Ground:
        """`bears` are the tolerations of its pods."""
        kind = (hardware.gpu, hardware.partition, hardware.sharing, hardware.via_dra,
                tuple(sorted(hardware.selector.items())), shape, layout, bears)  # fmt: skip
        found = self._known.get(kind)
        if found is None:
            pools = [
                pool for pool in self._inventory.pools if _takes(pool, hardware) and not barring(pool, bears)
            ]
            found = self._known[kind] = self._ground(pools, shape, layout)
        return found

    def _ground(self, pools: Sequence[Pool], shape: Shape, layout: Layout) -> Ground:
        there = sum(room(pool.there, shape, layout) for pool in pools)
        coming = [pool for pool in pools if pool.declared_nodes or _has_come(pool)]
        waits = [self._provision.get(pool.node_class or "", PROVISION_S) for pool in coming]
        key = f"{','.join(pool.key for pool in pools)} by {shape.pods} of {shape.devices} {layout}"
        self._parts[key] = frozenset(pool.key for pool in pools)
        return Ground(
            key=key,
            replicas=sum(room(pool, shape, layout) for pool in pools),
            provision_s=0.0 if there else min(waits, default=None),
            declared=bool(coming),
        )

    def for_set(self, planned: Planned) -> Ground:
        ground = self.of(planned.hardware, planned.shape, planned.layout, planned.tolerations)
        self._free[ground.key] = ground.replicas * planned.gpus
        return ground

    def free(self) -> Mapping[str, float]:
        """GPUs that further replicas would find, by ground, of those grounds that sets were asked for."""
        return dict(self._free)

    def parts(self) -> Mapping[str, frozenset[str]]:
        """The pools of nodes that each ground is made up of."""
        return dict(self._parts)


def _takes(pool: Pool, hardware: Hardware) -> bool:
    labels = {**pool.labels, **pool.pins}
    return (
        pool.gpu.name == hardware.gpu
        and pool.partition == hardware.partition
        and pool.sharing == hardware.sharing
        and pool.via_dra == hardware.via_dra
        and all(labels.get(name) == value for name, value in hardware.selector.items())
    )


def _has_come(pool: Pool) -> bool:
    """Whether nodes of a class are there and not ready yet: those that have just been made are so for a while."""
    return pool.node_class is not None and "not ready" in pool.unavailable
