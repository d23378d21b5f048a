"""What a set runs, where it is what others would run by the same plan and image: only that may teach something for others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts, brought_in, engine_facts
from plimsoll.facts.gpus import Gpu, UnknownGpu, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.reconcile.decide import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision

CHANGES_ENGINE: Final = re.compile(
    r"/spec/initContainers|/spec/containers(/[^/]+(/(args|command|env|envFrom|image)(/.*)?)?)?$"
)
"""Paths of patches that may bring another engine, or tell it other words."""
ENGINES_OWN: Final = ("VLLM_", "PYTORCH_")
"""Beginnings of variables by which an engine, or what it allocates with, does otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    model: ModelFacts
    """As it lies in storage."""
    engine: EngineFacts
    gpu: Gpu


class NotAsPlanned(ValueError):
    """Why what a set does says nothing of others."""


def runs(seen: Seen, decision: Decision, revision: Revision) -> Runs:
    """Raises NotAsPlanned."""
    model, planned, asked = seen.facts.model, decision.plan, _asked(seen)
    if asked is None or not _by_the_plan_alone(asked):
        raise NotAsPlanned("the deployment brings its own arguments or patches, which others do not run")
    if model is None:
        raise NotAsPlanned("nothing is known of the model now")
    if planned.model_digest and planned.model_digest != model.digest:
        raise NotAsPlanned("another model is known now than was planned for")
    engine = seen.facts.engine or engine_facts(planned.engine, planned.engine_version)
    if engine.version != revision.engine_version:
        raise NotAsPlanned("the set that serves runs another engine version than is planned for now")
    name = revision.entry.hardware.gpu
    try:
        gpu = gpu_named(name)
    except UnknownGpu:
        raise NotAsPlanned(f"nothing is known of {name}, so there is nothing to correct") from None
    return Runs(model=model, engine=brought_in(engine, asked.engine.image), gpu=gpu)


def _asked(seen: Seen) -> LLMDeploymentSpec | None:
    """What presets and defaults say counts as what the owner says; None where they contradict one another."""
    try:
        return effective(seen.deployment.spec, seen.deployment.namespace, seen.config).spec
    except SpecError:
        return None


def _by_the_plan_alone(spec: LLMDeploymentSpec) -> bool:
    """Whether the engine has no other words than the plan has for it."""
    patched = (patch.path for patch in spec.pod_patches)
    return (
        not spec.engine.extra_args
        and not any(one.name.startswith(ENGINES_OWN) for one in spec.engine.env)
        and not any(CHANGES_ENGINE.match(path) for path in patched)
    )
