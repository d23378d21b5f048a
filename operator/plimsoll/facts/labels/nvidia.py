"""NVIDIA nodes: the labels of GPU feature discovery, or a cloud's own, beside what the device plugin lets pods request.

A node offers whole cards, cards shared by time slicing or MPS, or MIG slices: slices of one kind under the strategy `single`, several
resources side by side under `mixed`. Labels describe only one product, so counts that disagree show that a node has two. `mig` knows what
a MIG slice has, `dra` reads devices that pods get by claims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from plimsoll.facts.gpus import MIB, Gpu, Vendor, runtime_total
from plimsoll.facts.labels.device import (
    Device,
    NodeFacts,
    Pair,
    ProblemReason,
    Reading,
    problem,
    whole_number,
)
from plimsoll.facts.labels.mig import MigProfile, slice_of
from plimsoll.facts.labels.product import Named, declared, named, unnamed

RESOURCE = "nvidia.com/gpu"
RESOURCE_SHARED = "nvidia.com/gpu.shared"
RESOURCE_MIG = "nvidia.com/mig-"
PRODUCT = "nvidia.com/gpu.product"
COUNT = "nvidia.com/gpu.count"
MEMORY = "nvidia.com/gpu.memory"
REPLICAS = "nvidia.com/gpu.replicas"
STRATEGY = "nvidia.com/mig.strategy"
CLIQUE = "nvidia.com/gpu.clique"
GKE_PRODUCT = "cloud.google.com/gke-accelerator"
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"

# Clouds that do not run feature discovery name the product in labels of their own. Only those of these whose value a
# catalogue entry claims are understood; the memory label tells siblings of one family apart.
_CLOUD_PRODUCTS = (
    (GKE_PRODUCT, None),
    ("karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory"),
    ("eks.amazonaws.com/instance-gpu-name", "eks.amazonaws.com/instance-gpu-memory"),
    ("karpenter.azure.com/sku-gpu-name", None),
)
_MIG_SUFFIX = re.compile(r"-MIG-(?P<profile>[0-9]+g\.[0-9]+gb[a-z0-9.+-]*)$", re.IGNORECASE)
_TOLERANCE = 0.025
"""A memory label that differs from the catalogue by no more than this share is of the same card: drivers keep more or less of it."""


def read(node: NodeFacts) -> Reading:
    offered = {
        name: count
        for name, count in node.allocatable.items()
        if count > 0 and name.startswith("nvidia.com/")
    }
    whole = {name: offered[name] for name in (RESOURCE, RESOURCE_SHARED) if name in offered}
    sliced = {name: offered[name] for name in sorted(offered) if name.startswith(RESOURCE_MIG)}
    if node.labels.get(PRODUCT, "").endswith("-MIG-INVALID"):
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"label {PRODUCT}={node.labels[PRODUCT]}: under the MIG strategy single all GPUs of a node must be cut alike, "
            "and these are not; cut them alike, or use the strategy mixed",
        )
    if not whole and not sliced:
        return Reading()
    product = _product(node)
    if isinstance(product, Reading):
        return product
    result = Reading()
    for resource, count in whole.items():
        result += _cards(node, product, resource, count)
    for resource, count in sliced.items():
        result += _slices(node, product, resource, count)
    return result


def driver_version(labels: Mapping[str, str]) -> str | None:
    """Newer labellers give the version whole, older ones in parts under two spellings."""
    full = labels.get("nvidia.com/cuda.driver-version.full")
    if full:
        return full
    for prefix, last in (("nvidia.com/cuda.driver-version.", "revision"), ("nvidia.com/cuda.driver.", "rev")):
        parts = [labels.get(prefix + part, "") for part in ("major", "minor", last)]
        if parts[0]:
            return ".".join(part for part in parts if part)
    return None


def _product(node: NodeFacts) -> Named | Reading:
    labels = node.labels
    if label := labels.get(PRODUCT):
        plain = _MIG_SUFFIX.sub("", label.removesuffix("-SHARED"))
        found = named(plain, vendor=Vendor.NVIDIA, resource=RESOURCE, pins=((PRODUCT, label),))
        return found if isinstance(found, Reading) else _agreeing(found.gpu, labels) or found
    if said := declared(node, vendor=Vendor.NVIDIA, resource=RESOURCE):
        return said
    for key, memory_key in _CLOUD_PRODUCTS:
        if labels.get(key):
            return _cloud(labels, key, memory_key)
    return unnamed(RESOURCE, PRODUCT, "run GPU feature discovery")


def _cloud(labels: Mapping[str, str], key: str, memory_key: str | None) -> Named | Reading:
    """A cloud's family name alone where it is unambiguous, else with the memory it gives in MiB."""
    pins: tuple[Pair, ...] = ((key, labels[key]),)
    found = named(labels[key], vendor=Vendor.NVIDIA, resource=RESOURCE, pins=pins)
    memory = whole_number(labels, memory_key) if memory_key else None
    if isinstance(found, Named) or memory is None or memory_key is None:
        return found
    name = f"{labels[key]}-{round(memory / 1024)}GB"
    pins = (*pins, (memory_key, labels[memory_key]))
    exact = named(name, vendor=Vendor.NVIDIA, resource=RESOURCE, pins=pins)
    return exact if isinstance(exact, Named) else found


