"""Words that a resource hands to the engine as they are. An unknown one ends the engine's start, often only after minutes.

They are checked only where the flags of exactly this version are listed. An image that is not from the engine's own project may know
more words, so there an unknown one is a warning and no error. Parsers are not checked where an extra argument loads further ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.placing.images import ADMIN_FIELDS, brought
from plimsoll.planning.plan import Finding, Severity


def check_words(spec: LLMDeploymentSpec, engine: EngineFacts, config: OperatorConfig) -> Iterator[Finding]:
    """Findings about words that this version of the engine does not know."""
    if engine.release is None or str(engine.release) != engine.flags_version:
        return
    for field, flag, word in _words(spec, engine):
        known = engine.flags[flag].values or engine.flags[flag].choices if flag in engine.flags else ()
        if not known or word in known:
            continue
        instead = engine.profile.stale_values.get(flag, {}).get(word)
        yield Finding(
            severity=Severity.WARNING if brought(engine, config, *ADMIN_FIELDS) else Severity.ERROR,
            reason="UnknownWord",
            message=f"{field} is {word!r}, which {engine.name} {engine.version} does not know; it knows {', '.join(known)}",
            field=field,
            value=word,
            remedy=instead or "one of these, or leave it out",
        )


def _words(spec: LLMDeploymentSpec, engine: EngineFacts) -> Iterator[tuple[str, str, str]]:
    """Each word with its field and its flag, spelled as the engine compares it."""
    handed = {
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
    # Unless the model itself may choose to call tools, the engine never looks the parser up.
    if tools is not None and tools.auto_choice is not False and "--tool-parser-plugin" not in handed:
        yield "toolCalling.parser", "--tool-call-parser", tools.parser
    if spec.reasoning is not None and "--reasoning-parser-plugin" not in handed:
        yield "reasoning.parser", "--reasoning-parser", spec.reasoning.parser
