"""The vendors' node labels, one reader a vendor; a new vendor is one file and one line in `READERS`."""

from __future__ import annotations

from plimsoll.facts.labels import nvidia
from plimsoll.facts.labels.device import Device, NodeFacts, Problem, ProblemReason, Reading

__all__ = ["READERS", "Device", "NodeFacts", "Problem", "ProblemReason", "Reading", "read_node"]

READERS = (nvidia.read,)


def read_node(node: NodeFacts) -> Reading:
    """Every device that any vendor's reader finds on the node, and every problem."""
    result = Reading()
    for reader in READERS:
        result += reader(node)
    return result
