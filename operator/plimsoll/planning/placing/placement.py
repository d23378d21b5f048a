"""Which devices a deployment may use, and how many replicas of a layout they hold.

Pools with the same devices at the same price, which a pod reaches in the same way, form one slot: a set runs on a slot, in
whichever of its pools there is room. Free devices are kept as counts of nodes by how many of theirs are free, so the work grows with
the kinds of nodes and not with their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.inventory import Pool, Taint
from plimsoll.facts.nodes import RDMA
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.layouts.rules import Site
from plimsoll.planning.plan import Hardware, Placement, PodResources

PRODUCT_LABELS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "habana.ai/product",
)

BLOCKING: Final = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""
COMPUTE_SLICES: Final = 7
"""Compute slices of a whole card that MIG cuts; a profile such as 3g.40gb has three of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slot:
    """Devices of one kind at one price, in all the pools that have them."""

    hardware: Hardware
    gpu: Gpu
    pools: tuple[Pool, ...]
    price: Fraction | None
    """Price of one device for an hour; None is unknown."""

    @cached_property
    def part(self) -> Fraction:
        """How much of a whole device one schedulable device is."""
        return device_part(self.hardware)

    @cached_property
    def order(self) -> tuple[int, str, str]:
        """Breaks ties: slots with small devices come first, so that large ones stay free for what needs them."""
        return self.hardware.memory_bytes, self.name, self.pools[0].key

    @cached_property
    def name(self) -> str:
        return str(self.hardware)

    def site(self) -> Site:
        """What the slot offers, as the rules about layouts ask for it."""
        return Site(
            gpu=self.gpu,
            devices_per_node=max(pool.devices_per_node for pool in self.pools),
            devices=max(pool_devices(pool) for pool in self.pools),
            fabric_devices=max((pool_devices(pool) for pool in self.pools if pool.fabric), default=0),
            sharing=self.hardware.sharing,
            partition=self.hardware.partition,
            rdma=all(pool.rdma or pool.labels.get(RDMA) == "true" for pool in self.pools),
        )


def pool_devices(pool: Pool) -> int:
    """All devices of a pool, free or not, and those of nodes that may be made."""
    return (pool.nodes + pool.declared_nodes) * pool.devices_per_node


def same_devices(one: Hardware, other: Hardware) -> bool:
    """Whether a set planned for one runs on the other: all but the price is equal, which may change without a restart."""
    return replace(one, price_per_hour=None) == replace(other, price_per_hour=None)


def device_part(hardware: Hardware) -> Fraction:
    """How much of a whole card one schedulable device is, where cards are shared or cut into MIG slices."""
    part = Fraction(1, hardware.sharing)
    compute_slices = (hardware.partition or "").partition("g.")[0]
    if hardware.vendor == Vendor.NVIDIA and compute_slices.isdigit():
        part *= Fraction(int(compute_slices), COMPUTE_SLICES)
    return part


def slots(
    pools: Iterable[Pool],
    *,
    selector: Mapping[str, str],
    tolerations: tuple[Toleration, ...],
    products: frozenset[str] | None,
    on_cpu: bool,
    cores: int | None = None,
) -> tuple[Slot, ...]:
    """The devices that a deployment may use, grouped. `products` are catalogue names and label values, None where any may be used;
    `cores` is how many cores a host must have."""
    grouped: dict[tuple[object, ...], list[Pool]] = {}
    for pool in pools:
        why_not = refusal(
            pool, selector=selector, tolerations=tolerations, products=products, on_cpu=on_cpu, cores=cores
        )
        if why_not is None:
            grouped.setdefault(_slot_key(pool), []).append(pool)
    return tuple(_slot(tuple(grouped[key]), selector) for key in sorted(grouped, key=repr))


