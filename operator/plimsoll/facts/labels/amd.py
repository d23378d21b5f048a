"""AMD nodes: the node labeller's labels, with its present prefix or the older one, which has counts of devices in its keys.

No label says how many devices there are, but what the node can allocate does. Partition modes cut a card into equal logical devices; the
labeller names the mode where all cards of a node are cut alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from plimsoll.facts.gpus import GIB, Gpu, Vendor
from plimsoll.facts.labels.device import Device, NodeFacts, ProblemReason, Reading, problem
from plimsoll.facts.labels.product import Named, declared, named, unnamed

RESOURCE = "amd.com/gpu"
PRODUCT = "amd.com/gpu.product-name"
VRAM = "amd.com/gpu.vram"
PARTITION = "amd.com/gpu.compute-memory-partition"
_PREFIXES = ("amd.com/gpu.", "beta.amd.com/gpu.")
_MODE = re.compile(r"(?P<compute>spx|dpx|tpx|qpx|cpx)(_nps\d+)?")
_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
_TOLERANCE = 0.025


def read(node: NodeFacts) -> Reading:
    result = Reading()
    for resource, count in sorted(node.allocatable.items()):
        if count <= 0 or not resource.startswith("amd.com/"):
            continue
        mode = resource.removeprefix("amd.com/")
        if resource == RESOURCE:
            result += _read(
                node, resource, count, node.labels.get(_key(node.labels, "compute-memory-partition") or "")
            )
        elif _MODE.fullmatch(mode):  # the plugin's naming strategy "mixed" puts the mode in the resource
            result += _read(node, resource, count, mode)
    return result


def part_of(gpu: Gpu, mode: str) -> Gpu | None:
    """The logical device that a partition mode makes of a card; None where the card has no such mode."""
    match = _MODE.fullmatch(mode.lower())
    if match is None:
        return None
    parts = _PARTS.get(match["compute"], gpu.dies)
    if parts == 1:
        return gpu
    if parts > gpu.dies or gpu.dies % parts:
        return None
    return replace(
        gpu,
        name=f"{gpu.name}-{mode.upper()}",
        memory_bytes=gpu.memory_bytes // parts,
        memory_measured=False,
        bandwidth=gpu.bandwidth // parts,
        flops={dtype: rate // parts for dtype, rate in gpu.flops.items()},
        aliases=(),
        dies=gpu.dies // parts,
    )


def _read(node: NodeFacts, resource: str, count: int, mode: str | None) -> Reading:
    product = _product(node, resource)
    if isinstance(product, Reading):
        return product
    card = product.gpu
    gpu = part_of(card, mode) if mode else card
    if gpu is None:
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"{card.name} has no partition mode {mode}, which {PARTITION if resource == RESOURCE else resource} names",
        )
    partition = mode if gpu is not card else None
    memory, notes = _memory(gpu, node.labels.get(_key(node.labels, "vram") or ""), partition)
    mode_key = _key(node.labels, "compute-memory-partition")
    device = Device(
        gpu=gpu,
        memory_bytes=memory,
        resource=resource,
        count=count,
        partition=partition,
        card=card.name if partition else None,
        driver=node.labels.get(_key(node.labels, "driver-version") or ""),
        pins=(*product.pins, *(((mode_key, node.labels[mode_key]),) if mode_key else ())),
        notes=notes,
    )
    return Reading((device,))


def _key(labels: Mapping[str, str], name: str) -> str | None:
    """The label's key under the prefix that the node's labeller uses."""
    return next((prefix + name for prefix in _PREFIXES if labels.get(prefix + name)), None)


def _counted(labels: Mapping[str, str], name: str) -> list[str]:
    """Keys of the older labeller, which have the value at their end: beta.amd.com/gpu.product-name.AMD_Instinct_MI300X=8."""
    return sorted(key for key in labels if key.startswith(f"beta.amd.com/gpu.{name}."))


def _product(node: NodeFacts, resource: str) -> Named | Reading:
    labels, counted = node.labels, _counted(node.labels, "product-name")
    if len(counted) > 1:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node holds different GPUs by its labels {', '.join(counted)}, and {resource} does not tell them apart",
        )
    if key := _key(labels, "product-name"):
        return named(labels[key], vendor=Vendor.AMD, resource=resource, pins=((key, labels[key]),))
    for key in counted:
        name = key.removeprefix("beta.amd.com/gpu.product-name.")
        return named(name, vendor=Vendor.AMD, resource=resource, pins=((key, labels[key]),))
    if said := declared(node, vendor=Vendor.AMD, resource=resource):
        return said
    if key := _key(labels, "device-id"):
        return named(f"1002:{labels[key]}", vendor=Vendor.AMD, resource=resource, pins=((key, labels[key]),))
    ids = _counted(labels, "device-id")
    if len(ids) == 1:
        name = "1002:" + ids[0].removeprefix("beta.amd.com/gpu.device-id.")
        return named(name, vendor=Vendor.AMD, resource=resource, pins=((ids[0], labels[ids[0]]),))
    return unnamed(resource, PRODUCT, "run the AMD node labeller")


def _memory(gpu: Gpu, vram: str | None, partition: str | None) -> tuple[int, tuple[str, ...]]:
    """Memory by the label where it contradicts the catalogue, else by the catalogue. For partitions the label is not believed, as labellers
    divide by compute parts whatever the memory mode is."""
    match = re.fullmatch(r"(\d+)(G|Gi|GB|GiB)", vram or "")
    if match is None or partition:
        return gpu.memory_bytes, ()
    labelled = int(match[1]) * GIB
    if abs(labelled - gpu.memory_bytes) <= _TOLERANCE * gpu.memory_bytes:
        return gpu.memory_bytes, ()
    note = f"{VRAM}={vram} contradicts the catalogue, where {gpu.name} has {gpu.memory_bytes // GIB} GiB; the label is believed"
    return labelled, (note,)
