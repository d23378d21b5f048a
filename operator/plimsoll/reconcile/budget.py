"""How many pods no eviction may take. It is written whatever else is not: while the spec is wrong or paused, a node must be
possible to drain, and what a drain has let go must be held again after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.rollout import Rollout
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Plan
from plimsoll.render.revision import Revision
from plimsoll.render.sets import owner_of
from plimsoll.render.shared import disruption_budget


def budget(
    deployment: LLMDeployment, made: Plan, rollout: Rollout, there: Mapping[str, Revision], *, blind: bool
) -> Manifest:
    """The same as an object, where none of what surrounds the pods is written beside it."""
    return disruption_budget(owner_of(deployment), stay(made, rollout, there, blind=blind))


def stay(made: Plan, rollout: Rollout, there: Mapping[str, Revision], *, blind: bool) -> int:
    """Pods that no eviction may take. Where nobody sees that a node is drained, one replica may go before another comes."""
    if rollout.stay is not None:
        return rollout.stay
    planned = sum(chosen.replicas * chosen.pods_per_replica for chosen in made.sets)
    moving = sum(
        (target.replicas - target.beyond) * there[target.name].pods_per_replica
        for target in rollout.targets
        if target.name in there
    )
    spare = max((chosen.pods_per_replica for chosen in made.sets), default=0) if blind else 0
    return max(0, min(planned, moving) - spare)
