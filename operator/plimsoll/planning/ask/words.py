"""Words that a resource hands to the engine as they are: one that the version does not know ends its start, often after minutes.

Judged only by the list of that very version. An image that is not the engine's own project's may know more: there it is told, not
refused; and of parsers that a further argument brings along nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.placing.images import ADMIN_FIELDS, listed
from plimsoll.planning.plan import Finding, Severity


def check_words(spec: LLMDeploymentSpec, engine: EngineFacts, config: OperatorConfig) -> Iterator[Finding]:
    if engine.release is None or str(engine.release) != engine.flags_version:
        return
    for field, flag, word in _words(spec, engine):
        known = engine.flags[flag].values or engine.flags[flag].choices if flag in engine.flags else ()
        if not known or word in known:
            continue
        instead = engine.profile.stale_values.get(flag, {}).get(word)
        yield Finding(
            severity=Severity.WARNING if _others_image(spec, engine, config) else Severity.ERROR,
            reason="UnknownWord",
            message=f"{field} is {word!r}, which {engine.name} {engine.version} does not know; it knows {', '.join(known)}",
            field=field,
            value=word,
            remedy=instead or "one of these, or leave it out",
        )


def _words(spec: LLMDeploymentSpec, engine: EngineFacts) -> Iterator[tuple[str, str, str]]:
    """Field, flag and word as the engine compares it."""
    brought = {
        match.flag.name
        for word in spec.engine.extra_args
        if word.startswith("--") and (match := engine.flags.find(word.partition("=")[0])) is not None
    }
    if spec.model.load_format is not None:
        yield "model.loadFormat", "--load-format", spec.model.load_format
    backend = spec.engine.attention_backend
    if backend is not None and backend.lower() != "auto":
        yield "engine.attentionBackend", "--attention-backend", backend.upper()
    tools = spec.tool_calling
    # Without the model's own choice the engine never looks the parser up.
    if tools is not None and tools.auto_choice is not False and "--tool-parser-plugin" not in brought:
        yield "toolCalling.parser", "--tool-call-parser", tools.parser
    if spec.reasoning is not None and "--reasoning-parser-plugin" not in brought:
        yield "reasoning.parser", "--reasoning-parser", spec.reasoning.parser


def _others_image(spec: LLMDeploymentSpec, engine: EngineFacts, config: OperatorConfig) -> bool:
    admins = any(listed(engine.version, vendor, config) is not None for vendor in ADMIN_FIELDS)
    return spec.engine.image is not None or admins
