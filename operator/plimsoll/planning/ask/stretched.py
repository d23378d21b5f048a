"""A context that is stretched beyond the model's own: what the engine is told of it, and what is said where it cannot be told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.facts.architecture import Architecture
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.context_length import model_ceiling
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.plan import Finding, Severity
from plimsoll.planning.settings import RopeScaling

MULTIPLIED: Final = frozenset(["linear", "dynamic"])
"""Kinds of RoPE scaling for which the engine multiplies the model's positions by the factor. For yarn vLLM 0.32 no longer does (older
versions multiply the original ones, whatever the model's are said to be), and for the others none does."""
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "llama3": ("low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}
"""By kind: what it takes beside a factor, which only the checkpoint can say."""
_OVERRIDE: Final = "--hf-overrides"
_OWN_CONFIG: Final = (
    "model.revision, by which its own config is read where a hub may be asked (here with --online), or model.architecture.config with the "
    "text of its config.json"
)


def rope_scaling(intent: Intent, architecture: Architecture) -> RopeScaling | None:
    wish = intent.spec.long_context
    if wish is None:
        return None
    return RopeScaling(
        kind=wish.rope_type,
        factor=wish.factor,
        original=wish.original_tokens if wish.original_tokens is not None else architecture.max_positions,
        theta=architecture.rope_theta,
        others=architecture.rope_others,
        positions=None if wish.rope_type in MULTIPLIED else model_ceiling(architecture, intent),
        nested=architecture.vision is not None,
    )


def check_rope(intent: Intent, model: ModelFacts, longest: int) -> Iterator[Finding]:
    """A finding where the engine cannot be told of a stretched context: an error where it would not start, or answer wrongly."""
    wish, architecture = intent.spec.long_context, model.architecture
    if wish is None or intent.spec.engine.tells(_OVERRIDE):
        # Whoever tells the engine of it themselves is heard: their word comes last, and takes the place of what is said here.
        return
    own = json.loads(architecture.rope_others or "{}")
    missing = [key for key in _NEEDED.get(wish.rope_type, ()) if key not in own]
    severity, reason, remedy = Severity.ERROR, "RopeByLayer", "a model that is made for as long a context"
    if architecture.rope_by_layer:
        message = (
            f"near and far layers of {architecture.name} have rotary positions each of their own, which longContext cannot stretch; "
            "leave it out"
        )
    elif architecture.rope_theta is None and architecture.vision is None:
        reason, remedy = "RopeBaseUnknown", _OWN_CONFIG
        message = (
            f"longContext must repeat the model's own rope_theta, which {model.origin} does not hold; the engine can not be told to "
            "stretch the context until it is known"
        )
        if longest <= architecture.max_positions:
            severity = Severity.WARNING
    elif missing:
        reason, remedy = "RopeKeysUnknown", "longContext.ropeType yarn, if the model's authors allow that"
        message = (
            f"longContext.ropeType {wish.rope_type} needs {' and '.join(missing)} of {architecture.name}, which are not known, and without "
            "them the engine does not start"
        )
    else:
        return
    yield Finding(
        severity=severity,
        reason=reason,
        message=message,
        field="longContext",
        value=wish.rope_type,
        remedy=remedy,
    )
