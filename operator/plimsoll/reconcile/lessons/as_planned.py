"""What a set runs, where others would run the very same by the same plan and image: only then does it teach something about them."""

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
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision

CHANGES_ENGINE: Final = re.compile(
    r"/spec/initContainers|/spec/containers(/[^/]+(/(args|command|env|envFrom|image)(/.*)?)?)?$"
)
"""Paths of pod patches that may bring another engine, or start it with other arguments."""
ENGINES_OWN: Final = ("VLLM_", "PYTORCH_")
"""Prefixes of environment variables that change what an engine, or its memory allocator, does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    model: ModelFacts
    """As its files are, before the engine quantizes it."""
    engine: EngineFacts
    gpu: Gpu


class NotAsPlanned(ValueError):
    """Why what a set shows says nothing about other deployments."""


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
    """The spec with presets and defaults; None where these contradict one another."""
    try:
        return effective(seen.deployment.spec, seen.deployment.namespace, seen.config).spec
    except SpecError:
        return None


def _by_the_plan_alone(spec: LLMDeploymentSpec) -> bool:
    """Whether the engine is started by the plan alone, without the user's own arguments, variables or patches."""
    patched = (patch.path for patch in spec.pod_patches)
    return (
        not spec.engine.extra_args
        and not any(one.name.startswith(ENGINES_OWN) for one in spec.engine.env)
        and not any(CHANGES_ENGINE.match(path) for path in patched)
    )
