"""Devices that pods get by claims, as drivers offer them in a cluster: device classes, slices, and the claims of others.

A fleet file says which devices there are; the attributes that a vendor's driver publishes beside are added here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from cluster.discovery import CUDA, NVIDIA_DRIVER, driver_mib
from plimsoll.facts.gpus import MIB, Gpu, gpu_named
from plimsoll.facts.labels.dra import DRIVERS, MIG_CLASS
from plimsoll.facts.labels.mig import MigProfile, slice_of

Object = dict[str, Any]
API: Final = "/apis/resource.k8s.io/v1"
API_VERSION: Final = "resource.k8s.io/v1"
CLAIM: Final = "gpus"
"""What a pod of others calls its claim."""


def device_classes() -> list[Object]:
    """Those that the vendors' charts install."""
    classes = {driver: f'device.driver == "{driver}"' for driver in DRIVERS}
    nvidia = "gpu.nvidia.com"
    for name, kind in ((nvidia, "gpu"), (MIG_CLASS, "mig")):
        classes[name] = f'device.driver == "{nvidia}" && device.attributes["{nvidia}"].type == "{kind}"'
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        for name, expression in sorted(classes.items())
    ]


def published(written: Mapping[str, Any], labels: Mapping[str, str]) -> Object:
    """A slice of a fleet file as its driver would publish it."""
    spec = written["spec"]
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {**written["metadata"], "labels": dict(labels)},
        "spec": {
            **spec,
            "devices": [
                _device(spec["driver"], spec["nodeName"], number, device)
                for number, device in enumerate(spec["devices"])
            ],
        },
    }


def _device(driver: str, node: str, number: int, written: Mapping[str, Any]) -> Object:
    named = written["attributes"].get("productName") or written["attributes"]["model"]
    gpu = gpu_named(named["string"])
    profile = written["attributes"].get("profile", {}).get("string")
    memory = _memory_mib(gpu, profile)
    # The root of its bus: devices of one root are near each other.
    attributes = {
        **written["attributes"],
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{number * 16:02x}"},
    }
    if driver == "gpu.nvidia.com":
        attributes |= _nvidia(gpu, node, number, profile)
    return {
        "name": written["name"],
        "attributes": attributes,
        "capacity": {"memory": {"value": f"{memory}Mi"}},
    }


def _nvidia(gpu: Gpu, node: str, number: int, profile: str | None) -> Object:
    card = hashlib.sha256(f"{node} {number}".encode()).hexdigest()
    uuid = "-".join((card[:8], card[8:12], card[12:16], card[16:20], card[20:32]))
    found = {
        "uuid": {"string": f"{'MIG' if profile else 'GPU'}-{uuid}"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": gpu.architecture.capitalize()},
        "cudaComputeCapability": {"version": f"{gpu.compute}.0"},
        "cudaDriverVersion": {"version": f"{CUDA}.0"},
        # A version of three numbers without leading zeros, unlike the label.
        "driverVersion": {"version": ".".join(str(int(part)) for part in NVIDIA_DRIVER.split("."))},
    }
    return found | ({"parentUUID": {"string": f"GPU-{uuid[::-1]}"}} if profile else {})


def _memory_mib(gpu: Gpu, profile: str | None) -> int:
    if profile is None:
        return driver_mib(gpu.memory_bytes) if gpu.vendor == "nvidia" else gpu.memory_bytes // MIB
    parsed = MigProfile.parse(profile)
    part = slice_of(gpu, parsed) if parsed else None
    assert part is not None  # a fleet file with another profile is refused before
    return part.memory_bytes // MIB


def claim_and_pod(
    written: Mapping[str, Any],
    slices: Mapping[str, Mapping[str, Any]],
    namespace: str,
    labels: Mapping[str, str],
) -> tuple[Object, Object]:
    """What others have of a node: a claim that the scheduler fills, and the pod it is for. `slices` are by node."""
    results = written["status"]["allocation"]["devices"]["results"]
    offered = slices[results[0]["pool"]]
    profile = offered["spec"]["devices"][0]["attributes"].get("profile")
    name = written["metadata"]["name"]
    exactly = {
        "deviceClassName": MIG_CLASS if profile else results[0]["driver"],
        "count": len(results),
    }
    about = {"name": name, "namespace": namespace, "labels": dict(labels)}
    claim = {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": about,
        "spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": offered["spec"]["nodeName"]},
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": CLAIM, "resourceClaimName": name}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.invalid/others:1",
                    "resources": {"claims": [{"name": CLAIM}]},
                }
            ],
        },
    }
    return claim, pod
