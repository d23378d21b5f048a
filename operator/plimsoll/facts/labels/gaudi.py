"""Gaudi nodes: no labeller of their own, so the product comes from where it happens to be said, or is not known.

In this order: a node class of the admin's, a PCI identity by node feature discovery (which needs its device field switched
on), an instance type that carries the generation in its name.
"""

from __future__ import annotations

import re

from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.labels.device import Device, NodeFacts, ProblemReason, Reading, problem
from plimsoll.facts.labels.product import DECLARED, named

RESOURCE = "habana.ai/gaudi"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_IDENTITY = re.compile(
    r"feature\.node\.kubernetes\.io/pci-([0-9a-f]{4}_)?1da3_(?P<device>[0-9a-f]{4})\.present"
)
_GENERATION = re.compile(r"gaudi-?(?P<generation>\d)", re.IGNORECASE)


def read(node: NodeFacts) -> Reading:
    count = node.allocatable.get(RESOURCE, 0)
    if count <= 0:
        return Reading()
    gpu = _product(node)
    if isinstance(gpu, Reading):
        return gpu
    return Reading((Device(gpu=gpu, memory_bytes=gpu.memory_bytes, resource=RESOURCE, count=count),))


def _product(node: NodeFacts) -> Gpu | Reading:
    if node.declared_product:
        return _named(node.declared_product, DECLARED)
    for key in sorted(node.labels):
        if match := _IDENTITY.fullmatch(key):
            return _named(f"1da3:{match['device']}", f"label {key}")
    instance = node.labels.get(INSTANCE_TYPE, "")
    if match := _GENERATION.search(instance):
        return _named(f"Gaudi{match['generation']}", f"label {INSTANCE_TYPE}={instance}")
    return problem(
        ProblemReason.MISSING_LABEL,
        f"the node offers {RESOURCE}, but no label says whether that is Gaudi 2 or Gaudi 3; declare a node class that "
        "covers the node, or let node feature discovery write PCI devices "
        "(feature.node.kubernetes.io/pci-1200_1da3_1060.present)",
    )


def _named(name: str, source: str) -> Gpu | Reading:
    return named(name, source=source, vendor=Vendor.HABANA, resource=RESOURCE)
