"""The inventory kept current node by node and pod by pod, so that a change costs what it touches and not the fleet.

A mutable thing on purpose, owned by whoever watches the cluster (or by `observe`, which fills one and throws it away).
Nodes, pods, slices and claims may come in any order and twice; the inventory is a function of what is there, never of how
it came: building from scratch and keeping current give equal values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.facts.inventory import Inventory, InventoryProblem, Pool
from plimsoll.facts.nodes import Node, NodeParser, Shape
from plimsoll.facts.pods import PodUse, parse_pod

Pair = tuple[str, str]


@dataclass(slots=True)
class _Use:
    """What pods take of one node, all owners together."""

    devices: Counter[str] = field(default_factory=Counter)
    cpu_millis: int = 0
    memory_bytes: int = 0


@dataclass(slots=True)
class _Group:
    """The nodes of one pool while it is being kept; `pool` is its frozen value, None once something changed."""

    shape: Shape
    key: str
    members: dict[str, Node] = field(default_factory=dict)
    shared: set[Pair] | None = None
    """Labels all members carry; None where a leaving member may have widened them."""
    pool: Pool | None = None


class Fleet:
    """Feed it objects as the API gives them; ask it for the inventory."""

    def __init__(self, *, selectors: Iterable[Mapping[str, str]] = ()) -> None:
        self._parser = NodeParser()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, PodUse] = {}
        self._uses: dict[str, _Use] = {}
        self._groups: dict[str, _Group] = {}
        self._wanted = _pairs(selectors)
        self._pods_seen = False
        self._inventory: Inventory | None = None

    def add_node(self, node: Mapping[str, Any]) -> None:
        """A node that is new or changed."""
        parsed = self._parser.parse(node)
        before = self._nodes.get(parsed.name)
        if before == parsed:
            return
        if before is not None:
            self._leave(before)
        self._nodes[parsed.name] = parsed
        self._enter(parsed)

    def remove_node(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            self._leave(node)

    def add_pod(self, pod: Mapping[str, Any]) -> None:
        """A pod that is new or changed, whatever its phase."""
        self._pods_seen = True
        use = parse_pod(pod)
        if use is None:
            metadata = pod.get("metadata") or {}
            self.remove_pod(f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}")
            return
        if self._pods.get(use.key) == use:
            return
        self.remove_pod(use.key)
        self._pods[use.key] = use
        self._count(use, 1)

    def remove_pod(self, key: str) -> None:
        """`key` is namespace/name."""
        use = self._pods.pop(key, None)
        if use is not None:
            self._count(use, -1)

    def pods_are_known(self) -> None:
        """Pods were listed, even if there were none: free is then what they leave, no assumption."""
        self._pods_seen = True
        self._inventory = None

    def inventory(self) -> Inventory:
        if self._inventory is None:
            pools = [group.pool or self._freeze(group) for group in self._groups.values()]
            problems = [
                InventoryProblem(node=node.name, reason=problem.reason, message=problem.message)
                for node in self._nodes.values()
                for problem in node.problems
            ]
            self._inventory = Inventory(
                pools=tuple(sorted(pools, key=lambda pool: pool.key)),
                problems=tuple(sorted(problems, key=lambda item: (item.node, item.reason, item.message))),
                free_is_assumed=not self._pods_seen,
            )
        return self._inventory

    def _enter(self, node: Node) -> None:
        pairs = set(zip(node.keys, node.values, strict=True))
        selected = sorted(pairs & self._wanted)
        for shape in node.shapes:
            key = shape.pool_key(selected)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(shape, key, shared=set(pairs))
            elif group.shared is not None:
                group.shared &= pairs
            group.members[node.name] = node
            group.pool = None
        self._inventory = None

    def _leave(self, node: Node) -> None:
        selected = sorted(set(zip(node.keys, node.values, strict=True)) & self._wanted)
        for shape in node.shapes:
            group = self._groups[shape.pool_key(selected)]
            del group.members[node.name]
            group.shared = group.pool = None
            if not group.members:
                del self._groups[group.key]
        self._inventory = None

    def _count(self, use: PodUse, sign: int) -> None:
        total = self._uses.setdefault(use.node, _Use())
        for resource, count in use.devices:
            total.devices[resource] += sign * count
        total.cpu_millis += sign * use.cpu_millis
        total.memory_bytes += sign * use.memory_bytes
        node = self._nodes.get(use.node)
        if node is not None:
            selected = sorted(set(zip(node.keys, node.values, strict=True)) & self._wanted)
            for shape in node.shapes:
                self._groups[shape.pool_key(selected)].pool = None
        self._inventory = None

    def _freeze(self, group: _Group) -> Pool:
        if group.shared is None:
            group.shared = set.intersection(
                *(set(zip(node.keys, node.values, strict=True)) for node in group.members.values())
            )
        device = group.shape.device
        free: Counter[int] = Counter()
        for node in group.members.values():
            if not node.away:
                used = self._uses[node.name].devices[device.resource] if node.name in self._uses else 0
                free[max(0, device.count - used)] += 1
        group.pool = Pool(
            key=group.key,
            gpu=device.gpu,
            memory_bytes=device.memory_bytes,
            resource=device.resource,
            devices_per_node=device.count,
            free=dict(sorted(free.items())),
            sharing=device.sharing,
            partition=device.partition,
            via_dra=device.via_dra,
            zone=group.shape.zone,
            fabric=device.fabric,
            labels=dict(sorted(group.shared)),
            taints=group.shape.taints,
            driver=device.driver,
            host_memory_bytes=group.shape.host_memory_bytes,
            host_cpus=group.shape.host_cpus,
        )
        return group.pool


def _pairs(selectors: Iterable[Mapping[str, str]]) -> set[Pair]:
    return {pair for selector in selectors for pair in selector.items()}
