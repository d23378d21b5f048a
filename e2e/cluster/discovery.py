"""Labels that discovery writes on a vendor's nodes, beside the few by which a fleet file says what is meant.

NVIDIA's feature discovery and GPU operator, AMD's node labeller, Intel's rules for node feature discovery, and node feature discovery
alone, which is all that a Gaudi has. Values follow from the catalogue; drivers are of one release. Nothing here is read by the product.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from plimsoll.facts.gpus import GIB, MIB, Gpu, gpu_named
from plimsoll.facts.labels import amd, gaudi, intel, nvidia
from plimsoll.facts.labels.mig import MigProfile, slice_of

Labels = dict[str, str]

HOST: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "feature.node.kubernetes.io/kernel-version.major": "6",
    "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
}
NVIDIA_DRIVER: Final = "580.95.05"
CUDA: Final = "13.0"
AMD_DRIVER: Final = "6.14.14"
FAMILIES: Final[Mapping[str, str]] = {"ada": "ada-lovelace"}
"""Where feature discovery calls an architecture otherwise than the catalogue."""


def discovered(
    labels: Mapping[str, str], allocatable: Mapping[str, str], claimable: int | None = None
) -> Labels:
    """All that a node with these labels and devices would carry; `claimable` counts those that are not allocatable."""
    found = {**HOST}
    if product := labels.get(nvidia.PRODUCT):
        found |= _nvidia(gpu_named(product), labels, allocatable)
    elif product := labels.get(amd.PRODUCT):
        found |= _amd(gpu_named(product), allocatable.get(amd.RESOURCE) or str(claimable))
    elif product := labels.get(intel.PRODUCT):
        count = claimable or sum(int(allocatable.get(name, 0)) for name in intel.RESOURCES)
        found |= _intel(gpu_named(product), count)
    elif gaudi.RESOURCE in allocatable or claimable:
        found |= _gaudi(labels[gaudi.INSTANCE_TYPE])
    # What the file says goes first, apart from the product, to which sharing adds its mark.
    return found | {key: value for key, value in labels.items() if key != nvidia.PRODUCT}


def _nvidia(gpu: Gpu, labels: Mapping[str, str], allocatable: Mapping[str, str]) -> Labels:
    major, minor = gpu.compute.split(".")
    shared = int(labels.get(nvidia.REPLICAS, "1")) > 1
    found = {
        nvidia.PRODUCT: labels[nvidia.PRODUCT] + ("-SHARED" if shared else ""),
        nvidia.MEMORY: str(driver_mib(gpu.memory_bytes)),
        nvidia.REPLICAS: "1",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.family": FAMILIES.get(gpu.architecture, gpu.architecture),
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.machine": "Simulated-Server",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if shared else "none",
        "nvidia.com/gpu.deploy.device-plugin": "true",
        "nvidia.com/gpu.deploy.driver": "true",
        "nvidia.com/gpu.deploy.gpu-feature-discovery": "true",
        "nvidia.com/gfd.timestamp": "1767225600",
        "nvidia.com/mig.capable": str(gpu.mig_slices > 0).lower(),
        "nvidia.com/mps.capable": "false",
        "nvidia.com/vgpu.present": "false",
        **_versions("cuda.driver-version", NVIDIA_DRIVER, ("major", "minor", "revision")),
        **_versions("cuda.driver", NVIDIA_DRIVER, ("major", "minor", "rev"), full=False),
        **_versions("cuda.runtime-version", CUDA, ("major", "minor")),
        **_versions("cuda.runtime", CUDA, ("major", "minor"), full=False),
    }
    sliced = {name: count for name, count in allocatable.items() if name.startswith(nvidia.RESOURCE_MIG)}
    if gpu.mig_slices:
        found[nvidia.STRATEGY] = "mixed" if sliced else "single"
    for resource, count in sliced.items():
        found |= _slices(gpu, labels[nvidia.PRODUCT], resource, count)
    return found


def _slices(gpu: Gpu, product: str, resource: str, count: str) -> Labels:
    profile = MigProfile.parse(resource.removeprefix(nvidia.RESOURCE_MIG))
    part = slice_of(gpu, profile) if profile else None
    assert profile is not None
    assert part is not None  # a fleet file with another profile is refused before
    return {
        "nvidia.com/mig.config": f"all-{profile}",
        "nvidia.com/mig.config.state": "success",
        f"{resource}.count": count,
        f"{resource}.memory": str(part.memory_bytes // MIB),
        f"{resource}.product": f"{product}-MIG-{profile}",
        f"{resource}.replicas": "1",
        f"{resource}.sharing-strategy": "none",
    }


def _versions(prefix: str, version: str, parts: tuple[str, ...], *, full: bool = True) -> Labels:
    found = {
        f"nvidia.com/{prefix}.{part}": value for part, value in zip(parts, version.split("."), strict=True)
    }
    return found | {f"nvidia.com/{prefix}.full": version} if full else found


def driver_mib(runtime_bytes: int) -> int:
    """What the driver says of a card whose runtime shows these bytes: the inverse of the catalogue's reading of labels."""
    return round((runtime_bytes + 0.43 * GIB) / (0.999 * MIB))


def _amd(gpu: Gpu, count: str) -> Labels:
    product = gpu.aliases[0].replace(" ", "_")
    vram = f"{round(gpu.memory_bytes / GIB)}G"
    found = {
        "amd.com/gpu.family": "AI",
        amd.VRAM: vram,
        "amd.com/gpu.driver-version": AMD_DRIVER,
        "beta.amd.com/gpu.family.AI": count,
        f"beta.amd.com/gpu.vram.{vram}": count,
        f"beta.amd.com/gpu.product-name.{product}": count,
        "feature.node.kubernetes.io/pci-0300_1002.present": "true",
    }
    if device := _device(gpu, "1002"):
        found["amd.com/gpu.device-id"] = device
    if gpu.dies > 1:
        found |= {
            amd.PARTITION: "spx_nps1",
            "amd.com/compute-partitioning-supported": "true",
            "amd.com/memory-partitioning-supported": "true",
        }
    return found


def _intel(gpu: Gpu, count: int) -> Labels:
    found = {
        "intel.feature.node.kubernetes.io/gpu": "true",
        "gpu.intel.com/family": gpu.name.partition("-")[0] + "_Series",
        intel.COUNT: str(count),
    }
    if device := _device(gpu, "8086"):
        found[f"gpu.intel.com/device-id.0380-{device}.present"] = "true"
    return found


def _gaudi(instance_type: str) -> Labels:
    device = _device(gpu_named(instance_type), "1da3")
    return {f"feature.node.kubernetes.io/pci-1200_1da3_{device}.present": "true"} if device else {}


def _device(gpu: Gpu, vendor: str) -> str | None:
    """The PCI device, where the catalogue has it."""
    found = (re.fullmatch(rf"{vendor}:([0-9a-f]{{4}})", name) for name in gpu.aliases)
    return next((match[1] for match in found if match), None)