def refusal(
    pool: Pool,
    *,
    selector: Mapping[str, str],
    tolerations: tuple[Toleration, ...],
    products: frozenset[str] | None,
    on_cpu: bool,
    cores: int | None = None,
) -> str | None:
    """Why a deployment may not use a pool, or None."""
    if not pool_devices(pool):
        why = " and ".join(f"{count} {what}" for what, count in sorted(pool.unavailable.items()))
        return (
            f"{pool.gpu.name} has no node that takes pods{f' ({why})' if why else ''}, and none is declared"
        )
    if on_cpu != (pool.gpu.vendor is Vendor.CPU):
        return (
            "topology.cpu asks for CPUs" if on_cpu else "CPUs are used only where topology.cpu asks for them"
        )
    if cores is not None and pool.host_cpus is not None and pool.host_cpus < cores:
        return f"its hosts have {pool.host_cpus} cores, topology.cpu.cores asks for {cores}"
    if products is not None and not _is_product(pool, products):
        return f"{pool.gpu.name} is not among topology.gpuProducts"
    for key in sorted(selector):
        if pool.labels.get(key) != selector[key]:
            found = pool.labels.get(key)
            return f"topology.nodeSelector wants {key}={selector[key]}, the nodes have {found or 'no such label'}"
    for taint in barring(pool, tolerations):
        return (
            f"its nodes are tainted {taint.key}={taint.value}:{taint.effect}; add it to topology.tolerations"
        )
    return None


def barring(pool: Pool, tolerations: tuple[Toleration, ...]) -> tuple[Taint, ...]:
    """Taints of a pool's nodes that keep a deployment away."""
    return tuple(
        taint
        for taint in pool.taints
        if taint.effect in BLOCKING
        and not (is_device_taint(taint, pool.resource) or tolerated(taint, tolerations))
    )


def is_device_taint(taint: Taint, resource: str) -> bool:
    """Whether a taint is there to keep away pods without devices: every pod that asks for such a device tolerates it."""
    domain = resource.partition("/")[0]
    return taint.key in (resource, f"{domain}/gpu")


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(
        (toleration.key is None or toleration.key == taint.key)
        and (toleration.effect is None or toleration.effect == taint.effect)
        and (toleration.operator == "Exists" or (toleration.value or "") == taint.value)
        for toleration in tolerations
    )


