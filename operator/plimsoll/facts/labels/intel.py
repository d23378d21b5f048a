"""Intel GPU nodes: labels of node feature discovery, devices of the plugin (i915 or xe). Memory is the catalogue's.

The product label names one product only; the labels that count devices by PCI identity show when there are two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from plimsoll.facts.gpus import Vendor
from plimsoll.facts.labels.device import (
    Device,
    NodeFacts,
    ProblemReason,
    Reading,
    problem,
    whole_number,
)
from plimsoll.facts.labels.product import Named, declared, named, unnamed

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
    product = _product(node, resource)
    if isinstance(product, Reading):
        return product
    cards = whole_number(node.labels, COUNT) or offered
    if offered % cards and offered > cards:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node offers {offered} of {resource}, which {COUNT}={cards} neither equals nor divides; it may hold "
            "different GPUs",
        )
    device = Device(
        gpu=product.gpu,
        memory_bytes=product.gpu.memory_bytes,
        resource=resource,
        count=offered,
        sharing=max(1, offered // cards),
        pins=product.pins,
    )
    return Reading((device,))


def _product(node: NodeFacts, resource: str) -> Named | Reading:
    found = _identities(node.labels)
    if len(found) > 1:
        return problem(
            ProblemReason.MIXED_DEVICES,
            f"the node holds different GPUs by its labels {', '.join(found.values())}, and {resource} does not tell them "
            "apart",
        )
    if name := node.labels.get(PRODUCT):
        return named(name, vendor=Vendor.INTEL, resource=resource, pins=((PRODUCT, name),))
    if said := declared(node, vendor=Vendor.INTEL, resource=resource):
        return said
    for identity, key in found.items():
        pins = ((key, node.labels[key]),)
        return named(f"8086:{identity}", vendor=Vendor.INTEL, resource=resource, pins=pins)
    return unnamed(resource, PRODUCT, "run node feature discovery with Intel's rules")


def _identities(labels: Mapping[str, str]) -> dict[str, str]:
    """PCI devices that the node's labels name, each with the first label that names it."""
    found: dict[str, str] = {}
    for key in sorted(labels):
        if match := _IDENTITY.fullmatch(key):
            found.setdefault(match["device"], key)
    return found
