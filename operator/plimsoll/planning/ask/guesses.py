"""What speculative decoding needs of layouts, of a draft model and of the size of a step.

With LoRA adapters, the engine starts only where a step has room for all guessed tokens of all requests that may run. Without them a
step needs one token for each request, as it does without speculative decoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engine_versions import Version, release
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.features import guesses
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import explained
from plimsoll.planning.plan import Finding, Origin, Severity, Value

STEP: Final = "engine.maxBatchedTokens"
SEQUENCES: Final = "engine.maxSequences"
CHECKED_FROM: Final = release("0.20.2")
"""The oldest release that is known to check this. Sets of older releases stay as they are."""

CUTS_HEADS: Final = release("0.20.2")
"""This release cuts a head into pipeline stages like its model, and no head that it has can take what one stage hands to the next.
From 0.32 on heads are not cut; of the releases between it is not known."""
HEADS: Final = ("eagle", "eagle3")
"""Methods whose tokens are guessed by a head on top of the model."""


def head_in_stages(spec: LLMDeploymentSpec, engine: EngineFacts) -> bool:
    """Whether speculative decoding, if it is asked for, works beside pipeline stages."""
    wish = spec.speculative
    return wish is None or wish.method not in HEADS or engine.release != CUTS_HEADS


def check_draft(intent: Intent, model: ModelFacts, draft: ModelFacts | None) -> Iterator[Finding]:
    """An error where a draft model has another vocabulary than the model. Heads may have one of their own."""
    wish = intent.spec.speculative
    if wish is None or wish.method != "draft" or draft is None:
        return
    own, other = model.architecture.vocab, draft.architecture.vocab
    if own != other:
        yield Finding(
            severity=Severity.ERROR,
            reason="DraftVocabulary",
            message=f"the draft model has a vocabulary of {other:,} and the model one of {own:,}; the engine starts only where both "
            "are the same size",
            field="speculative.model",
            value=wish.model,
            remedy=f"a draft model with a vocabulary of {own:,}, or method ngram",
        )


def tokens_each(spec: LLMDeploymentSpec, engine: EngineFacts) -> int:
    """Tokens of a step that the engine asks for, for each request that may run."""
    if spec.speculative is None or spec.adapters is None:
        return 1
    return guesses(spec.speculative) + 1 if checks_guesses(engine.release) else 1


def checks_guesses(known: Version | None) -> bool:
    """Whether a release refuses to start where a step lacks room for guessed tokens. An unknown release counts as a new one."""
    return known is None or known >= CHECKED_FROM


def check_guesses(intent: Intent, engine: EngineFacts) -> Iterator[Finding]:
    """A finding where somebody set a step that is too small for the number of requests that somebody set, or even for one."""
    spec, each = intent.spec, tokens_each(intent.spec, engine)
    step, running = spec.engine.max_batched_tokens, _running(intent)
    if each == 1 or step is None or not intent.binds(STEP) or step >= running * each:
        return
    told = f" and {SEQUENCES} {running}" if running > 1 else ""
    yield Finding(
        severity=Severity.ERROR,
        reason="StepBelowGuesses",
        message=f"{STEP} is {step}{told}, but with adapters and speculative.tokens of {each - 1} the engine refuses to start "
        f"with a step of less than {running * each}: {each} tokens for each request that may run",
        field=STEP,
        value=str(step),
        remedy=f"{STEP} of at least {running * each}"
        + (
            f", or {SEQUENCES} of at most {step // each}" if step >= each else ", or fewer speculative.tokens"
        ),
    )


def with_guesses(task: Task, batched: int, why: Value) -> tuple[int, Value]:
    """The step with its reason, raised for guessed tokens where nobody set the step itself."""
    intent, step = task.intent, task.intent.spec.engine.max_batched_tokens
    each, running = tokens_each(intent.spec, task.engine), _running(intent)
    if each == 1 or batched >= running * each or (step is not None and intent.binds(STEP)):
        return batched, why
    return running * each, explained(
        why.name,
        str(running * each),
        "every guess of all that may run: with adapters the engine refuses to start with a step that cannot check them",
        inputs={
            "without guesses": str(batched),
            SEQUENCES: str(running),
            "speculative.tokens": str(each - 1),
        },
        origin=Origin.DERIVED,
        source="speculative",
        changes=f"{SEQUENCES}, speculative.tokens or {STEP}",
        field=STEP,
    )


def _running(intent: Intent) -> int:
    """The number of requests that a step must hold, where somebody set it, else one."""
    asked = intent.spec.engine.max_sequences
    return asked if asked is not None and intent.binds(SEQUENCES) else 1
