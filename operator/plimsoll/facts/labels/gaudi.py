"""Gaudi nodes. They have no labeller of their own, so the product is taken from wherever it is named.

These are looked at in turn: a label that names it, the admin's node class, a PCI identity by node feature discovery (which needs its device
field switched on), and an instance type with the generation in its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from plimsoll.facts.gpus import Vendor
from plimsoll.facts.labels.device import Device, NodeFacts, ProblemReason, Reading, problem
from plimsoll.facts.labels.product import Named, declared, named

RESOURCE = "habana.ai/gaudi"
PRODUCT = "habana.ai/product.name"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_IDENTITY = re.compile(
    r"feature\.node\.kubernetes\.io/pci-([0-9a-f]{4}_)?1da3_(?P<device>[0-9a-f]{4})\.present"
)
_GENERATION = re.compile(r"gaudi-?(?P<generation>\d)", re.IGNORECASE)


def read(node: NodeFacts) -> Reading:
    count = node.allocatable.get(RESOURCE, 0)
    if count <= 0:
        return Reading()
    product = _product(node)
    if isinstance(product, Reading):
        return product
    gpu = product.gpu
    device = Device(gpu=gpu, memory_bytes=gpu.memory_bytes, resource=RESOURCE, count=count, pins=product.pins)
    return Reading((device,))


def _product(node: NodeFacts) -> Named | Reading:
    labels = node.labels
    if name := labels.get(PRODUCT):
        return _named(name, PRODUCT, labels)
    if said := declared(node, vendor=Vendor.HABANA, resource=RESOURCE):
        return said
    for key in sorted(labels):
        if match := _IDENTITY.fullmatch(key):
            return _named(f"1da3:{match['device']}", key, labels)
    if match := _GENERATION.search(labels.get(INSTANCE_TYPE, "")):
        return _named(f"Gaudi{match['generation']}", INSTANCE_TYPE, labels)
    return problem(
        ProblemReason.MISSING_LABEL,
        f"the node offers {RESOURCE}, but no label says whether that is Gaudi 2 or Gaudi 3; set {PRODUCT}, declare a node "
        "class that covers the node, or let node feature discovery write PCI devices "
        "(feature.node.kubernetes.io/pci-1200_1da3_1060.present)",
    )


def _named(name: str, key: str, labels: Mapping[str, str]) -> Named | Reading:
    return named(name, vendor=Vendor.HABANA, resource=RESOURCE, pins=((key, labels[key]),))
