"""What a node's labels and resources say about its devices, with one reader for each vendor.

A new vendor needs one file with a `read` and one line in `READERS`.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.facts.gpus import Vendor
from plimsoll.facts.labels import amd, gaudi, intel, nvidia
from plimsoll.facts.labels.device import Device, NodeFacts, Problem, ProblemReason, Reading

__all__ = [
    "DEVICE_LABELS",
    "DOMAINS",
    "READERS",
    "Device",
    "NodeFacts",
    "Problem",
    "ProblemReason",
    "Reading",
    "read_node",
]

DEVICE_LABELS = (
    "nvidia.com/gpu.",
    "nvidia.com/mig-",
    "nvidia.com/cuda.driver",
    "amd.com/gpu.",
    "beta.amd.com/gpu.",
    "gpu.intel.com/",
    "habana.ai/product.name",
    "feature.node.kubernetes.io/pci-",
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-",
    "karpenter.k8s.aws/instance-gpu-",
    "eks.amazonaws.com/instance-gpu-",
    "karpenter.azure.com/sku-gpu-name",
)
"""Prefixes of all label keys that a reader looks at; other labels cannot change a reading."""

READERS = {
    Vendor.NVIDIA: (nvidia.read, "nvidia.com/"),
    Vendor.AMD: (amd.read, "amd.com/"),
    Vendor.INTEL: (intel.read, "gpu.intel.com/"),
    Vendor.HABANA: (gaudi.read, "habana.ai/"),
}
"""By vendor: its reader, and the domain of the resources that its device plugin lets pods request."""
DOMAINS = tuple(domain for _, domain in READERS.values())


def read_node(node: NodeFacts) -> Reading:
    """All devices and all problems that the vendors' readers find on a node, and the vendors whose device plugins offer anything there."""
    result = Reading()
    for vendor, (read, domain) in READERS.items():
        found = read(node)
        offers = any(count > 0 and name.startswith(domain) for name, count in node.allocatable.items())
        plugged = found.devices or (found.problems and offers)
        result += replace(found, plugged=frozenset({vendor})) if plugged else found
    return result
