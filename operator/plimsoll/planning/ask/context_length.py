"""How long a request may be: what the user set, else what the declared traffic needs, else the model's own limit, with a warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count, takewhile
from typing import Final

from plimsoll.api.quantity import parse_decimal
from plimsoll.facts.architecture import Architecture
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.values import as_set, explained
from plimsoll.planning.plan import Finding, Origin, Severity, Value

STEP: Final = 256
"""Derived lengths are rounded up to a multiple of this, so that a small change of the traffic changes no engine."""
LEAST_SHORTENED: Final = 4096
"""A length that nobody asked for is not cut below this to make a model fit: below it the user should say what they need."""
FIELD: Final = "workload.contextTokens"
_TOLD: Final = frozenset({"ContextAboveModel", "WorkloadAboveModel"})
"""Reasons that say already that what is declared is too long."""
_SHARE: Final = {"p50": "half", "p95": "one in twenty", "p99": "one in a hundred"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLength:
    """The longest request that is planned for, and the reason for it."""

    tokens: int
    shorter: tuple[int, ...]
    """Lengths to try instead, one after the other, where memory is short; none where somebody asked for this length."""
    value: Value
    findings: tuple[Finding, ...] = ()


def model_ceiling(architecture: Architecture, intent: Intent) -> int:
    """The longest request that the model is made for, with the user's RoPE scaling."""
    scaling = intent.spec.long_context
    if scaling is None:
        return architecture.max_positions
    base = scaling.original_tokens if scaling.original_tokens is not None else architecture.max_positions
    return max(architecture.max_positions, int(Decimal(base) * parse_decimal(scaling.factor)))


def context_length(architecture: Architecture, intent: Intent) -> ContextLength:
    """The length that is planned for, before memory is known."""
    planned = _planned(architecture, intent)
    told = any(one.reason in _TOLD for one in planned.findings)
    beyond = () if told else tuple(_beyond(planned.tokens, intent))
    return replace(planned, findings=(*planned.findings, *beyond))


def _planned(architecture: Architecture, intent: Intent) -> ContextLength:
    ceiling = model_ceiling(architecture, intent)
    asked, lengths = intent.spec.workload.context_tokens, intent.lengths
    if asked is not None:
        return _asked(asked, ceiling, architecture, intent)
    if lengths.input_p99 is not None and lengths.output_p99 is not None:
        return _from_traffic(lengths.input_p99, lengths.output_p99, ceiling, intent)
    value = explained(
        "max_model_len",
        str(ceiling),
        "the model's own limit",
        inputs={"model": str(ceiling)},
        field=FIELD,
        origin=Origin.MODEL,
        source="the model's config",
        changes="workload.inputTokens and outputTokens, or workload.contextTokens",
    )
    message = (
        f"nothing says how long requests are, so the model's limit of {ceiling:,} tokens is inherited; one request of "
        f"that length must fit. Set {FIELD}, or workload.inputTokens and outputTokens"
    )
    finding = Finding(
        severity=Severity.WARNING,
        reason="ContextInherited",
        message=message,
        field=FIELD,
        value=str(ceiling),
        remedy=f"{FIELD}: the p99 of input and output together",
    )
    return ContextLength(tokens=ceiling, shorter=_halves(ceiling), value=value, findings=(finding,))


def shortened(context: ContextLength, tokens: int) -> ContextLength:
    """A length that nobody asked for, cut to what the memory holds, with a warning."""
    message = (
        f"no layout holds one request of {context.tokens:,} tokens, and nobody asked for that many (it follows from "
        f"{context.value.source}): {tokens:,} are planned. Set {FIELD} to what you need"
    )
    finding = Finding(
        severity=Severity.WARNING,
        reason="ContextShortened",
        message=message,
        field=FIELD,
        value=str(tokens),
        remedy=f"{FIELD}: the p99 of input and output together",
    )
    value = explained(
        "max_model_len",
        str(tokens),
        f"what {context.value.source} says, cut until one request of it fits",
        inputs={"before": str(context.tokens)},
        field=FIELD,
        origin=Origin.DERIVED,
        source="memory",
        changes=f"{FIELD}, or GPUs with more memory",
    )
    return ContextLength(tokens=tokens, shorter=(), value=value, findings=(finding,))


