"""What holds an engine back, told from what it exported while it was overloaded.

There are five possible causes, named by the words that guides to engines use. A pure function judges each of them, with its evidence and a
remedy; where one cannot be judged it says what is missing. They are in an order in which causes come before their consequences, and the first
that holds is the one to speak of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.load.engine import EngineWindow

KV_FULL: Final = 0.95
"""Share of the cache above which it counts as full."""
PREEMPTED: Final = 0.01
"""Preemptions for each finished request above which there are too many sequences."""
GPU_IDLE: Final = 0.50
"""Share of the time below which GPUs count as idle."""


class Word(StrEnum):
    TOO_MANY_SEQUENCES = "too many sequences"
    KV_EXHAUSTED = "KV exhausted"
    BATCH_TOO_SMALL = "batch too small"
    PREFILL_TOO_SLOW = "prefill too slow"
    COMMUNICATION_BOUND = "communication bound"


REMEDIES: Final = {
    Word.TOO_MANY_SEQUENCES: "lower max_num_seqs to what the cache holds, or raise the watermark; then more cache",
    Word.KV_EXHAUSTED: "more cache: FP8 KV, a higher utilization, a shorter context, more GPUs a replica, or replicas",
    Word.BATCH_TOO_SMALL: "raise max_num_seqs; where nothing waits, more load fits on fewer replicas",
    Word.PREFILL_TOO_SLOW: "a larger max_num_batched_tokens, prefix caching where prompts begin alike, faster GPUs, or replicas",
    Word.COMMUNICATION_BOUND: "fewer tensor ranks, kept inside one NVLink domain; pipeline ranks or replicas beyond it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the client and a plan know beyond the engine's own metrics."""

    finished: float | None = None
    """Answers that the client has received whole, for engines that do not count them."""
    ttft_p99_ms: float | None = None
    ttft_target_ms: float | None = None
    seats: int | None = None
    """max_num_seqs of all replicas together, where there is a plan."""
    planned_bound: str | None = None
    """What limits a decode step according to a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    word: Word
    holds: bool | None
    """None where it cannot be judged."""
    evidence: str
    remedy: str


def judge(engine: EngineWindow | None, around: Circumstances) -> tuple[Judgement, ...]:
    """Judgements of all five causes, in their order."""
    if engine is None:
        missing = "the endpoint exports no metrics of a known engine"
        return tuple(_judged(word, None, missing) for word in Word)
    return (
        _too_many_sequences(engine, around),
        _kv_exhausted(engine),
        _batch_too_small(engine, around),
        _prefill_too_slow(engine, around),
        _communication_bound(around),
    )


def named(judgements: Sequence[Judgement]) -> Judgement | None:
    """The first judgement that holds."""
    return next((one for one in judgements if one.holds), None)


def _too_many_sequences(engine: EngineWindow, around: Circumstances) -> Judgement:
    word = Word.TOO_MANY_SEQUENCES
    finished = around.finished if engine.finished is None else engine.finished
    if engine.preemptions is None or finished is None:
        why = "the counts come from several engines" if engine.several else "preemptions are not exported"
        return _judged(word, None, why)
    share = engine.preemptions / max(1.0, finished)
    said = f"{engine.preemptions:,.0f} preemptions for {finished:,.0f} finished requests"
    return _judged(word, share > PREEMPTED, f"{said} ({share:.1%}; over {PREEMPTED:.0%} holds)")


def _kv_exhausted(engine: EngineWindow) -> Judgement:
    word = Word.KV_EXHAUSTED
    if engine.kv_usage_max is None:
        return _judged(word, None, "the use of the KV cache is not exported")
    said = (
        f"KV use was {engine.kv_usage_max:.0%} at most (over {KV_FULL:.0%} holds, where requests wait for it)"
    )
    wanted = engine.waiting_max != 0 or bool(engine.preemptions)
    return _judged(word, engine.kv_usage_max > KV_FULL and wanted, said)


def _batch_too_small(engine: EngineWindow, around: Circumstances) -> Judgement:
    word = Word.BATCH_TOO_SMALL
    full = (engine.kv_usage_max or 0.0) > KV_FULL
    held = _held(engine, around)
    if held is not None and engine.waiting_mean and not full:
        said = f"{held:,.0f} ran while {engine.waiting_mean:,.1f} waited on average, with cache to spare"
        return _judged(word, True, said)
    if engine.gpu_busy is not None:
        said = f"its GPUs were busy {engine.gpu_busy:.0%} of the time (under {GPU_IDLE:.0%} holds)"
        return _judged(word, engine.gpu_busy < GPU_IDLE and not full, said)
    if engine.waiting_mean is None:
        return _judged(word, None, "neither waiting requests nor the GPU's use are exported")
    if full:
        return _judged(word, False, "the cache is full; a larger batch has no room")
    return _judged(
        word, False, "the number of running requests was held at no limit; the GPU's use is not known"
    )


def _prefill_too_slow(engine: EngineWindow, around: Circumstances) -> Judgement:
    word = Word.PREFILL_TOO_SLOW
    target, seen = around.ttft_target_ms, around.ttft_p99_ms
    if target is None:
        return _judged(word, None, "no TTFT target was given (--slo ttft=...)")
    if seen is None:
        return _judged(word, None, "no first token was seen")
    said = f"p99 TTFT {seen:,.0f} ms, the target is {target:,.0f} ms"
    if seen <= target:
        return _judged(word, False, said)
    queue, prefill = engine.queue_ms, engine.prefill_ms
    if queue is not None and prefill is not None:
        said += f"; {queue:,.0f} ms in the queue and {prefill:,.0f} ms in the prefill on average"
    elif engine.waiting_mean is not None:
        said += f"; {engine.waiting_mean:,.1f} requests waited on average"
    # A full cache or a batch at its limit explains a queue. Where neither is the case, requests wait for prefills.
    elsewhere = (engine.kv_usage_max or 0.0) > KV_FULL or _held(engine, around) is not None
    queued = queue > prefill if queue is not None and prefill is not None else bool(engine.waiting_mean)
    return _judged(word, not (elsewhere and queued), said)


def _communication_bound(around: Circumstances) -> Judgement:
    """What a plan expects. As no engine exports it, it is never judged from measurements."""
    unmeasured = "engines export no time in communication"
    said = (
        f"{unmeasured}; a plan (--plan or -f) says what it expects to bound a decode step"
        if around.planned_bound is None
        else f"the plan expects {around.planned_bound} to bound a decode step, which nothing measured shows: {unmeasured}"
    )
    return _judged(Word.COMMUNICATION_BOUND, None, said)


def _held(engine: EngineWindow, around: Circumstances) -> float | None:
    """The limit at which the number of running requests stood, by the plan's seats, else as it was seen; None where it stood at none."""
    if around.seats is not None and engine.running_max is not None:
        return engine.running_max if engine.running_max >= around.seats else None
    return engine.held_at


def _judged(word: Word, holds: bool | None, evidence: str) -> Judgement:
    return Judgement(word=word, holds=holds, evidence=evidence, remedy=REMEDIES[word])
