"""Models that this version of the engine knows no more, though an earlier one did: its start would end after the image and the weights came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.configs.withdrawn import IN_TRANSFORMERS, NOWHERE
from plimsoll.facts.engine_versions import Version, release
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.plan import Finding, Severity

_OTHER_CLASS: Final = ("--hf-overrides", "--model-impl")
"""Flags by which a user may name another class, or have it taken from elsewhere."""


def check_withdrawn(
    spec: LLMDeploymentSpec, model: ModelFacts, engine: EngineFacts, *, own_image: bool
) -> Iterator[Finding]:
    """A finding where the engine's own class of the model is gone. An image of the user's or the admin's own, code of the model's, or
    a flag may bring another one."""
    name = model.architecture.name
    last = IN_TRANSFORMERS.get(name) or NOWHERE.get(name)
    if (
        engine.name != "vllm"
        or engine.release is None
        or last is None
        or not _is_after(engine.release, release(last))
    ):
        return
    told = spec.engine.tells(*_OTHER_CLASS)
    certain = name in NOWHERE and not (own_image or told or spec.model.trust_remote_code)
    instead = (
        ""
        if name in NOWHERE
        else "; it tries that of Transformers, whose memory and speed are not known here"
    )
    yield Finding(
        severity=Severity.ERROR if certain else Severity.WARNING,
        reason="ModelWithdrawn",
        message=f"{engine.name} {engine.version} has no {name} any more, {last} was the last that had it{instead}",
        field="engine.version",
        value=engine.version,
        remedy=f"engine.version: {last}, or a model that newer ones know",
    )


def _is_after(one: Version, last: Version) -> bool:
    """Whether a release comes after the last one with a class. What only mends a release takes no model out of it."""
    return (one.major, one.minor) > (last.major, last.minor)
