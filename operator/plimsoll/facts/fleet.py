"""The inventory, kept current node by node and pod by pod, so that a change takes as long as what it touches and not as the whole fleet.

It is mutable on purpose, and owned by whoever watches the cluster (or by `observe`, which fills one and throws it away). Objects may come
in any order, and more than once: the inventory depends only on what is there, so one that was kept current equals one that was built
anew. `groups` keeps the pools, `usage` what pods take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.api.config import NodeClass, OperatorConfig
from plimsoll.facts.gpus import Vendor
from plimsoll.facts.groups import NOBODY, Group, Reservation, less
from plimsoll.facts.inventory import Inventory, InventoryProblem, Pool, Taint
from plimsoll.facts.labels import ProblemReason, dra
from plimsoll.facts.node_classes import BadNodeClass, declared_device, host_size, price_of
from plimsoll.facts.nodes import NodeParser
from plimsoll.facts.shapes import Node, Pair, Place, Shape, size_class
from plimsoll.facts.usage import Usage

LEFT: Final = frozenset({"cordoned", "deleting"})
"""States in which pods should leave a node while it still works. From a node that is not ready they cannot move."""


@dataclass(frozen=True, slots=True)
class _Present:
    """A node that is there, and the groups that it is in."""

    node: Node
    groups: tuple[Group, ...]


class Fleet:
    """The fleet as it is: objects go in as the API gives them, and it makes the inventory.

    `selectors` are the node selectors of all resources to be planned. Nodes that are equal in all that planning reads form one pool,
    whatever their labels; only where a selector names a label, the nodes that have it form a pool of their own.
    """

    def __init__(
        self,
        config: OperatorConfig | None = None,
        *,
        selectors: Iterable[Mapping[str, str]] = (),
        sees_nodes: bool = True,
    ) -> None:
        self._config = config or OperatorConfig()
        self._parser = NodeParser(self._config.node_classes)
        self._classes = {one.name: one for one in self._config.node_classes}
        self._present: dict[str, _Present] = {}
        self._troubled: dict[str, Node] = {}
        """Nodes with problems."""
        self._nodes_of: Counter[str] = Counter()
        """By node class: how many nodes are there, without those that do not offer their devices yet."""
        self._groups: dict[str, Group] = {}
        self._usage = Usage()
        self._slices: dict[str, dra.Slice] = {}
        self._slices_of: dict[str, dict[str, dra.Slice]] = {}
        self._promised: dict[str, tuple[Reservation, ...]] = {}
        """By deployment: devices for pods that are not there yet."""
        self._became: dict[str, set[str]] = {}
        """By a pool's key: other keys that its nodes, or those that may be made, have had since then, as selectors divide pools."""
        self._declared: dict[str, str] = {}
        """By node class: the key of the pool of nodes that may be made of it, where it is one of its own."""
        self._wanted = _pairs(selectors)
        """Labels that selectors name, by which pools are divided."""
        self._pods_seen = False
        self._sees_nodes = sees_nodes
        self._inventory: Inventory | None = None
        """The inventory before what is promised is taken out; None where it must be made anew."""
        self._left: Inventory | None = None
        """The inventory without what is promised; None where it must be made anew."""

    def add_node(self, node: Mapping[str, Any]) -> None:
        """A node that is new or changed."""
        name = (node.get("metadata") or {}).get("name", "")
        self._replace(self._parser.parse(node, self._slices_on(name)))

    def remove_node(self, name: str) -> None:
        present = self._present.pop(name, None)
        if present is None:
            return
        for group in present.groups:
            group.leave(name)
            if group.empty:
                del self._groups[group.key]
        self._troubled.pop(name, None)
        self._count(present.node, -1)
        self._inventory = None

    def add_pod(self, pod: Mapping[str, Any]) -> None:
        """A pod that is new or changed, whatever its phase."""
        self.pods_are_known()
        self._touch(self._usage.add_pod(pod))

    def remove_pod(self, key: str) -> None:
        """`key` is namespace/name."""
        self._touch(self._usage.remove_pod(key))

    def pods_are_known(self) -> None:
        """Tells that pods were listed, even if there were none: what is free is then known and not assumed."""
        if not self._pods_seen:
            self._pods_seen, self._inventory = True, None

    def add_slice(self, item: Mapping[str, Any]) -> None:
        """A ResourceSlice that is new or changed."""
        parsed = dra.parse_slice(item)
        name = (item.get("metadata") or {}).get("name", "")
        if parsed == self._slices.get(name):
            return
        self.remove_slice(name)
        if parsed is not None:
            self._slices[name] = parsed
            self._slices_of.setdefault(parsed.node, {})[name] = parsed
            self._read_again(parsed.node)

    def remove_slice(self, name: str) -> None:
        gone = self._slices.pop(name, None)
        if gone is not None:
            del self._slices_of[gone.node][name]
            self._read_again(gone.node)

    def add_claim(self, item: Mapping[str, Any]) -> None:
        """A ResourceClaim that is new or changed; one without an allocation takes nothing."""
        self._usage.add_claim(item)
        self._claims_changed()

    def remove_claim(self, key: str) -> None:
        """`key` is namespace/name."""
        self._usage.remove_claim(key)
        self._claims_changed()

    def promise(self, deployment: str, reservations: Collection[Reservation]) -> bool:
        """Devices promised to pods of a deployment that are not there yet, in place of what it was promised before. Returns whether any of
        that is given back."""
        before = self._promised.get(deployment, ())
        if before == tuple(reservations):
            return False
        if reservations:
            self._promised[deployment] = tuple(reservations)
        else:
            del self._promised[deployment]
        self._left = None
        return bool(_by_pool(before) - _by_pool(reservations))

    def select(self, selectors: Iterable[Mapping[str, str]]) -> bool:
        """Divides pools by these node selectors from now on. Where they have changed, this takes one pass over the fleet. Returns whether
        their labels have changed."""
        return self._divide(_pairs(selectors))

    @contextmanager
    def divided(self, selector: Mapping[str, str]) -> Iterator[None]:
        """A context in which pools are divided by one more selector, for a question about a resource that is not there yet. It takes two
        passes over the fleet where the selector names a label that no other does."""
        before = self._wanted
        if _pairs([selector]) <= before:
            yield
            return
        self._divide(before | _pairs([selector]))
        try:
            yield
        finally:
            self._divide(before)

    def inventory(self, *, own: str = "", without: Collection[str] = ()) -> Inventory:
        """The inventory as it is now, without devices that are promised to deployments other than `own`. `without` names deployments
        (namespace/name) whose pods and promised devices count as if they were not there."""
        if without:
            return self._less(self._value(frozenset(without)), {own, *without})
        if self._inventory is None:
            self._inventory, self._left = self._value(NOBODY), None
        if own in self._promised:
            return self._less(self._inventory, {own})
        if self._left is None:
            self._left = self._less(self._inventory, NOBODY)
        return self._left

    def _divide(self, wanted: set[Pair]) -> bool:
        """Returns whether pools are divided by other labels than before."""
        changed, self._wanted = wanted ^ self._wanted, wanted
        if changed:
            # Pools of nodes that carry none of these labels stay as they are.
            for present in [one for one in self._present.values() if not changed.isdisjoint(one.node.pairs)]:
                self.remove_node(present.node.name)
                self._enter(present.node)
                for before, after in zip(
                    present.groups, self._present[present.node.name].groups, strict=True
                ):
                    self._has_become(before.key, after.key)
            self._inventory = None
        return bool(changed)

    def _has_become(self, before: str, after: str) -> None:
        if before != after:
            self._became.setdefault(before, set()).add(after)

    def _now(self, key: str, there: Collection[str]) -> set[str]:
        """The pools that a pool's nodes are in by now."""
        left, seen = [key], {key}
        found = set()
        while left:
            one = left.pop()
            if one in there:
                found.add(one)
                continue
            new = self._became.get(one, set()) - seen
            seen |= new
            left += new
        return found

    def leaving(self, name: str) -> str:
        """Why the pods on a node should leave it: cordoned or deleting. Empty where they need not, or the node is not known."""
        present = self._present.get(name)
        return "" if present is None or present.node.away not in LEFT else present.node.away

    def cordoned_at(self, name: str) -> float | None:
        """When a node was cordoned, in seconds since the epoch; None where it was not, or that is not known."""
        present = self._present.get(name)
        return None if present is None else present.node.cordoned_at

    def _slices_on(self, name: str) -> tuple[dra.Slice, ...]:
        return tuple(part for _, part in sorted(self._slices_of.get(name, {}).items()))

    def _read_again(self, name: str) -> None:
        present = self._present.get(name)
        if present is not None:
            self._replace(self._parser.with_slices(present.node, self._slices_on(name)))

    def _replace(self, node: Node) -> None:
        present = self._present.get(node.name)
        if present is None or present.node != node:
            self.remove_node(node.name)
            self._enter(node)

    def _enter(self, node: Node) -> None:
        pairs = node.pairs
        selected = tuple(sorted(pairs & self._wanted)) if self._wanted else ()
        groups = []
        for offer in node.offers:
            key = offer.shape.pool_key(selected)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._group(offer.shape, key)
            group.enter(node, offer, pairs)
            groups.append(group)
        self._present[node.name] = _Present(node, tuple(groups))
        if node.problems:
            self._troubled[node.name] = node
        self._count(node, 1)
        self._inventory = None

    def _count(self, node: Node, nodes: int) -> None:
        one = self._classes.get(node.place.node_class or "")
        if one is not None and not _is_coming(node, one):
            self._nodes_of[one.name] += nodes

    def _group(self, shape: Shape, key: str) -> Group:
        one = self._classes.get(shape.place.node_class or "")
        price = price_of(shape.device, shape.place.host_cpus, one, self._config)
        return Group(shape, key, price=price, rdma=one.rdma if one else None)

    def _touch(self, names: Iterable[str]) -> None:
        for name in names:
            present = self._present.get(name)
            if present is not None:
                for group in present.groups:
                    group.changed()
                self._inventory = None

    def _claims_changed(self) -> None:
        for group in self._groups.values():
            if group.shape.device.via_dra:
                group.changed()
        self._inventory = None

    def _less(self, inventory: Inventory, own: Collection[str]) -> Inventory:
        """The inventory without what is promised to deployments other than these."""
        promised: dict[str, list[Reservation]] = {}
        there = frozenset(pool.key for pool in inventory.pools)
        for deployment, reservations in self._promised.items():
            if deployment not in own:
                for one in reservations:
                    for key in self._now(one.pool, there):
                        promised.setdefault(key, []).append(one)
        if not promised:
            return inventory
        pools = tuple(less(pool, sorted(promised.get(pool.key, ()))) for pool in inventory.pools)
        return replace(inventory, pools=pools)

    def _value(self, without: frozenset[str]) -> Inventory:
        pools = {key: group.freeze(self._usage, without) for key, group in self._groups.items()}
        problems = [
            InventoryProblem(node=node.name, reason=problem.reason, message=problem.message)
            for node in self._troubled.values()
            for problem in node.problems
        ]
        for one in self._config.node_classes:
            try:
                self._declare(one, pools)
            except BadNodeClass as error:
                reason = ProblemReason.CONTRADICTORY_LABELS
                problems.append(
                    InventoryProblem(node=f"node class {one.name}", reason=reason, message=str(error))
                )
        return Inventory(
            pools=tuple(pools[key] for key in sorted(pools)),
            problems=tuple(sorted(problems, key=lambda item: (item.node, item.reason, item.message))),
            free_is_assumed=not self._pods_seen,
            nodes_unseen=not self._sees_nodes,
        )

    def _declare(self, one: NodeClass, pools: dict[str, Pool]) -> None:
        """Adds the nodes that may still be made of a class to the pool of those that are there, else as a pool of their own."""
        device = declared_device(one)
        nodes = one.max_nodes - self._nodes_of[one.name]
        if nodes <= 0:
            return
        alike = [
            pool.key
            for pool in pools.values()
            if (pool.node_class, pool.gpu.name, pool.devices_per_node)
            == (one.name, device.gpu.name, device.count)
        ]
        if alike:
            pools[min(alike)] = replace(pools[min(alike)], declared_nodes=nodes)
            return
        memory, cpus = host_size(one)
        place = Place(
            zone=one.zones[0] if len(one.zones) == 1 else None,
            taints=tuple(
                Taint(key=taint.key, value=taint.value or "", effect=taint.effect) for taint in one.taints
            ),
            host_memory_bytes=size_class(memory or 0),
            host_cpus=size_class(cpus or 0),
            node_class=one.name,
        )
        shape = Shape(device, place)
        selected = sorted(set(one.labels.items()) & self._wanted)
        empty = self._group(shape, shape.pool_key(selected)).declared(one.labels, nodes)
        pools[empty.key] = empty
        self._has_become(self._declared.get(one.name, empty.key), empty.key)
        self._declared[one.name] = empty.key


def _is_coming(node: Node, one: NodeClass) -> bool:
    """Whether a node has registered but does not offer its devices yet, so that whoever waits for a node of its class still waits."""
    if one.gpu_product is None or node.reading.plugged:
        return False
    return all(offer.shape.device.gpu.vendor is Vendor.CPU for offer in node.offers)


def _by_pool(reservations: Iterable[Reservation]) -> Counter[str]:
    """Devices by the pool that they are promised of."""
    found: Counter[str] = Counter()
    for one in reservations:
        found[one.pool] += one.devices * one.pods
    return found


def _pairs(selectors: Iterable[Mapping[str, str]]) -> set[Pair]:
    return {pair for selector in selectors for pair in selector.items()}
