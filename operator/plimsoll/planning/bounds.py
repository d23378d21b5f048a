"""The least that a layout could cost on some devices: cheap figures that say which ones need no ledger at all.

A fleet of two hundred kinds of nodes admits thousands of pairs of layout and device, and a ledger with its predictions
costs a millisecond. So each pair first gets a bound that the real figures cannot beat (weights and cache read once a step
at the peak bandwidth, nothing else), and pairs whose bound is already worse than what was found are turned down by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll.facts.architecture import MoeFfn
from plimsoll.planning.candidate import attains, carried, predicting
from plimsoll.planning.derive import base_settings
from plimsoll.planning.kv import kv_bytes_per_token
from plimsoll.planning.layout import Layout
from plimsoll.planning.placement import Slot
from plimsoll.planning.rank_weights import rank_weight_bytes
from plimsoll.planning.task import Task

EXPERT_OPTIMISM: Final = 0.5
"""Measured decode steps read routed experts up to this much faster than even routing and the peak bandwidth would have it."""
LAYER_SECONDS: Final = 40e-6
"""No measured layer of a decode step took less, whatever the device."""
MOST_SEQUENCES: Final = 1024


@dataclass(frozen=True, slots=True)
class Weight:
    """What a layout puts on a rank, whatever the device: computed once a plan."""

    largest: int
    dense: int
    """Sum over the stages of a pipeline, routed experts left out."""
    experts: int
    token: float


@dataclass(frozen=True, slots=True)
class Bound:
    """What one replica can carry and give at the very best."""

    concurrency: float
    """Within the latency target and the memory."""
    tokens_per_second: float
    """At a modest load."""
    requests_per_second: float
    """At the most it carries."""


def weight_of(task: Task, layout: Layout) -> Weight:
    ranks = rank_weight_bytes(task.model, layout)
    experts = sum(ranks.experts)
    return Weight(
        largest=ranks.largest,
        dense=sum(ranks.stages) - experts,
        experts=experts,
        token=kv_bytes_per_token(task.model.architecture, layout, None),
    )


def bound_of(task: Task, slot: Slot, layout: Layout, weight: Weight, budget: float) -> Bound:
    lengths, intent = task.intent.lengths, task.intent
    room = max(0.0, budget - weight.largest)
    held = room / max(1e-9, weight.token * lengths.live) if weight.token else float(MOST_SEQUENCES)
    most = min(held, float(MOST_SEQUENCES)) * layout.data

    def step(running: float) -> float:
        return _step(task, slot, layout, weight, running)

    if intent.itl_ms is not None:
        most = _within(step, most, intent.itl_ms / 1000)
    modest = max(1.0, min(most, float(task.modest)))
    return Bound(
        concurrency=most,
        tokens_per_second=modest / step(modest),
        requests_per_second=most / (step(max(1.0, most)) * max(1, lengths.output_typical)),
    )


def tight_bound(task: Task, slot: Slot, layout: Layout, weight: Weight, budget: float) -> Bound:
    """The prediction for a cache that has all the memory beside the weights: no ledger will leave more."""
    settings, _ = base_settings(task, slot, layout, generous=True)
    room, intent = max(0.0, budget - weight.largest), task.intent
    tokens = room / weight.token if weight.token else None
    at = predicting(task, slot, layout, settings, tokens)
    limit = settings.max_num_seqs * layout.data
    if tokens is not None:
        limit = max(1, min(limit, int(tokens / max(1, intent.lengths.live)) * layout.data))
    modest = min(limit, task.modest)
    likely = at(modest)
    if intent.has_target and not attains(intent, likely):
        most, best = carried(intent, modest, at)
        likely = best if most else likely
        if not most:
            return Bound(0.0, likely.output_tokens_per_second, 0.0)
    else:
        most, best = modest, likely
    if task.sized_by_load:
        most, best = carried(intent, limit, at)
    return Bound(float(most), likely.output_tokens_per_second, best.requests_per_second)


def _step(task: Task, slot: Slot, layout: Layout, weight: Weight, running: float) -> float:
    """Seconds in which all running sequences gain a token, at the very least."""
    architecture, lengths = task.model.architecture, task.intent.lengths
    hit = _hit(task, running / layout.pipeline)
    context = lengths.input_typical if weight.token else 0
    # A token's cache is counted for the stage that holds most of it: never more than all stages hold.
    cache = weight.token * context * running / layout.data
    read = weight.dense + weight.experts * hit * EXPERT_OPTIMISM
    return (read + cache) / slot.gpu.bandwidth + LAYER_SECONDS * len(architecture.layers)


def _within(step: Callable[[float], float], most: float, limit: float) -> float:
    """The most sequences whose step may be within a limit, rounded up: a bound must not be too low."""
    if step(1.0) > limit:
        return 0.0
    if step(most) <= limit:
        return most
    low, high = 1.0, most
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if step(middle) <= limit else (low, middle)
    return high


def _hit(task: Task, tokens: float) -> float:
    for layer in task.model.architecture.layers:
        if isinstance(layer.ffn, MoeFfn):
            return float(1.0 - (1.0 - layer.ffn.top_k / layer.ffn.experts) ** max(1.0, tokens))
    return 0.0
