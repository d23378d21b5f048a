"""From Kubernetes objects as the API gives them, plain dicts, to the inventory that planning reads.

It uses no client and no clock: the caller has the objects, from a cluster or from a file. To follow a cluster as it changes, keep a
`fleet.Fleet` instead, which gives the same inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.inventory import Inventory

Object = Mapping[str, Any]


def observe(
    nodes: Iterable[Object],
    pods: Iterable[Object] | None = None,
    slices: Iterable[Object] = (),
    config: OperatorConfig | None = None,
    *,
    claims: Iterable[Object] = (),
    selectors: Iterable[Mapping[str, str]] = (),
) -> Inventory:
    """The inventory of these objects. Where `pods` is None (and not empty), all that is allocatable counts as free, and the inventory says so.

    `selectors` are the node selectors of all resources to be planned: pools are divided by the labels that these name.
    """
    return fleet_of(nodes, pods, slices, config, claims=claims, selectors=selectors).inventory()


def fleet_of(
    nodes: Iterable[Object],
    pods: Iterable[Object] | None = None,
    slices: Iterable[Object] = (),
    config: OperatorConfig | None = None,
    *,
    claims: Iterable[Object] = (),
    selectors: Iterable[Mapping[str, str]] = (),
) -> Fleet:
    """The fleet of these objects, which can be kept current."""
    fleet = Fleet(config, selectors=selectors)
    for item in slices:
        fleet.add_slice(item)
    for node in nodes:
        fleet.add_node(node)
    if pods is not None:
        fleet.pods_are_known()
        for pod in pods:
            fleet.add_pod(pod)
    for claim in claims:
        fleet.add_claim(claim)
    return fleet
