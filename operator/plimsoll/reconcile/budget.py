"""The PodDisruptionBudget: how many pods evictions must leave. It is kept up to date even where nothing else is written: nodes have to be
drained while a spec is wrong or paused too, and after a drain the pods are to be protected again.
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
    """The PodDisruptionBudget alone, where none of the other objects around the pods is written."""
    return disruption_budget(owner_of(deployment), stay(made, rollout, there, blind=blind))


def stay(made: Plan, rollout: Rollout, there: Mapping[str, Revision], *, blind: bool) -> int:
    """How many pods evictions must leave. `blind`: nodes are not seen, so nobody would notice a drain and bring another replica first; one
    replica may then go before another comes."""
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
