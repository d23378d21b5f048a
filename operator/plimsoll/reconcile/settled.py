"""Whether there is nothing to do, told from what is cached alone: no plan is made, nothing is read, nothing is rendered.

That is the answer to nearly all wakes, and to all of them when an operator starts with thousands of deployments that serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.rollout.groups import halves
from plimsoll.facts.serving import Serving, Stage
from plimsoll.facts.unplaced import OWN, lack_of
from plimsoll.kube.child import Child
from plimsoll.objects import Ref
from plimsoll.reconcile.lessons.recorded import ramp_untold
from plimsoll.reconcile.token import token
from plimsoll.render.shared import plan_ref
from plimsoll.status.scaler_words import conflict
from plimsoll.status.standing import MOVING

_UNSURE: Final = frozenset({"NotServed", "Applying", "Refused", "NameConflict", "InternalError"})


def settled(deployment: LLMDeployment, children: Mapping[Ref, Child], serving: Serving, mark: str) -> bool:
    """Whether the children are as the last turn left them, and the status tells of all pods that are there."""
    metadata, status = deployment.metadata, deployment.status
    if status.observed_generation != metadata.generation or not status.conditions or ramp_untold(deployment):
        return False
    progress = get_condition(status.conditions, names.PROGRESSING)
    if progress is not None and progress.reason in (*MOVING, "Moving"):
        return False
    if serving.loaded and not deployment.spec.paused:
        return False
    if any(pod.leaves for seen in serving.sets for pod in seen.pods if pod.stage is not Stage.LEAVING):
        return False
    # These reasons may be out of date. A kind may be served by now; what could not be written, or whose answer was lost, may be there by
    # now; and nobody knows what a turn that failed has left behind.
    if any(condition.reason in _UNSURE for condition in status.conditions):
        return False
    pinned = plan_ref(deployment.namespace, deployment.name)
    plan = children.get(pinned)
    if plan is None or any(
        not child.clean or child.leaving or child.owner_uid != metadata.uid for child in children.values()
    ):
        return False
    hashes = ((ref, child.hash) for ref, child in children.items() if ref != pinned)
    return (
        plan.turn == token(deployment, hashes, mark)
        and _pods_told(deployment, serving)
        and _autoscalers_told(deployment, serving)
    )


def _autoscalers_told(deployment: LLMDeployment, serving: Serving) -> bool:
    """Whether the status tells of the autoscalers that act on it now: they come and go without a change to anything of ours."""
    conditions = deployment.status.conditions
    limited, several = (
        get_condition(conditions, names.SCALING),
        get_condition(conditions, names.AUTOSCALER_CONFLICT),
    )
    asked = bool(serving.scalers) and deployment.spec.replicas is None
    said = several.message if several is not None else ""
    return asked == (limited is not None and limited.reason == "SetReplicas") and said == conflict(
        serving.scalers, serving.scalers_below
    )


def _pods_told(deployment: LLMDeployment, serving: Serving) -> bool:
    """Whether the status counts the pods as they are now."""
    status, counted = deployment.status, deployment.status.replica_status
    if counted is None or {one.name: (one.replicas, one.ready) for one in status.sets} != {
        seen.name: (seen.replicas, seen.ready) for seen in serving.sets
    }:
        return False
    if any(seen.refused and seen.missing for seen in serving.sets):
        return False
    # Why a pod went whose place another has taken changes no number.
    if any(seen.ended and seen.ready < seen.replicas for seen in serving.sets):
        return False
    if any(halves(seen) for seen in serving.sets):
        return False
    there = [
        pod for seen in serving.sets for pod in seen.pods if pod.rank == 0 and pod.stage is not Stage.LEAVING
    ]
    # What their scheduler says of them is told, and no number changes with it.
    if any(lack_of(pod) in OWN for pod in there):
        return False
    leaders = Counter(pod.stage for pod in there)
    asked = sum(one.replicas for one in status.sets)
    lack = leaders[Stage.UNSCHEDULED] + max(0, (counted.wanted or 0) - asked)
    return (
        leaders[Stage.FAILED] == 0
        and leaders[Stage.LOADING] + leaders[Stage.PULLING] == (counted.starting or 0)
        and leaders[Stage.GATED] == (counted.waiting_for_quota or 0)
        and lack == (counted.waiting_for_gpus or 0) + (counted.waiting_for_nodes or 0)
    )
