"""Intel GPU nodes: labels of node feature discovery, devices of the plugin (i915 or xe). Memory is the catalogue's.

The product label names one product only; the labels that count devices by PCI identity show when there are two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.labels.device import (
    Device,
    NodeFacts,
    ProblemReason,
    Reading,
    problem,
    whole_number,
)
from plimsoll.facts.labels.product import DECLARED, named, unnamed

RESOURCES = ("gpu.intel.com/i915", "gpu.intel.com/xe")
PRODUCT = "gpu.intel.com/product"
COUNT = "gpu.intel.com/device.count"
_IDENTITY = re.compile(r"gpu\.intel\.com/device-id\.[0-9a-f]{4}-(?P<device>[0-9a-f]{4})\.(present|count)")


def read(node: NodeFacts) -> Reading:
    result = Reading()
    for resource in RESOURCES:
        count = node.allocatable.get(resource, 0)
        if count > 0:
            result += _read(node, resource, count)
    return result


def _read(node: NodeFacts, resource: str, offered: int) -> Reading:
    gpu = _product(node, resource)
    if isinstance(gpu, Reading):
        return gpu
    cards = whole_number(node.labels, COUNT) or offered
    if offered % cards and offered > cards:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node offers {offered} of {resource}, which {COUNT}={cards} neither equals nor divides; it may hold "
            "different GPUs",
        )
    sharing = max(1, offered // cards)
    return Reading(
        (Device(gpu=gpu, memory_bytes=gpu.memory_bytes, resource=resource, count=offered, sharing=sharing),)
    )


def _product(node: NodeFacts, resource: str) -> Gpu | Reading:
    devices = _identities(node.labels)
    if len(devices) > 1:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node holds different GPUs (PCI devices {', '.join(devices)} by its labels "
            f"gpu.intel.com/device-id.*), and {resource} does not tell them apart",
        )
    if name := node.labels.get(PRODUCT):
        return named(name, source=f"label {PRODUCT}", vendor=Vendor.INTEL, resource=resource)
    if node.declared_product:
        return named(node.declared_product, source=DECLARED, vendor=Vendor.INTEL, resource=resource)
    if devices:
        source = f"label gpu.intel.com/device-id.*-{devices[0]}"
        return named(f"8086:{devices[0]}", source=source, vendor=Vendor.INTEL, resource=resource)
    return unnamed(resource, PRODUCT, "run node feature discovery with Intel's rules")


def _identities(labels: Mapping[str, str]) -> list[str]:
    found = {match["device"] for key in labels if (match := _IDENTITY.fullmatch(key))}
    return sorted(found)
