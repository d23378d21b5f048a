"""ResourceSlices: devices that pods get by claims (resource.k8s.io v1, and v1beta1 with its `basic` level).

A slice lists devices one by one with attributes. Here they become kinds of devices like those that labels give, each with the identities
of its members, so that claims can be counted. Some drivers list a card that is cut into MIG slices as a whole card too, which then does
not count; and some list a card that may be cut with every possible slice, which then counts as the card alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.facts.amounts import whole
from plimsoll.facts.gpus import MIB, Gpu, Vendor, runtime_total
from plimsoll.facts.labels.amd import part_of
from plimsoll.facts.labels.device import Device, Problem, ProblemReason, Reading, problem
from plimsoll.facts.labels.mig import MigProfile, slice_of
from plimsoll.facts.labels.product import named

DRIVERS = {
    "gpu.nvidia.com": Vendor.NVIDIA,
    "gpu.amd.com": Vendor.AMD,
    "gpu.intel.com": Vendor.INTEL,
    "gaudi.intel.com": Vendor.HABANA,
}
MIG_CLASS = "mig.nvidia.com"

Identity = tuple[str, str, str]
"""Driver, pool, device: what a claim's allocation names."""


@dataclass(frozen=True, slots=True)
class DraDevice:
    """One device of a slice, reduced to what planning reads."""

    identity: Identity
    product: str
    product_key: str
    kind: str
    profile: str
    profile_key: str
    memory_bytes: int
    compute: str
    driver_version: str
    uuid: str
    parent: str
    potential: bool
    """A partition that could be made, listed beside the card it would be cut from."""
    tainted: bool


@dataclass(frozen=True, slots=True)
class Slice:
    name: str
    node: str
    pool: tuple[str, str]
    generation: int
    devices: tuple[DraDevice, ...]


@dataclass(frozen=True, slots=True)
class Claimable:
    """A kind of device on a node, with the identities by which claims name its members."""

    device: Device
    identities: tuple[tuple[Identity, ...], ...]
    """For each device its own identity, and those of its possible partitions: a claim of any of these takes the device."""


def parse_slice(item: Mapping[str, Any]) -> Slice | None:
    """A slice of GPUs on one node; None for other drivers and for devices that no node holds."""
    spec = item.get("spec") or {}
    driver, node = spec.get("driver", ""), spec.get("nodeName")
    if driver not in DRIVERS or not node:
        return None
    pool = spec.get("pool") or {}
    place = (driver, str(pool.get("name", node)))
    devices = tuple(_device(place, entry) for entry in spec.get("devices") or ())
    name = (item.get("metadata") or {}).get("name", "")
    return Slice(name, node, place, int(pool.get("generation", 0)), devices)


def claimed(item: Mapping[str, Any]) -> tuple[tuple[Identity, ...], tuple[str, ...]]:
    """Devices that a ResourceClaim has been given, and the pods (namespace/name) that use it."""
    status = item.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    namespace = (item.get("metadata") or {}).get("namespace", "default")
    pods = tuple(
        f"{namespace}/{consumer.get('name', '')}"
        for consumer in status.get("reservedFor") or ()
        if consumer.get("resource") == "pods"
    )
    found = tuple(
        (str(result.get("driver", "")), str(result.get("pool", "")), str(result.get("device", "")))
        for result in results
    )
    return found, pods


def read(slices: Iterable[Slice]) -> tuple[tuple[Claimable, ...], tuple[Problem, ...]]:
    """The kinds of devices in one node's slices. Of each pool only the newest generation of slices counts."""
    slices = tuple(slices)
    newest: dict[tuple[str, str], int] = {}
    for part in slices:
        newest[part.pool] = max(newest.get(part.pool, 0), part.generation)
    devices = [device for part in slices if part.generation == newest[part.pool] for device in part.devices]
    cut = {device.parent for device in devices if device.parent and not device.potential}
    potential: dict[str, list[Identity]] = {}
    for device in devices:
        if device.potential:
            potential.setdefault(device.parent, []).append(device.identity)
    kinds: dict[tuple[str, ...], list[DraDevice]] = {}
    for device in sorted(devices, key=lambda one: one.identity):
        hidden = device.uuid in cut and bool(device.uuid)
        if not device.potential and not device.tainted and not hidden and device.kind != "vfio":
            kinds.setdefault(_kind(device), []).append(device)
    found: list[Claimable] = []
    problems: list[Problem] = []
    for kind in sorted(kinds):
        members = kinds[kind]
        reading = _describe(members)
        problems += reading.problems
        identities = tuple((one.identity, *sorted(potential.get(one.uuid, ()))) for one in members)
        found += (Claimable(made, identities) for made in reading.devices)
    return tuple(found), tuple(problems)