def shape_of(layout: Layout, site: Site) -> Shape | None:
    """How a replica is cut into pods: one where the largest node holds it, else as few pods of equal size as possible, whose tensor ranks
    stay within a node or one fabric. None where it cannot be cut so."""
    largest = site.devices_per_node
    if layout.gpus <= largest:
        return Shape(1, layout.gpus)
    joined = site.fabric_devices > 0
    for devices in range(min(largest, layout.gpus), 0, -1):
        whole = devices % layout.tensor == 0 or (joined and layout.tensor % devices == 0)
        if layout.gpus % devices == 0 and whole:
            return Shape(layout.gpus // devices, devices)
    return None


def room(pool: Pool, shape: Shape, layout: Layout, owner: str = "") -> int:
    """Replicas that find devices in a pool: free ones, those of nodes that may be made, and those that the owner's pods hold."""
    free = dict(pool.free)
    for size, nodes in pool.coming.items():
        free[size] = free.get(size, 0) + nodes
    return _count(pool, shape, layout, free, pool.held.get(owner, 0))


def room_when_empty(pool: Pool, shape: Shape, layout: Layout) -> int:
    """Replicas that a pool would hold if nothing else ran there."""
    return _count(pool, shape, layout, {pool.devices_per_node: pool.nodes + pool.declared_nodes})


def holds_pod(pool: Pool, asked: PodResources, owner: str) -> bool:
    """Whether the pool's hosts have the memory and the disk that a pod asks for, as far as that is known."""
    if not has_memory(pool, asked) or not has_disk(pool, asked, owner):
        return False
    free = pool.host_free_disk_bytes
    return free is None or free >= asked.disk_bytes or pool.declared_nodes > 0 or _serves(pool, owner)


def has_memory(pool: Pool, asked: PodResources) -> bool:
    return pool.host_memory_bytes is None or pool.host_memory_bytes >= asked.memory_bytes


def has_disk(pool: Pool, asked: PodResources, owner: str) -> bool:
    """Whether a node's disk would be large enough if no pod had asked for any. Where pods of the owner run already it is: a patch of theirs,
    or a policy of the cluster, may make them ask for less than the plan says."""
    return pool.host_disk_bytes is None or pool.host_disk_bytes >= asked.disk_bytes or _serves(pool, owner)


def _serves(pool: Pool, owner: str) -> bool:
    """Whether pods of the owner run on the pool's devices."""
    return pool.held.get(owner, 0) > 0


def take(free: Mapping[int, int], shape: Shape, replicas: int) -> dict[int, int]:
    """What stays free after replicas were placed. Each pod goes to the fullest node that has room, so that nodes with many free devices are
    kept for large pods."""
    left = dict(free)
    for _ in range(replicas * shape.pods):
        size = min(
            (size for size, nodes in left.items() if size >= shape.devices and nodes > 0), default=None
        )
        if size is None:
            raise ValueError("no node has room for the pod")
        left[size] -= 1
        if not left[size]:
            del left[size]
        left[size - shape.devices] = left.get(size - shape.devices, 0) + 1
    return dict(sorted(left.items(), reverse=True))


def spread(
    pools: Iterable[Pool], shape: Shape, layout: Layout, replicas: int, owner: str = ""
) -> tuple[Placement, ...]:
    """Where replicas are expected: in the pools with the most room first, so that they are in few pools."""
    rooms = sorted(
        ((room(pool, shape, layout, owner), pool.key) for pool in pools),
        key=lambda pair: (-pair[0], pair[1]),
    )
    placed: list[Placement] = []
    for free, key in rooms:
        count = min(free, replicas)
        if count:
            placed.append(Placement(pool=key, replicas=count))
            replicas -= count
    return tuple(placed)


def _count(pool: Pool, shape: Shape, layout: Layout, free: Mapping[int, int], held: int = 0) -> int:
    """Replicas that whole pods make up. Held devices count as if they were together on nodes, as it is not known here where they are."""
    if layout.tensor > shape.devices and pool.fabric is None:
        return 0
    pods = sum((size // shape.devices) * nodes for size, nodes in free.items()) + held // shape.devices
    return pods // shape.pods


def _is_product(pool: Pool, products: frozenset[str]) -> bool:
    return pool.gpu.name in products or any(pool.labels.get(label) in products for label in PRODUCT_LABELS)


def _slot_key(pool: Pool) -> tuple[object, ...]:
    return (
        pool.gpu.name,
        pool.memory_bytes,
        pool.resource,
        pool.sharing,
        pool.partition or "",
        pool.via_dra,
        pool.claim_selector or "",
        pool.price_per_hour or "",
        tuple(sorted(_product_labels(pool).items())),
    )


def _product_labels(pool: Pool) -> dict[str, str]:
    """The labels by which the devices were recognised (product, partition mode, those of a node class): pods that select them land on no
    other devices."""
    return dict(pool.pins) or {label: pool.labels[label] for label in PRODUCT_LABELS if label in pool.labels}


def _part_of(gpu: Gpu, sharing: int) -> Gpu:
    """What one pod has of a GPU whose time is shared: an equal part of its speed, when all pods are busy."""
    if sharing == 1:
        return gpu
    flops = {dtype: rate // sharing for dtype, rate in gpu.flops.items()}
    return replace(gpu, bandwidth=gpu.bandwidth // sharing, flops=flops)


def _slot(pools: tuple[Pool, ...], selector: Mapping[str, str]) -> Slot:
    first = min(pools, key=lambda pool: pool.key)
    return Slot(
        hardware=Hardware(
            gpu=first.gpu.name,
            card=first.card,
            vendor=first.gpu.vendor.value,
            resource=first.resource,
            memory_bytes=first.memory_bytes,
            sharing=first.sharing,
            partition=first.partition,
            via_dra=first.via_dra,
            selector=dict(sorted({**_product_labels(first), **selector}.items())),
            claim_selector=first.claim_selector,
            price_per_hour=first.price_per_hour,
        ),
        price=None if first.price_per_hour is None else Fraction(first.price_per_hour),
        gpu=_part_of(first.gpu, first.sharing),
        pools=tuple(sorted(pools, key=lambda pool: pool.key)),
    )