def _beyond(tokens: int, intent: Intent) -> Iterator[Finding]:
    """What somebody declared that is longer than a request may be: replicas are reckoned by what fits. Presets know no model, and that they
    are cut to it is told."""
    workload = intent.spec.workload
    # Where nothing is answered a prompt may take all of it.
    longest, with_answer = (tokens - 1, " with its answer") if intent.generates else (tokens, "")
    prompts = ("workload.inputTokens", workload.input_tokens, "prompts is refused")
    answers = (
        "workload.outputTokens",
        workload.output_tokens if intent.generates else None,
        "answers is cut short",
    )
    for field, length, fate in (prompts, answers):
        if length is None or not intent.binds(field):
            continue
        declared = (("p50", length.p50), ("p95", length.p95), ("p99", length.p99))
        above = next(
            ((name, value) for name, value in declared if value is not None and value > longest), None
        )
        if above is None:
            continue
        name, value = above
        yield Finding(
            severity=Severity.WARNING,
            reason="LengthsAboveContext",
            message=f"{field}.{name} is {value:,}, and a request holds at most {tokens:,} tokens{with_answer}: at least "
            f"{_SHARE[name]} of the {fate}",
            field=field,
            value=str(value),
            remedy=f"{FIELD} above it, or lengths that fit",
        )


def _asked(asked: int, ceiling: int, architecture: Architecture, intent: Intent) -> ContextLength:
    tokens, binds = asked, intent.binds(FIELD)
    if not binds and asked > ceiling:
        return _clamped(asked, ceiling, intent)
    value = as_set(intent, "max_model_len", FIELD, str(tokens))
    if tokens <= ceiling:
        return ContextLength(tokens=tokens, shorter=() if binds else _halves(tokens), value=value)
    factor = -(-asked // architecture.max_positions)
    message = (
        f"{FIELD} is {asked:,}, but the model is made for {ceiling:,} tokens; set at most {ceiling:,}, "
        f'or stretch it with longContext (ropeType yarn, factor "{factor}") if the model\'s authors allow that'
    )
    finding = Finding(
        severity=Severity.ERROR,
        reason="ContextAboveModel",
        message=message,
        field=FIELD,
        value=str(asked),
        remedy=f"at most {ceiling}",
    )
    return ContextLength(tokens=asked, shorter=(), value=value, findings=(finding,))


def _clamped(asked: int, ceiling: int, intent: Intent) -> ContextLength:
    """The length of a preset, which does not know the model, cut to the model's limit."""
    _, source = intent.source_of(FIELD)
    value = explained(
        "max_model_len",
        str(ceiling),
        f"the least of what {source} says and the model's limit",
        inputs={source: str(asked), "model": str(ceiling)},
        origin=Origin.MODEL,
        source="the model's config",
        changes=FIELD,
        field=FIELD,
    )
    finding = Finding(
        severity=Severity.INFO,
        reason="ContextClamped",
        message=f"{source} speaks of {asked:,} tokens, the model is made for {ceiling:,}; longer requests are refused",
        field=FIELD,
        value=str(asked),
        remedy="longContext, or a model with a longer context",
    )
    return ContextLength(tokens=ceiling, shorter=_halves(ceiling), value=value, findings=(finding,))


def _from_traffic(prompt: int, answer: int, ceiling: int, intent: Intent) -> ContextLength:
    need, least = prompt + answer, (intent.lengths.input_long or 0) + (intent.lengths.output_long or 0)
    tokens, told = min(_in_steps(need), ceiling), min(_in_steps(least), ceiling)
    _, source = intent.source_of("workload.inputTokens")
    value = explained(
        "max_model_len",
        str(tokens),
        f"p99 of input + p99 of output (as log-normal lengths have it where only p50 and p95 are told), rounded up to {STEP}, "
        "at most the model's limit",
        inputs={"input": str(prompt), "output": str(answer), "model": str(ceiling)},
        field=FIELD,
        origin=Origin.DERIVED,
        source=f"workload.inputTokens and outputTokens ({source})",
        changes=f"workload.inputTokens, workload.outputTokens or {FIELD}",
    )
    shorter = (told,) if told < tokens else ()
    if need <= ceiling:
        return ContextLength(tokens=tokens, shorter=shorter, value=value)
    message = (
        f"long requests need {need:,} tokens (input {prompt:,} + output {answer:,}), but the model is made for "
        f"{ceiling:,}; the longest will be refused"
    )
    finding = Finding(
        severity=Severity.WARNING,
        reason="WorkloadAboveModel",
        message=message,
        field="workload.inputTokens",
        value=str(prompt),
        remedy=f"lengths that together stay within {ceiling}",
    )
    return ContextLength(tokens=tokens, shorter=shorter, value=value, findings=(finding,))


def _in_steps(tokens: int) -> int:
    return -(-tokens // STEP) * STEP


def _halves(tokens: int) -> tuple[int, ...]:
    return tuple(takewhile(lambda half: half >= LEAST_SHORTENED, (tokens >> times for times in count(1))))