def _agreeing(gpu: Gpu, labels: Mapping[str, str]) -> Reading | None:
    """None where the other labels may speak of the same product; a problem where they cannot."""
    major, minor = labels.get("nvidia.com/gpu.compute.major"), labels.get("nvidia.com/gpu.compute.minor")
    if major and minor and f"{major}.{minor}" != gpu.compute:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"labels contradict each other: {PRODUCT}={labels[PRODUCT]} has compute capability {gpu.compute}, "
            f"nvidia.com/gpu.compute.major/minor say {major}.{minor}; the node may hold different GPUs, which feature "
            "discovery cannot describe",
        )
    return None


def _cards(node: NodeFacts, product: Named, resource: str, count: int) -> Reading:
    """Whole cards (maybe shared), or under the MIG strategy `single` slices offered under the cards' name."""
    labels = node.labels
    replicas = REPLICAS if REPLICAS in labels else GKE_CLIENTS
    sharing = whole_number(labels, replicas) or 1
    if resource == RESOURCE_SHARED and sharing == 1:
        return problem(
            ProblemReason.MISSING_LABEL,
            f"the node offers {RESOURCE_SHARED} but label {REPLICAS}, the number of pods a GPU, is missing or 1",
        )
    labelled = whole_number(labels, COUNT)
    if labelled is not None and count > labelled * sharing:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node offers {count} of {resource}, but {COUNT}={labelled}"
            + (f" with {replicas}={sharing}" if sharing > 1 else "")
            + f" makes {labelled * sharing}; the node may hold different GPUs, of which the labels describe one kind",
        )
    label = labels.get(PRODUCT, "")
    if sharing > 1 and resource == RESOURCE and not label.endswith("-SHARED"):
        product = replace(product, pins=(*product.pins, (replicas, labels[replicas])))
    mig = _MIG_SUFFIX.search(label.removesuffix("-SHARED"))
    cut = mig["profile"] if mig else labels.get(GKE_PARTITION)
    if cut:
        if not mig:
            product = replace(product, pins=(*product.pins, (GKE_PARTITION, cut)))
        memory_mib = whole_number(labels, MEMORY)
        profile = MigProfile.parse(cut)
        return _partition(
            node, product, profile, resource=resource, count=count, sharing=sharing, memory_mib=memory_mib
        )
    gpu = product.gpu
    memory, notes = _memory(gpu, whole_number(labels, MEMORY))
    device = Device(
        gpu=gpu,
        memory_bytes=memory,
        resource=resource,
        count=count,
        sharing=sharing,
        driver=driver_version(labels),
        fabric=labels.get(CLIQUE) if gpu.link.domain > 8 else None,
        pins=product.pins,
        notes=notes,
    )
    return Reading((device,))


def _slices(node: NodeFacts, product: Named, resource: str, count: int) -> Reading:
    whole = resource.removesuffix(".shared")
    profile = MigProfile.parse(whole.removeprefix(RESOURCE_MIG))
    memory = whole_number(node.labels, f"{whole}.memory")
    sharing = whole_number(node.labels, f"{whole}.replicas") or 1
    return _partition(
        node, product, profile, resource=resource, count=count, sharing=sharing, memory_mib=memory
    )


def _partition(
    node: NodeFacts,
    product: Named,
    profile: MigProfile | None,
    *,
    resource: str,
    count: int,
    sharing: int,
    memory_mib: int | None,
) -> Reading:
    gpu = product.gpu
    part = slice_of(gpu, profile) if profile else None
    if profile is None or part is None:
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"the node offers {resource}, but {gpu.name} has no such MIG profile"
            + (f" {profile}" if profile else ""),
        )
    device = Device(
        gpu=part,
        memory_bytes=memory_mib * MIB if memory_mib else part.memory_bytes,
        resource=resource,
        count=count,
        sharing=sharing,
        partition=str(profile),
        card=gpu.name,
        driver=driver_version(node.labels),
        pins=product.pins,
    )
    return Reading((device,))


def _memory(gpu: Gpu, label_mib: int | None) -> tuple[int, tuple[str, ...]]:
    """What the runtime will show, from the label where it contradicts the catalogue."""
    if label_mib is None:
        return gpu.memory_bytes, ()
    labelled = runtime_total(label_mib)
    if abs(labelled - gpu.memory_bytes) <= _TOLERANCE * gpu.memory_bytes:
        return gpu.memory_bytes, ()
    note = (
        f"{MEMORY}={label_mib} contradicts the catalogue, where {gpu.name} shows {gpu.memory_bytes // MIB} MiB; the "
        "label is believed"
    )
    return labelled, (note,)
