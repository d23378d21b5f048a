"""What a decision writes into the cluster: what surrounds the pods, the sets' revisions and workloads, and the pinned plan."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.rollout import Rollout
from plimsoll.objects import Manifest
from plimsoll.reconcile.budget import stay
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.token import token_of
from plimsoll.render.revision import Revision
from plimsoll.render.sets import owner_of, workload
from plimsoll.render.shared import plan_object, surroundings


def manifests_of(
    seen: Seen, rollout: Rollout, kept: Kept, there: Mapping[str, Revision]
) -> tuple[Manifest, ...]:
    """All objects of a deployment, the pinned plan last. `there` are the revisions of the sets that should exist."""
    deployment, made = seen.deployment, kept.plan
    if made is None:
        return ()
    owner = owner_of(deployment)
    unmoved = stay(made, rollout, there, blind=seen.inventory.nodes_unseen)
    objects = [*surroundings(deployment, tuple(there.values()), seen.config, seen.capabilities, stay=unmoved)]
    for name, revision in there.items():
        objects.append(revision.manifest(owner, failed=_failed(seen, rollout, name)))
    objects += workloads(deployment, rollout, there)
    turn = token_of(deployment, objects, seen.mark)
    return (*objects, plan_object(owner, made, kept.beside(), turn))


def workloads(
    deployment: LLMDeployment, rollout: Rollout, there: Mapping[str, Revision]
) -> tuple[Manifest, ...]:
    """The objects that make the pods of each set, with the number of replicas that it should have."""
    owner = owner_of(deployment)
    return tuple(
        one
        for target in rollout.targets
        if target.name in there
        for one in workload(there[target.name], owner, target.replicas, target.groups)
    )


def _failed(seen: Seen, rollout: Rollout, name: str) -> str:
    """Why a set was given up, now or earlier; empty where it was not."""
    there = seen.serving.set_named(name)
    return dict(rollout.failed).get(name, "" if there is None else there.failed)
