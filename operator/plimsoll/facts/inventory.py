"""The fleet as one frozen value: pools of alike nodes, what is free on them, and what could not be understood.

Built from Kubernetes objects, a snapshot file or a node list alone (`observe`), kept current node by node; planning reads
only this. A pool holds nodes that planning cannot tell apart, so its work grows with the kinds of nodes, not their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from plimsoll.facts.gpus import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes alike in all that planning reads. Frees are counted, never listed: ten thousand nodes make a short value."""

    key: str
    """Stable and readable: product, devices a node, zone, and a short digest of the rest."""
    gpu: Gpu
    memory_bytes: int
    """Of one schedulable device (a MIG slice's own, the whole card's when time-sliced), as labels or the driver say it."""
    resource: str
    """What a pod requests: nvidia.com/gpu, nvidia.com/mig-3g.40gb, amd.com/gpu, habana.ai/gaudi, cpu, or a DRA class."""
    devices_per_node: int
    free: Mapping[int, int]
    """How many nodes have exactly this many free devices: {8: 3, 2: 1}. Full nodes are under 0."""
    sharing: int = 1
    """Pods that may share one device by time slicing or MPS; devices_per_node and free count the shares then."""
    partition: str | None = None
    """MIG or compute-partition profile, e.g. 3g.40gb."""
    card: str | None = None
    """Catalogue name of the card that a partition is a part of."""
    via_dra: bool = False
    zone: str | None = None
    fabric: str | None = None
    """NVLink domain (clique) where the devices of several nodes form one; nodes of one pool share it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that all its nodes carry, for node selectors and affinity."""
    taints: tuple[Taint, ...] = ()
    driver: str | None = None
    host_memory_bytes: int | None = None
    host_cpus: int | None = None
    declared_nodes: int = 0
    """Nodes that do not exist yet but may be made on demand (the admin's node classes); they count as wholly free, and are
    not in `free`, which is what is there now."""
    promised: Mapping[int, int] = field(default_factory=dict)
    """Of those nodes: how many will have exactly this many free devices when they come, since others were promised the rest."""
    price_per_hour: str | None = None
    """A device-hour, a decimal string as the admin wrote it; None is unknown, never zero."""
    node_class: str | None = None
    """The admin's node class these nodes belong to."""
    rdma: bool | None = None
    """Whether nodes reach each other by RDMA, as the node class or a label says; None is unknown."""
    arch: str | None = None
    """amd64, arm64, as the nodes say; images differ."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """The labels by which these devices were recognised: a pod that selects them meets no other product or partition."""
    claim_selector: str | None = None
    """The same for devices by claim: the expression a claim's selector needs."""
    unavailable: Mapping[str, int] = field(default_factory=dict)
    """Nodes that are there but take nothing new, by why: {"cordoned": 2, "not ready": 1}. They are not in `free`."""
    held: Mapping[str, int] = field(default_factory=dict)
    """Devices that pods of this operator's deployments hold here, by namespace/name."""
    host_free_memory_bytes: int | None = None
    """On the node of most: memory that no pod has asked for."""
    host_free_cpu_millis: int | None = None
    host_disk_bytes: int | None = None
    """On the node of most: local disk that pods may ask for; None where a node does not say."""
    host_free_disk_bytes: int | None = None
    """On the node of most among those with free devices: local disk that no pod has asked for; None where it is not known, as on
    hosts without accelerators, whose pools do not say whose pods are there."""
    notes: tuple[str, ...] = ()
    """What a reader of this pool should be told, e.g. a memory label believed against the catalogue."""

    @property
    def nodes(self) -> int:
        return sum(self.free.values())

    @property
    def free_devices(self) -> int:
        return sum(size * count for size, count in self.free.items())

    @property
    def coming(self) -> Mapping[int, int]:
        """Nodes that may be made, as `free` has those that are there."""
        if not self.declared_nodes:
            return {}
        whole = self.declared_nodes - sum(self.promised.values())
        return {**self.promised, self.devices_per_node: whole} if whole else self.promised

    def having(self, free: Mapping[int, int], coming: Mapping[int, int]) -> Pool:
        """With so much free on the nodes that are there and on those that may be made."""
        return replace(
            self,
            free={size: nodes for size, nodes in sorted(free.items()) if nodes},
            declared_nodes=sum(coming.values()),
            promised={
                size: nodes
                for size, nodes in sorted(coming.items())
                if nodes and size < self.devices_per_node
            },
        )

    @property
    def there(self) -> Pool:
        """The same without nodes that may be made."""
        return self.having(self.free, {}) if self.declared_nodes else self


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryProblem:
    """A node planning must leave out, with the label or value that would let it in."""

    node: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    pools: tuple[Pool, ...]
    """Sorted by key, so that the order nodes came in can never matter."""
    problems: tuple[InventoryProblem, ...] = ()
    free_is_assumed: bool = False
    """True where pods were not seen: free is then allocatable, and every answer says so."""
    nodes_unseen: bool = False
    """True where nodes may not be read: all there is are the nodes that the admin declares, and every answer says so."""
