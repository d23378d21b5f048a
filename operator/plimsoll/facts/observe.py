"""From Kubernetes objects as the API gives them, plain dicts, to the inventory that planning reads.

No client and no clock here: whoever calls has the objects, from a cluster or from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.facts.fleet import Fleet
from plimsoll.facts.inventory import Inventory


def observe(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]] | None = None,
    *,
    selectors: Iterable[Mapping[str, str]] = (),
) -> Inventory:
    """The inventory of these objects. Without `pods` (None, not empty) free is allocatable, and the value says so.

    `selectors` are the node selectors of all resources to be planned: pools are divided by what these name.
    """
    fleet = Fleet(selectors=selectors)
    for node in nodes:
        fleet.add_node(node)
    if pods is not None:
        fleet.pods_are_known()
        for pod in pods:
            fleet.add_pod(pod)
    return fleet.inventory()
