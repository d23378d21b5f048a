"""Has the models read that a turn needs to know: by the operator itself, else by pods of their owner's namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.trust import untrusted
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.engines.sources import check_sources
from plimsoll.kube.errors import KubeError
from plimsoll.kube.facts_pods import FactsPod
from plimsoll.objects import Manifest
from plimsoll.reconcile.kept import KeptModel
from plimsoll.reconcile.models import Missing, plan_facts
from plimsoll.reconcile.told_models import ModelReadings, WantedPod, told_models
from plimsoll.reconcile.world import World
from plimsoll.render.facts_pod import AskedModel, asked_of, facts_pod
from plimsoll.render.sets import owner_of
from plimsoll.status.refusals import words_of_refusal

REFUSED_SECONDS: Final = 60.0
"""Until a pod that was refused is asked for again."""


async def read_models(
    world: World, key: str, deployment: LLMDeployment, kept: tuple[KeptModel, ...]
) -> ModelReadings:
    """What is known of the deployment's models. Pods are made to read those that are not, and pods that are not needed any more are
    deleted."""
    found = await world.models.look(deployment.spec)
    doors = world.facts_pods
    if doors is None:
        return ModelReadings(facts=plan_facts(found), kept=kept)
    readable: Mapping[str, AskedModel] = {}
    if any(isinstance(one, Missing) for one in found.values()):
        try:
            readable = _readable(deployment, world.config)
        except SpecError as wrong:
            found = {
                field: Missing(str(wrong)) if isinstance(one, Missing) else one
                for field, one in found.items()
            }
    told = told_models(
        found,
        readable,
        kept=kept,
        pods=_own(deployment, doors.of(key)),
        replan=deployment.metadata.annotations.get(names.ANNOTATION_REPLAN, ""),
        paused=deployment.spec.paused is True,
        now=world.now(),
    )
    for wanted in told.wanted:
        error = await doors.make(_manifest(deployment, world.config, wanted))
        if error is not None:
            told = _refused(told, wanted, error)
    for pod in told.over:
        await doors.remove(deployment.namespace, pod)
    return told


async def clear(world: World, key: str, told: ModelReadings) -> None:
    """Delete pods whose answer is kept with the plan by now. Without a plan nothing is kept, so they stay and are read again."""
    if world.facts_pods is None or not told.answered:
        return
    kept = (await world.kept(key)).models
    for answer, pod in told.answered:
        if answer in kept and not pod.leaving:
            await world.facts_pods.remove(key.partition("/")[0], pod)


def _readable(deployment: LLMDeployment, config: OperatorConfig) -> Mapping[str, AskedModel]:
    """What pods could be asked for, by the field that names the model. Nothing where the admin's config does not trust the
    namespace with what the spec names: the plan says so. Raises SpecError for sources that no pod could read."""
    try:
        spec = effective(deployment.spec, deployment.namespace, config).spec
    except SpecError:
        return {}
    check_sources(spec)
    return {} if untrusted(spec, deployment.namespace, config) else asked_of(spec, config)


def _own(deployment: LLMDeployment, pods: tuple[FactsPod, ...]) -> tuple[FactsPod, ...]:
    """Not those of a resource that had this name before."""
    return tuple(pod for pod in pods if pod.owner == (deployment.metadata.uid or ""))


def _manifest(deployment: LLMDeployment, config: OperatorConfig, wanted: WantedPod) -> Manifest:
    spec = effective(deployment.spec, deployment.namespace, config).spec
    return facts_pod(
        owner_of(deployment), spec, config, wanted.asked, ticket=wanted.ticket, attempt=wanted.attempt
    )


def _refused(told: ModelReadings, wanted: WantedPod, error: KubeError) -> ModelReadings:
    """A pod could not be made. A full quota, or a server that does not answer, passes by itself, so the model still counts as being
    read; a rule against such pods is a problem that a person has to solve."""
    words = words_of_refusal(f"{wanted.asked.source} (those that read it)", str(error))
    comes = error.passes or words.waits == "quota"
    facts = replace(
        told.facts,
        problem=told.facts.problem or (None if comes else words.sentence),
        reading=words.sentence if comes and told.facts.problem is None else None,
    )
    return replace(told, facts=facts, again_seconds=REFUSED_SECONDS)
