"""Estates of any size: the ready mixed one, grown in proportion, so that what is found out about a few nodes can be tried on many.

As a fleet for a cluster, or as the snapshot that `plimsoll snapshot` would take of that cluster, for sizes that no test machine holds.
"""

from __future__ import annotations

from typing import Final

import yaml

from cluster.api import Object
from cluster.fleet import Fleet, fleet_of, ready_fleets
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.snapshot import Snapshot, take_snapshot

PATTERN: Final = "mixed-200"


def estate_file(nodes: int) -> Object:
    """The fleet file: every pool has its share, the largest ones what rounding leaves; every pool has a node at least."""
    document: Object = yaml.safe_load(ready_fleets()[PATTERN].read_text())
    pools = document["pools"]
    if nodes < len(pools):
        raise LookupError(f"an estate has {len(pools)} kinds of nodes, so {nodes} are too few")
    total = sum(pool["nodes"] for pool in pools)
    counts = [max(1, pool["nodes"] * nodes // total) for pool in pools]
    by_size = sorted(range(len(pools)), key=lambda at: -pools[at]["nodes"])
    step = 1 if sum(counts) < nodes else -1
    for at in range(abs(nodes - sum(counts))):
        counts[by_size[at % len(pools)]] += step
    for pool, count in zip(pools, counts, strict=True):
        if free := pool.get("freeGpus"):
            pool["freeGpus"] = [free[at % len(free)] for at in range(count)]
        pool["nodes"] = count
    return document


def estate(nodes: int) -> Fleet:
    return fleet_of(f"estate-{nodes}", estate_file(nodes))


def snapshot_of(fleet: Fleet) -> Snapshot:
    """What would be seen of the fleet once all of it runs. Claims would have to be filled by a scheduler first."""
    if fleet.claims:
        raise LookupError(f"{fleet.name} has claims, which only a cluster can fill")
    return take_snapshot(
        [_ready(node) for node in fleet.nodes],
        [{**pod, "status": {"phase": "Running"}} for pod in fleet.pods],
        slices=fleet.slices,
        config=OperatorConfig.model_validate(fleet.config),
    )


def _ready(node: Object) -> Object:
    return {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}}
