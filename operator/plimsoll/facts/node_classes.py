"""The admin's node classes: which nodes belong to one, what a node of a class will offer that is not there yet, and prices.

A node belongs to a class by its labels. A class names products where no labeller does, says what no label says (a bridge between cards,
RDMA, the size of an NVLink domain), and has nodes that may still be made, so that planning works even while no node is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from plimsoll.api.config import NodeClass, OperatorConfig
from plimsoll.api.quantity import format_decimal, parse_bytes, parse_decimal, parse_millicores
from plimsoll.facts.gpus import Gpu, Link, LinkKind, UnknownGpu, Vendor, gpu_named, normal_name
from plimsoll.facts.labels import Device
from plimsoll.facts.labels.cpu import host
from plimsoll.facts.labels.gaudi import RESOURCE as GAUDI

_RESOURCES = {
    Vendor.NVIDIA: "nvidia.com/gpu",
    Vendor.AMD: "amd.com/gpu",
    Vendor.INTEL: "gpu.intel.com/xe",
    Vendor.HABANA: GAUDI,
}


class BadNodeClass(ValueError):
    """A node class that contradicts the catalogue; the message names the field."""


def class_of(labels: Mapping[str, str], classes: Sequence[NodeClass]) -> NodeClass | None:
    """The class that a node belongs to, which is the one whose labels it has; of several the one with most labels, then the first by name."""
    fitting = [
        one for one in classes if one.labels and all(labels.get(k) == v for k, v in one.labels.items())
    ]
    return min(fitting, key=lambda one: (-len(one.labels), one.name), default=None)


def declared_device(one: NodeClass) -> Device:
    """What a node of the class will offer."""
    if one.gpu_product is None:
        memory = parse_bytes(one.memory) if one.memory else None
        device = host(one.labels, memory)
        if device is None:
            raise BadNodeClass(f"nodeClasses[{one.name}].memory is missing; a class without GPUs needs it")
        return device
    try:
        gpu = gpu_named(one.gpu_product)
    except UnknownGpu as unknown:
        raise BadNodeClass(f"nodeClasses[{one.name}].gpuProduct: {unknown}") from None
    count = one.gpus_per_node or 1
    resource = _RESOURCES.get(gpu.vendor)
    if resource is None:
        raise BadNodeClass(
            f"nodeClasses[{one.name}].gpuProduct: {gpu.name} is no GPU; leave it out for CPU nodes"
        )
    fabric = f"class/{one.name}" if (one.nodes_per_nvlink_domain or 1) > 1 else None
    device = Device(
        gpu=gpu,
        memory_bytes=gpu.memory_bytes,
        resource=resource,
        count=count,
        fabric=fabric,
        pins=tuple(sorted(one.labels.items())),
    )
    return linked(device, one)


def linked(device: Device, one: NodeClass | None) -> Device:
    """The device with the links that its node class knows of."""
    if one is None or device.gpu.vendor is Vendor.CPU or device.partition:
        return device
    link = _link(device.gpu, one)
    if one.nodes_per_nvlink_domain:
        link = replace(link, domain=max(1, one.nodes_per_nvlink_domain * device.count))
    return device if link == device.gpu.link else replace(device, gpu=replace(device.gpu, link=link))


def _link(gpu: Gpu, one: NodeClass) -> Link:
    if one.interconnect == "pcie":
        return Link(kind=LinkKind.PCIE, bytes_per_second=gpu.pcie_bytes_per_second, domain=1)
    if one.interconnect == "nvlink" and gpu.link.kind is LinkKind.PCIE:
        if gpu.bridge is None:
            raise BadNodeClass(
                f"nodeClasses[{one.name}].interconnect is nvlink, but {gpu.name} has no such link, not even by a bridge"
            )
        return gpu.bridge
    return gpu.link


def host_size(one: NodeClass) -> tuple[int | None, int | None]:
    """Memory in bytes and whole cores that pods may take of a node; None where the class does not say."""
    memory = parse_bytes(one.memory) if one.memory else None
    cpus = parse_millicores(one.cpu) // 1000 if one.cpu else None
    return memory, cpus


def price_of(device: Device, cpus: int | None, one: NodeClass | None, config: OperatorConfig) -> str | None:
    """The price of a device for an hour: that of a node of the class divided by its devices, else that of the product; None is unknown.

    A share of a time-sliced card costs its part of the card, a MIG slice its part of the card's compute.
    """
    if one is not None and one.price_per_hour is not None:
        return _text(parse_decimal(one.price_per_hour) / device.count)
    if device.gpu.vendor is Vendor.CPU:
        core = config.prices.cpu_core_hour
        return _text(parse_decimal(core) * cpus) if core is not None and cpus else None
    card = gpu_named(device.card) if device.card else device.gpu
    for price in config.prices.gpu_hour:
        if _means(price.product, card):
            return _text(parse_decimal(price.per_hour) * _share(device.gpu, card) / device.sharing)
    return None


def _share(part: Gpu, card: Gpu) -> Decimal:
    dtype = min(card.flops)
    return Decimal(part.flops[dtype]) / Decimal(card.flops[dtype])


def _means(product: str, gpu: Gpu) -> bool:
    return normal_name(product) in {normal_name(name) for name in (gpu.name, *gpu.aliases)}


def _text(price: Decimal) -> str:
    return format_decimal(price, places=6)
