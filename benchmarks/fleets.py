"""Fleets of any size for benchmarks: mixed, partly used, the same for the same seed.

Nodes come as the API gives them, with as many labels as real ones carry, so that parsing is measured too. A shape is what
planning tells nodes apart by: product, devices, how they are cut, host, zone, taint.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from plimsoll.facts.gpus import Gpu, Vendor, gpu_named

Object = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
PRODUCTS = (
    ("H100-SXM-80GB", 8),
    ("L40S-48GB", 4),
    ("A100-SXM-80GB", 8),
    ("L4-24GB", 1),
    ("H200-SXM-141GB", 8),
    ("A10G-24GB", 4),
    ("MI300X", 8),
    ("B200-SXM", 8),
    ("A100-SXM-40GB", 8),
    ("L4-24GB", 8),
    ("T4-16GB", 4),
    ("L40S-48GB", 8),
    ("H100-NVL-94GB", 2),
    ("RTX-PRO-6000-Server", 8),
    ("A100-PCIe-80GB", 4),
    ("RTX-4090", 8),
    ("Gaudi3", 8),
    ("A30-24GB", 4),
    ("MI325X", 8),
    ("V100-SXM-16GB", 8),
    ("RTX-A6000", 4),
    ("Max-1550", 8),
)
TAINTS = (None, {"key": "dedicated", "value": "inference", "effect": "NoSchedule"})
HOSTS = ((64, 512), (192, 2048))


@dataclass(frozen=True, slots=True)
class NodeShape:
    gpu: Gpu
    count: int
    zone: str
    taint: Object | None
    cores: int
    memory_gib: int


@dataclass(frozen=True, slots=True)
class MixedFleet:
    nodes: list[Object]
    pods: list[Object]
    """About two a node: one that holds some of its devices, one that only takes room on the host."""


def shapes(most: int = 240) -> tuple[NodeShape, ...]:
    """Distinct shapes, common products first: 22 products x 3 zones x 2 taints x 2 hosts give 264."""
    every = product(HOSTS, TAINTS, ZONES, PRODUCTS)
    return tuple(
        NodeShape(gpu_named(name), count, zone, taint, cores, memory)
        for (cores, memory), taint, zone, (name, count) in islice(every, most)
    )


def mixed_fleet(nodes: int, *, seed: int = 0, most_shapes: int = 240) -> MixedFleet:
    """A fleet in which every shape is there where there are nodes enough, and some shapes are far more common."""
    chance = random.Random(seed)  # noqa: S311 - a fleet, not a secret
    kinds = shapes(most_shapes)
    weights = [1 / (1 + index // 8) for index in range(len(kinds))]
    drawn = list(kinds[:nodes]) + chance.choices(kinds, weights, k=max(0, nodes - len(kinds)))
    fleet = MixedFleet([], [])
    for number, shape in enumerate(drawn):
        fleet.nodes.append(node(number, shape, chance))
        fleet.pods.extend(_pods(number, shape, chance))
    return fleet


def node(number: int, shape: NodeShape, chance: random.Random) -> Object:
    name = f"node-{number:05d}"
    # Kubelets of one make report a little less or more memory; pools must not come apart over it.
    kib = shape.memory_gib * 1024 * 1024 - 9_000_000 - chance.randrange(64)
    labels, devices = _devices(shape)
    labels |= {
        "topology.kubernetes.io/zone": shape.zone,
        "topology.kubernetes.io/region": "region-1",
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "example.com/machine-id": f"{chance.getrandbits(64):016x}",
        "nvidia.com/gfd.timestamp": str(1_700_000_000 + chance.randrange(10**7)),
        **{f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{index:02d}": "true" for index in range(40)},
    }
    cordoned = chance.random() < 0.01
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"{chance.getrandbits(128):032x}", "labels": labels},
        "spec": {
            **({"taints": [dict(shape.taint)]} if shape.taint else {}),
            **({"unschedulable": True} if cordoned else {}),
        },
        "status": {
            "allocatable": {
                "cpu": f"{shape.cores * 1000 - 550}m",
                "memory": f"{kib}Ki",
                "pods": "110",
                **devices,
            },
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
        },
    }


def pod(number: int, kind: str, resource: str, devices: int) -> Object:
    requests = {"cpu": "4", "memory": "16Gi"} | ({resource: str(devices)} if devices else {})
    return {
        "metadata": {"name": f"{kind}-{number:05d}", "namespace": f"team-{number % 20}"},
        "spec": {
            "nodeName": f"node-{number:05d}",
            "containers": [{"name": "main", "image": "example", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


def _pods(number: int, shape: NodeShape, chance: random.Random) -> Iterator[Object]:
    used = chance.choice((0, 0, shape.count, chance.randint(0, shape.count)))
    resource = next(iter(_devices(shape)[1]))
    if used:
        yield pod(number, "worker", resource, used)
    yield pod(number, "agent", resource, 0)


def _devices(shape: NodeShape) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of the product's own labeller and what its device plugin offers."""
    label, count = shape.gpu.aliases[0], str(shape.count)
    if shape.gpu.vendor is Vendor.AMD:
        return {"amd.com/gpu.product-name": label}, {"amd.com/gpu": count}
    if shape.gpu.vendor is Vendor.INTEL:
        return {"gpu.intel.com/product": label}, {"gpu.intel.com/xe": count}
    if shape.gpu.vendor is Vendor.HABANA:
        return {"node.kubernetes.io/instance-type": shape.gpu.name.lower()}, {"habana.ai/gaudi": count}
    major, minor = shape.gpu.compute.split(".")
    labels = {
        "nvidia.com/gpu.product": label,
        "nvidia.com/gpu.count": count,
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.family": shape.gpu.architecture,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": str(shape.gpu.mig_slices > 0).lower(),
        "nvidia.com/cuda.driver-version.full": "580.95.05",
    }
    return labels, {"nvidia.com/gpu": count}
