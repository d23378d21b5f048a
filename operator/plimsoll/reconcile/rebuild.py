"""The pinned plan made again from the sets that serve, when its ConfigMap is lost: what serves is never planned anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll import names
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.serving import Serving, SetSeen
from plimsoll.planning.memory.ledger import Verdict
from plimsoll.planning.pinning import spec_digest
from plimsoll.planning.placing.cost import rescaled, total_cost
from plimsoll.planning.plan import SCHEMA, Outcome, Plan
from plimsoll.planning.settle.changed import RETUNED, alike
from plimsoll.reconcile.kept import Kept
from plimsoll.render.revision import Revision


def restored(
    kept: Kept,
    deployment: LLMDeployment,
    spec: LLMDeploymentSpec,
    serving: Serving,
    revisions: Mapping[str, Revision],
) -> Kept:
    """What is kept, with its lost plan made again. Whether the annotation that asks for a new plan was answered is lost with it, so it counts
    as answered: a person can ask once more, and nobody can take back that all pods were replaced. So do sets count as those that have
    served: each may be what there is to go back to."""
    served = kept.served or tuple(sorted(seen.name for seen in serving.sets if not seen.failed))
    kept = replace(kept, served=served)
    plan = rebuilt(deployment, spec, serving, revisions)
    if plan is None:
        return kept
    return replace(
        kept, plan=plan, asked=kept.asked or deployment.metadata.annotations.get(names.ANNOTATION_REPLAN, "")
    )


def rebuilt(
    deployment: LLMDeployment, spec: LLMDeploymentSpec, serving: Serving, revisions: Mapping[str, Revision]
) -> Plan | None:
    """None where no set is there. The present spec is taken for the one that was planned with, as that is not known any more."""
    there = [seen for seen in serving.sets if seen.name in revisions and seen.replicas and not seen.failed]
    if not there:
        return None
    # Where a rollout that leaves the plan as it is was under way, two sets stand for one set of the plan.
    same: dict[str, list[SetSeen]] = {}
    for one in there:
        same.setdefault(revisions[one.name].entry.digest, []).append(one)
    # A set that a retune was trying is not one of the plan's. Where two differ only by what retunes changed in both, the older one served
    # before.
    for digest in reversed(tuple(same)):
        tried = revisions[same[digest][0].name]
        served = next((of for of in same.values() if _tries(tried, revisions[of[0].name])), None)
        if served is not None:
            served += same.pop(digest)
    sets = tuple(rescaled(revisions[of[0].name].entry, _replicas(of)) for of in same.values())
    tight = any(chosen.ledger.verdict is Verdict.TIGHT for chosen in sets)
    return Plan(
        schema=SCHEMA,
        name=deployment.name,
        namespace=deployment.namespace,
        model=spec.model.source,
        model_digest="",
        model_origin="",
        engine=spec.engine.name,
        engine_version=revisions[there[0].name].engine_version,
        spec_digest=spec_digest(spec),
        outcome=Outcome.TIGHT if tight else Outcome.FITS,
        replicas_wanted=sum(chosen.replicas for chosen in sets),
        replicas_reason="",
        sets=sets,
        choice="rebuilt from the sets that serve, since the ConfigMap with the plan was lost",
        cost=total_cost(sets),
    )


def _tries(one: Revision, other: Revision) -> bool:
    """Whether `one` is `other` with settings that a retune changed, and nothing else."""
    mine, theirs = one.entry, other.entry
    if mine.digest == theirs.digest or not alike(mine, theirs) or mine.resources != theirs.resources:
        return False
    retuned = {value.name for value in mine.values if value.source == RETUNED}
    back = {name: getattr(theirs.settings, name) for name in retuned}
    return one.engine_version == other.engine_version and replace(mine.settings, **back) == theirs.settings


def _replicas(sets: Sequence[SetSeen]) -> int:
    """How many replicas a set of the plan has, from the sets that stand for it: those that serve, and no fewer than the largest of them was
    asked for. So a surge is not counted twice."""
    return max(sum(one.ready for one in sets), *(one.replicas for one in sets))
