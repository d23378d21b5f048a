"""What a pod without a node waits for, as its scheduler says: whether room is lacking, or something that no room would give it.

The scheduler's own sentence is read here alone: rollouts, the status and the count of what waits must not take it for different things.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from plimsoll.facts.serving import NOWHERE, PodSeen, Stage


class Lack(StrEnum):
    ROOM = "room"
    """What other pods hold: it may get that when one of them goes. A queue that holds it back is as full as nodes are."""
    NODES = "nodes"
    """Nodes of its kind or size, or those of them that take pods: it gets none of it when others go."""
    VOLUME = "volume"
    """A volume that it names, which is not there or not bound."""
    SCHEDULER = "scheduler"
    """A scheduler: none has said anything of it, so it has only just been made, or nobody looks after what it names."""


OWN: Final = frozenset({Lack.VOLUME, Lack.SCHEDULER})
"""What is no matter of the fleet: with all of its GPUs free the pod would have no node either."""
_VOLUME: Final = re.compile(
    r"persistentvolumeclaim|unbound immediate|non-existent pv|persistent volumes to bind|storageclass",
    re.IGNORECASE,
)
_NODES: Final = re.compile(
    r"untolerated taint|node affinity|were unschedulable|pod affinity rules|requested node name|no nodes available"
)
_HELD: Final = re.compile(
    r"Insufficient|Too many pods|free ports|anti-affinity rules|topology spread|cannot allocate|max volume count|ReadWriteOncePod"
)
_PASSES: Final = re.compile(
    r"were unschedulable|taint(?:\(s\))? \{node\.(?:kubernetes|cloudprovider\.kubernetes)\.io/"
)
"""Nodes that are cordoned, not ready, or not set up yet."""
_NO_HELP: Final = "Preemption is not helpful"
"""Of nodes from which other pods could go without any use, as what is asked for is more than the whole node, or another kind of node."""


def lack_of(pod: PodSeen) -> Lack | None:
    """None where it has a node. What schedulers other than Kubernetes' own say is mostly of room, so what is not known is taken for that."""
    if pod.stage not in NOWHERE:
        return None
    if pod.stage is Stage.GATED:
        return Lack.ROOM
    said, _, preemption = pod.message.partition("preemption: ")
    if not said and not pod.reason:
        return Lack.SCHEDULER
    if _VOLUME.search(said) and not _HELD.search(said):
        return Lack.VOLUME
    of_nodes = [one for one in preemption.partition("nodes are available: ")[2].split(", ") if one]
    if of_nodes:
        return Lack.NODES if all(_NO_HELP in one for one in of_nodes) else Lack.ROOM
    return Lack.NODES if _NODES.search(said) and not _HELD.search(said) else Lack.ROOM


def passes(pod: PodSeen) -> bool:
    """Whether nodes that would do are there, and only take no pods now."""
    return _PASSES.search(pod.message) is not None
