"""What a pod without a node waits for, as its scheduler says: whether room is lacking, or something that no room would give it.

From the scheduler's own sentence that is read here alone: rollouts, the status and the count of what waits must not take it for different
things. `status` picks from it only what helps. Only Kubernetes' own scheduler is known well enough to be taken at its word. What another
one says, or what is not known, is of room: then an old replica makes way in the end, as it must in a full fleet, whatever its scheduler
calls that.
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
_BY_REASON: Final = (
    (
        re.compile(
            r'^(\d+ )?(persistentvolumeclaim "|pod has unbound immediate)|non-existent pv|persistent volumes to bind'
        ),
        Lack.VOLUME,
    ),
    (
        re.compile(
            r"untolerated taint|node affinity|were unschedulable|pod affinity rules|requested node name"
        ),
        Lack.NODES,
    ),
)
_OF_NODES: Final = "nodes are available: "
_NO_NODES: Final = "no nodes available"
_TOO_LARGE: Final = re.compile(r"^\d+ Insufficient ")
_NO_HELP: Final = "Preemption is not helpful"
"""Of nodes from which other pods could go without any use, as more is asked for than the whole node has."""
_CUT: Final = "…"
"""At the end of a message of which not all is kept."""


def lack_of(pod: PodSeen) -> Lack | None:
    """None where it has a node."""
    if pod.stage not in NOWHERE:
        return None
    if pod.stage is Stage.GATED:
        return Lack.ROOM
    if not pod.message and not pod.reason:
        return Lack.SCHEDULER
    if pod.message.startswith(_NO_NODES):
        return Lack.NODES
    said, _, preemption = pod.message.partition("preemption: ")
    reasons = _listed(said)
    if not reasons or pod.message.endswith(_CUT):
        return Lack.ROOM
    tried = _listed(preemption)
    helps = not tried or any(_NO_HELP not in each for each in tried)
    found = {_lack_in(each, helps=helps) for each in reasons}
    return next(one for one in (Lack.ROOM, Lack.VOLUME, Lack.NODES) if one in found)


def _listed(sentence: str) -> list[str]:
    """The scheduler's reasons, each with the number of nodes that it holds for."""
    return [one for one in re.split(r", (?=\d+ )", sentence.partition(_OF_NODES)[2]) if one]


def _lack_in(reason: str, *, helps: bool) -> Lack:
    """`helps`: whether somewhere other pods could go for this one. Not all plugins of the scheduler say so rightly: to the one for claims of
    devices nobody's going helps."""
    if _TOO_LARGE.search(reason):
        return Lack.ROOM if helps else Lack.NODES
    return next((lack for says, lack in _BY_REASON if says.search(reason)), Lack.ROOM)
