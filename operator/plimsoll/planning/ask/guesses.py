"""What guessing asks of layouts and steps: beside adapters the engine starts only where a step can check every guess of all that may run.

Without adapters a step needs a token for each of them, as it does without guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engine_versions import Version, release
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.ask.features import guesses
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import explained
from plimsoll.planning.plan import Finding, Origin, Severity, Value

STEP: Final = "engine.maxBatchedTokens"
SEQUENCES: Final = "engine.maxSequences"
CHECKED_FROM: Final = release("0.20.2")
"""The oldest release whose check was read; sets of older ones stay as they are."""

WHOLE_HEADS: Final = release("0.20.2")
"""It cut a head like its model, and no head that it has takes what one stage hands to the next; from 0.32 on heads are whole. Of
others it is not known."""
HEADS: Final = ("eagle", "eagle3")


def head_in_stages(spec: LLMDeploymentSpec, engine: EngineFacts) -> bool:
    """Whether what guesses may run beside pipeline stages."""
    wish = spec.speculative
    return wish is None or wish.method not in HEADS or engine.release != WHOLE_HEADS


def tokens_each(spec: LLMDeploymentSpec, engine: EngineFacts) -> int:
    """Tokens of a step that the engine must have for every request that may run."""
    if spec.speculative is None or spec.adapters is None:
        return 1
    return guesses(spec.speculative) + 1 if checks_guesses(engine.release) else 1


def checks_guesses(known: Version | None) -> bool:
    """Whether a release refuses what it has no room for; one that is not known is taken for a new one."""
    return known is None or known >= CHECKED_FROM


def check_guesses(intent: Intent, engine: EngineFacts) -> Iterator[Finding]:
    """A step that somebody sets, too small for the requests that somebody sets, or even for one."""
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
    """The step, raised where it is not somebody's word and the number of requests that it has to hold is."""
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
    """Requests that a step has to hold by somebody's word, else one."""
    asked = intent.spec.engine.max_sequences
    return asked if asked is not None and intent.binds(SEQUENCES) else 1
