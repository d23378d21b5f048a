"""Settings that depend on the size of the cache: how many sequences run, what is kept free for them, how many may wait.

Too many running sequences preempt one another, too few leave the device idle. Their number follows from how many typical ones the
cache holds, from the latency target and from what the engine allows.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import as_set, explained
from plimsoll.planning.memory.ledger import Capacity
from plimsoll.planning.plan import Origin, Value
from plimsoll.planning.settings import EngineSettings

CACHE_FILL: Final = 0.9
"""Share of the cache that running sequences are planned to fill: beyond it they preempt one another."""
MOST_WATERMARK: Final = 200
"""The most blocks that are kept free, in thousandths of all."""
LEAST_QUEUE: Final = 8
"""The least requests that may wait, where their number is limited."""
EVEN: Final = 8
"""Sequences are rounded down to a multiple of this, from two times as many on."""


def held_sequences(capacity: Capacity) -> int:
    """Sequences of the workload's typical length that run without preempting one another."""
    return max(1, int(capacity.concurrency_at_workload.mid * CACHE_FILL))


def sequences(
    task: Task, default: int, batched: int, capacity: Capacity, target: int | None
) -> tuple[int, Value]:
    """How many sequences may run at once; `target` is how many the latency target allows."""
    name, field, intent = "max_num_seqs", "engine.maxSequences", task.intent
    asked, start = intent.spec.engine.max_sequences, "engine default"
    if asked is not None:
        if intent.binds(field):
            return asked, as_set(intent, name, field, str(asked))
        start = intent.source_of(field)[1]
    bounds = {start: default, "cache": held_sequences(capacity), "batched tokens": batched}
    if target is not None:
        bounds["latency target"] = max(1, target)
    if task.model.architecture.is_hybrid:
        # A start with more sequences than state blocks is refused.
        bounds["state blocks"] = max(1, int(capacity.blocks.low))
    binding = min(bounds, key=lambda bound: (bounds[bound], bound))
    least = bounds[binding]
    chosen = least if least < 2 * EVEN else least // EVEN * EVEN
    return chosen, explained(
        name,
        str(chosen),
        f"the least of what binds, here: {binding}; sequences of {intent.lengths.live:,} tokens fill "
        f"{CACHE_FILL:.0%} of the cache; from 16 on a multiple of 8",
        inputs={bound: str(value) for bound, value in bounds.items()},
        origin=Origin.DERIVED,
        source=binding,
        changes=f"{field}, workload lengths, slo.itlP99Ms, memory for the cache",
        field=field,
    )


def watermark(task: Task, settings: EngineSettings, capacity: Capacity) -> tuple[int, Value]:
    """Blocks that are kept free when a request is admitted, in thousandths: those by which running sequences grow until one of them ends.

    In each step r running sequences take r/block blocks, and one of them ends every output/r steps, which makes output/block blocks.
    """
    name, field, intent = "watermark_permille", "engine.watermarkPermille", task.intent
    asked = intent.spec.engine.watermark_permille
    if asked is not None:
        return asked, as_set(intent, name, field, str(asked))
    lengths, blocks = intent.lengths, capacity.blocks.mid
    longest = (lengths.input_long or lengths.input_typical) + (lengths.output_long or lengths.output_typical)
    full = settings.max_num_seqs * min(longest, settings.max_model_len)
    inputs = {"sequences at full length": f"{full:,}", "cache tokens": f"{capacity.tokens.mid:,.0f}"}
    permille, formula = 0, "0: all sequences fit at full length"
    if not task.engine.has_watermark:
        formula = "0: this engine version has none"
    elif blocks > 0 and full > capacity.tokens.mid:
        growth = lengths.output_typical / max(1, capacity.block_size)
        permille = min(MOST_WATERMARK, ceil(1000 * growth / blocks))
        formula = (
            f"1000 x (output / block) / blocks, at most {MOST_WATERMARK}: the growth until one sequence ends"
        )
        inputs |= {
            "output": str(lengths.output_typical),
            "block": str(capacity.block_size),
            "blocks": f"{blocks:,.0f}",
        }
    return permille, explained(
        name,
        str(permille),
        formula,
        inputs=inputs,
        origin=Origin.DERIVED,
        source="cache and lengths",
        changes=f"{field}, workload lengths, or retuning (tuning.allow)",
        field=field,
    )


def queue_limit(task: Task, requests_per_second: float | None) -> tuple[int | None, Value]:
    """How many requests may wait: with more in the queue a new one could not get its first token in time anyway."""
    name, field, intent = "max_queued_requests", "engine.maxQueuedRequests", task.intent
    asked = intent.spec.engine.max_queued_requests
    if asked is not None:
        return asked, as_set(intent, name, field, str(asked))
    changes = f"slo.ttftP99Ms or {field}"
    known = "--max-num-queued-reqs" in task.engine.flags
    if intent.ttft_ms is None or requests_per_second is None or not known:
        # Where nothing keeps the target, it was planned as if there were none.
        promised = intent.spec.slo.ttft_p99_ms is not None
        why = "the target cannot be kept" if promised else "there is no TTFT target"
        return None, explained(
            name,
            "none",
            f"no limit: {why if known else 'this engine version has none'}",
            origin=Origin.ENGINE,
            source=f"{task.engine.name} {task.engine.version}",
            changes=changes,
            field=field,
        )
    limit = max(LEAST_QUEUE, ceil(2 * requests_per_second * intent.ttft_ms / 1000))
    return limit, explained(
        name,
        str(limit),
        f"twice what a replica answers within the TTFT target, at least {LEAST_QUEUE}",
        inputs={"requests/s": f"{requests_per_second:.2f}", "slo.ttftP99Ms": str(intent.ttft_ms)},
        origin=Origin.DERIVED,
        source="slo.ttftP99Ms",
        changes=changes,
        field=field,
    )
