"""The fleet as one frozen value: pools of like nodes, what is free on them, and nodes that could not be understood.

`observe` makes it from Kubernetes objects, a snapshot file or just a list of nodes, and `fleet` keeps it current; it is all that
planning reads of the fleet. A pool has nodes that are equal for planning, so the work grows with the kinds of nodes and not with their
number.
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
    """Nodes that are equal in all that planning reads. Nodes are counted and not listed, so that ten thousand make a short value."""

    key: str
    """A stable, readable name: product, devices of a node, zone, and a short digest of the rest."""
    gpu: Gpu
    memory_bytes: int
    """Memory of one schedulable device, as labels or the driver say it: of a MIG slice its own, of a time-sliced card the whole card's."""
    resource: str
    """What a pod requests: nvidia.com/gpu, nvidia.com/mig-3g.40gb, amd.com/gpu, habana.ai/gaudi, cpu, or a DRA class."""
    devices_per_node: int
    free: Mapping[int, int]
    """By number of free devices: how many nodes have exactly so many, e.g. {8: 3, 2: 1}. Full nodes are under 0."""
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
    """Nodes that do not exist yet but may be made on demand (the admin's node classes). They are not in `free`, which has the nodes that are
    there now."""
    promised: Mapping[int, int] = field(default_factory=dict)
    """By number of free devices: how many of the declared nodes will have exactly so many when they come, as the rest is promised. Those
    that are not in it will be wholly free."""
    price_per_hour: str | None = None
    """Price of a device for an hour, a decimal string as the admin wrote it; None is unknown, never zero."""
    node_class: str | None = None
    """The admin's node class these nodes belong to."""
    rdma: bool | None = None
    """Whether nodes reach each other by RDMA, as the node class or a label says; None is unknown."""
    arch: str | None = None
    """amd64 or arm64, as the nodes say."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """The labels by which these devices were recognised: a pod that selects them lands on no other product or partition."""
    claim_selector: str | None = None
    """The same for devices that pods get by claim: the expression for a claim's selector."""
    unavailable: Mapping[str, int] = field(default_factory=dict)
    """By reason: nodes that are there but take no new pods, e.g. {"cordoned": 2, "not ready": 1}. They are not in `free`."""
    held: Mapping[str, int] = field(default_factory=dict)
    """Devices that pods of this operator's deployments hold here, by namespace/name."""
    host_free_memory_bytes: int | None = None
    """Memory that no pod has asked for, on the node that has most of it."""
    host_free_cpu_millis: int | None = None
    host_disk_bytes: int | None = None
    """Local disk that pods may ask for, on the node that has most of it; None where a node does not say."""
    host_free_disk_bytes: int | None = None
    """Local disk that no pod has asked for, on the node with free devices that has most of it. None where it is not known, as on hosts
    without accelerators, whose pools do not say whose pods they run."""
    notes: tuple[str, ...] = ()
    """What people should be told of this pool, e.g. that a memory label was believed and not the catalogue."""

    @property
    def nodes(self) -> int:
        return sum(self.free.values())

    @property
    def free_devices(self) -> int:
        return sum(size * count for size, count in self.free.items())

    @property
    def coming(self) -> Mapping[int, int]:
        """By number of free devices: how many nodes with so many may be made."""
        if not self.declared_nodes:
            return {}
        whole = self.declared_nodes - sum(self.promised.values())
        return {**self.promised, self.devices_per_node: whole} if whole else self.promised

    def having(self, free: Mapping[int, int], coming: Mapping[int, int]) -> Pool:
        """The pool with these nodes that are there, and these that may be made, each by number of free devices."""
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
        """The pool without nodes that may be made."""
        return self.having(self.free, {}) if self.declared_nodes else self


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryProblem:
    """A node that planning must leave out, with the label or value that would let it in."""

    node: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All pools of the fleet."""

    pools: tuple[Pool, ...]
    """Sorted by key, so that the order in which nodes came does not matter."""
    problems: tuple[InventoryProblem, ...] = ()
    free_is_assumed: bool = False
    """True where pods were not seen. All that is allocatable then counts as free, and every answer says so."""
    nodes_unseen: bool = False
    """True where nodes may not be read. Only nodes that the admin declares are known then, and every answer says so."""