def _kind(device: DraDevice) -> tuple[str, ...]:
    driver = device.identity[0]
    return (
        driver,
        device.product,
        device.profile,
        str(device.memory_bytes),
        device.compute,
        device.driver_version,
    )


def _device(place: tuple[str, str], entry: Mapping[str, Any]) -> DraDevice:
    body = entry.get("basic") or entry
    attributes = {
        key.rpartition("/")[2]: str(next(iter(value.values()), ""))
        if isinstance(value, Mapping)
        else str(value)
        for key, value in (body.get("attributes") or {}).items()
    }
    capacity = {key.rpartition("/")[2]: value for key, value in (body.get("capacity") or {}).items()}
    memory = capacity.get("memory", "0")
    product_key = "productName" if attributes.get("productName") else "model"
    profile_key = "profile" if attributes.get("profile") else "partitionProfile"
    parent = attributes.get("parentUUID", "")
    return DraDevice(
        identity=(*place, str(entry.get("name", ""))),
        product=attributes.get(product_key, ""),
        product_key=product_key,
        kind=attributes.get("type", ""),
        profile=attributes.get(profile_key, ""),
        profile_key=profile_key,
        memory_bytes=whole(memory.get("value", "0") if isinstance(memory, Mapping) else memory),
        compute=".".join(attributes.get("cudaComputeCapability", "").split(".")[:2]),
        driver_version=attributes.get("driverVersion", ""),
        uuid=attributes.get("uuid", ""),
        parent=parent,
        potential=bool(parent and body.get("consumesCounters")),
        tainted=any(taint.get("effect") in {"NoSchedule", "NoExecute"} for taint in body.get("taints") or ()),
    )


def _describe(members: Sequence[DraDevice]) -> Reading:
    first = members[0]
    driver, pool, name = first.identity
    where = f"ResourceSlice of driver {driver}, pool {pool}, device {name}"
    if not first.product:
        return problem(ProblemReason.MISSING_LABEL, f"{where} has no attribute productName")
    source = f"{where}: attribute productName"
    product = named(first.product, source=source, vendor=DRIVERS[driver], resource=driver)
    if isinstance(product, Reading):
        return product
    gpu = product.gpu
    if first.compute and first.compute != gpu.compute:
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"{where} says compute capability {first.compute}, but {gpu.name} has {gpu.compute}",
        )
    part = _part(gpu, first)
    if part is None:
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"{where} has profile {first.profile}, which {gpu.name} has not",
        )
    partition = first.profile if part is not gpu else None
    return Reading(
        (
            Device(
                gpu=part,
                memory_bytes=_memory(part, first, partition),
                resource=MIG_CLASS if partition and gpu.vendor is Vendor.NVIDIA else driver,
                count=len(members),
                partition=partition,
                card=gpu.name if partition else None,
                via_dra=True,
                driver=first.driver_version or None,
                claim_selector=_expression(first),
            ),
        )
    )


def _expression(device: DraDevice) -> str:
    """The expression (CEL) by which a claim asks for devices of this kind."""
    driver = device.identity[0]
    wanted = {device.product_key: device.product}
    if device.profile:
        wanted[device.profile_key] = device.profile
    attributes = f"device.attributes[{json.dumps(driver)}]"
    return " && ".join(f"{attributes}.{key} == {json.dumps(value)}" for key, value in wanted.items())


def _part(gpu: Gpu, device: DraDevice) -> Gpu | None:
    if not device.profile:
        return gpu
    if gpu.vendor is Vendor.AMD:
        return part_of(gpu, re.sub(r"[^a-z0-9_]", "", device.profile.lower()))
    profile = MigProfile.parse(device.profile)
    return slice_of(gpu, profile) if profile else None


def _memory(gpu: Gpu, device: DraDevice, partition: str | None) -> int:
    """Memory that the runtime will show. Drivers list all that a card has, of which the driver keeps some, unless it is a MIG slice."""
    if device.memory_bytes <= 0:
        return gpu.memory_bytes
    is_card = gpu.vendor is Vendor.NVIDIA and not partition
    listed = runtime_total(device.memory_bytes // MIB) if is_card else device.memory_bytes
    close = abs(listed - gpu.memory_bytes) <= 0.025 * gpu.memory_bytes
    return gpu.memory_bytes if close and not partition else listed


def with_fabric(found: Claimable, fabric: str | None) -> Claimable:
    """The same devices in an NVLink domain that spans nodes, which only a node label names."""
    if not fabric or found.device.gpu.link.domain <= 8:
        return found
    return replace(found, device=replace(found.device, fabric=fabric))
