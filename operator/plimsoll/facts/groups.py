"""One pool while it is kept current: its nodes, and the frozen value that is made from them when somebody asks.

A change only drops the value; making it anew looks at the nodes of this pool alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.facts.gpus import Vendor
from plimsoll.facts.inventory import Pool
from plimsoll.facts.shapes import Node, Offer, Pair, Shape
from plimsoll.facts.usage import Usage

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Reservation:
    """Devices that are promised to pods which are not there yet, so that two turns do not give the same devices away."""

    deployment: str
    """namespace/name."""
    pool: str
    devices: int
    """Devices of each pod."""
    pods: int


def less(pool: Pool, reservations: Sequence[Reservation]) -> Pool:
    """The pool without these devices. They are taken from the fullest nodes that have room, then from nodes that may be made; what finds
    no room takes nothing."""
    if not reservations:
        return pool
    free, coming = Counter(pool.free), Counter(pool.coming)
    for one in reservations:
        for _ in range(one.pods):
            if not (_take(free, one.devices) or _take(coming, one.devices)):
                break
    return pool.having(free, coming)


def _take(free: Counter[int], devices: int) -> bool:
    room = min((size for size, nodes in free.items() if nodes and size >= devices), default=None)
    if room is None:
        return False
    free[room] -= 1
    free[room - devices] += 1
    return True


class Group:
    """The nodes of one shape that also agree in all labels that selectors name."""

    def __init__(self, shape: Shape, key: str, *, price: str | None = None, rdma: bool | None = None) -> None:
        self.shape = shape
        self.key = key
        self._price = price
        self._rdma = rdma
        self._members: dict[str, tuple[Node, Offer]] = {}
        self._shared: set[Pair] | None = None
        """Labels that all members have; None where a member has left, so that there may be more of them now."""
        self._pool: Pool | None = None

    @property
    def empty(self) -> bool:
        return not self._members

    def enter(self, node: Node, offer: Offer, pairs: set[Pair]) -> None:
        if not self._members:
            self._shared = set(pairs)
        elif self._shared is not None:
            self._shared &= pairs
        self._members[node.name] = node, offer
        self._pool = None

    def leave(self, name: str) -> None:
        del self._members[name]
        self._shared = self._pool = None

    def changed(self) -> None:
        """Tells that pods or claims take other devices of a member than before."""
        self._pool = None

    def freeze(self, usage: Usage, without: frozenset[str] = NOBODY) -> Pool:
        """The pool as it is now; the pods of the deployments in `without` count as not there."""
        if self._pool is None:
            self._pool = self._make(usage, NOBODY)
        return self._pool if without.isdisjoint(self._pool.held) else self._make(usage, without)

    def declared(self, labels: Mapping[str, str], nodes: int) -> Pool:
        """A pool of nodes that may be made, of which none is there yet. They will have these labels."""
        pool = self._make(Usage(), NOBODY)
        return replace(
            pool,
            labels=dict(sorted(labels.items())),
            declared_nodes=nodes,
            host_free_memory_bytes=pool.host_memory_bytes,
            host_free_cpu_millis=pool.host_cpus * 1000 if pool.host_cpus else None,
        )

    def _make(self, usage: Usage, without: frozenset[str]) -> Pool:
        device, place = self.shape.device, self.shape.place
        free: Counter[int] = Counter()
        away: Counter[str] = Counter()
        held: Counter[str] = Counter()
        most_cpu: int | None = None
        most_memory: int | None = None
        disk, free_disk = _Most(), _Most()
        # Pods on CPUs hold no devices, so it could not be told whether a disk is filled by a deployment's own pods or by others.
        owners_unknown = device.gpu.vendor is Vendor.CPU
        for node, offer in self._members.values():
            used = self._taken(usage, node, offer, held, without)
            if node.away:
                away[node.away] += 1
                continue
            free[max(0, device.count - used)] += 1
            cpu, memory, asked = usage.host(node.name, without)
            if most_memory is None or node.memory_bytes - memory > most_memory:
                most_memory = max(0, node.memory_bytes - memory)
            most_cpu = max(most_cpu or 0, node.cpu_millis - cpu)
            disk.see(node.disk_bytes)
            if used < device.count:
                unknown = owners_unknown or node.disk_bytes is None
                free_disk.see(None if unknown else max(0, (node.disk_bytes or 0) - asked))
        return Pool(
            key=self.key,
            gpu=device.gpu,
            memory_bytes=device.memory_bytes,
            resource=device.resource,
            devices_per_node=device.count,
            free=_counts(free),
            sharing=device.sharing,
            partition=device.partition,
            card=device.card,
            via_dra=device.via_dra,
            zone=place.zone,
            fabric=device.fabric,
            labels=dict(sorted(self._labels())),
            taints=place.taints,
            driver=device.driver,
            host_memory_bytes=place.host_memory_bytes,
            host_cpus=place.host_cpus,
            price_per_hour=self._price,
            node_class=place.node_class,
            rdma=place.rdma if self._rdma is None else self._rdma,
            arch=place.arch,
            pins=dict(device.pins),
            claim_selector=device.claim_selector,
            unavailable=dict(sorted(away.items())),
            held=dict(sorted(held.items())),
            host_free_memory_bytes=most_memory if place.host_memory_bytes else None,
            host_free_cpu_millis=most_cpu if place.host_cpus else None,
            host_disk_bytes=disk.known,
            host_free_disk_bytes=free_disk.known,
            notes=device.notes,
        )

    def _taken(
        self, usage: Usage, node: Node, offer: Offer, held: Counter[str], without: frozenset[str]
    ) -> int:
        """Devices that are taken on a node. Adds to `held` those that deployments of ours hold."""
        if not offer.identities:
            resource = offer.shape.device.resource
            for owner, count in usage.held(node.name, resource):
                if owner not in without:
                    held[owner] += count
            return usage.devices(node.name, resource, without)
        taken = 0
        for identities in offer.identities:
            owners = usage.claimants(identities)
            if owners is not None and not owners <= without:
                taken += 1
                held.update(owner for owner in owners - without if owner)
        return taken

    def _labels(self) -> set[Pair]:
        if self._shared is None:
            members = iter(self._members.values())
            shared = next(members)[0].pairs if self._members else set()
            for node, _ in members:
                shared &= node.pairs
            self._shared = shared
        return self._shared


class _Most:
    """The largest of several amounts; None as soon as one of them is not known."""

    __slots__ = ("_largest", "_unknown")

    def __init__(self) -> None:
        self._largest: int | None = None
        self._unknown = False

    def see(self, amount: int | None) -> None:
        if amount is None:
            self._unknown = True
        elif self._largest is None or amount > self._largest:
            self._largest = amount

    @property
    def known(self) -> int | None:
        return None if self._unknown else self._largest


def _counts(free: Mapping[int, int]) -> dict[int, int]:
    return {size: nodes for size, nodes in sorted(free.items()) if nodes}
