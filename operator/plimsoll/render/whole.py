"""All objects of a deployment whose plan stands still: what a turn applies when nothing moves, and what the command line prints."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.model import ModelFacts
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Plan
from plimsoll.render.revision import Revision
from plimsoll.render.sets import freeze, owner_of, set_name, workload
from plimsoll.render.shared import shared_objects


def whole(
    deployment: LLMDeployment,
    plan: Plan,
    *,
    facts: EngineFacts,
    config: OperatorConfig,
    model: ModelFacts | None = None,
    capabilities: Capabilities = NONE,
    known: Mapping[str, Revision] | None = None,
) -> tuple[Manifest, ...]:
    """Revisions that are `known` by name are taken as they are; the other sets of the plan are born. Raises SpecError."""
    owner, revisions = owner_of(deployment), []
    for chosen in plan.sets:
        name = set_name(deployment, chosen, facts=facts, config=config)
        born = (known or {}).get(name)
        revisions.append(born or freeze(deployment, chosen, facts=facts, config=config, model=model))
    objects = [*shared_objects(deployment, plan, revisions, config, capabilities)]
    for chosen, revision in zip(plan.sets, revisions, strict=True):
        objects += [revision.manifest(owner), *workload(revision, owner, chosen.replicas)]
    return tuple(objects)
