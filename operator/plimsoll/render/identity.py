"""The digest by which a serving set is known: of its entry in the plan, its image, and the user's fields that its pods are made from.

What is rendered from these is not in it. So a newer operator, another mirror or another template gives the same digest and
restarts no pod, while every edit that pods have to follow gives another digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from plimsoll.api.base import ApiModel
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.adapters import adapter_claims, come_and_go
from plimsoll.planning import codec
from plimsoll.planning.plan import PlanSet
from plimsoll.render.images import Image

SCHEMA: Final = 1
"""To be raised only when the same fields come to mean other pods, as every set of every cluster is then replaced."""

UNREAD: Final[tuple[str, ...]] = (
    # How many replicas, when and for whom: pods see nothing of it.
    "replicas", "scaling", "tuning", "slo", "cost", "paused", "workload",
    "rollout.strategy", "rollout.maxSurge", "rollout.canary", "rollout.hold", "rollout.rollback",
    "networking.service", "networking.gateway", "networking.ingress", "networking.allowFrom",
    # Planning has put what it made of these into the set's entry.
    "engine.name", "engine.version", "engine.upgrade", "engine.maxSequences", "engine.maxBatchedTokens",
    "engine.watermarkPermille", "engine.maxQueuedRequests", "engine.blockTokens", "engine.prefixCaching", "engine.eager",
    "memory.utilizationPercent", "memory.tenancySharePercent", "memory.kvCacheSize", "memory.cpuOffload",
    "memory.headroom", "topology.mode", "topology.tensor", "topology.pipeline", "topology.data",
    "topology.expertParallel", "topology.gpuProducts", "topology.cpu", "topology.nodeSelector",
    "model.architecture", "longContext",
    # It is in the image's binding.
    "engine.image",
)  # fmt: skip


def identity(spec: LLMDeploymentSpec, chosen: PlanSet, image: Image) -> str:
    """The set's digest, whose beginning is the end of the set's name. `spec` with presets and defaults merged in."""
    return _digest(chosen, image, pod_fields(spec))


def identity_before(spec: LLMDeploymentSpec, chosen: PlanSet, image: Image) -> str:
    """The digest as the previous release made it, without the claims of adapters that come and go."""
    fields = pod_fields(spec)
    if come_and_go(spec):
        fields["adapters"].pop("claims", None)
    return _digest(chosen, image, fields)


def _digest(chosen: PlanSet, image: Image, fields: Mapping[str, Any]) -> str:
    return codec.digest((SCHEMA, chosen.digest, image.binding, fields))


def pod_fields(spec: LLMDeploymentSpec) -> dict[str, Any]:
    """The user's fields that pods are made from, where they differ from the default."""
    found = _said(spec, "")
    if come_and_go(spec):
        found["adapters"].pop("items", None)
        if claims := adapter_claims(spec):
            found["adapters"]["claims"] = list(claims)
    return found


def _said(model: ApiModel, above: str) -> dict[str, Any]:
    """The fields of a model that pods are made from. Defaults are left out even where a user wrote them: otherwise a field that a later
    version adds would make every set a new one."""
    found: dict[str, Any] = {}
    for name, key, default in _fields(type(model)):
        value, path = getattr(model, name), f"{above}{key}"
        if path in UNREAD or value == default:
            continue
        said = _plain(value, f"{path}.")
        if said not in ({}, []):
            found[key] = said
        elif isinstance(value, ApiModel) and default is None:
            found[key] = {}
    return found


@cache
def _fields(kind: type[ApiModel]) -> tuple[tuple[str, str, Any], ...]:
    """For each field its name, its name as users write it, and its default. Kept, as making the default of a field that has fields of its
    own takes as long as all the rest of an identity."""
    return tuple(
        (name, info.alias or name, info.get_default(call_default_factory=True))
        for name, info in kind.model_fields.items()
    )


def _plain(value: Any, above: str) -> Any:
    if isinstance(value, ApiModel):
        return _said(value, above)
    if isinstance(value, Mapping):
        return {key: _plain(item, above) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_plain(item, above) for item in value]
    return value
