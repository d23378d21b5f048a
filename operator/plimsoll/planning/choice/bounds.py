"""Bounds on what a layout could carry on some devices, which are cheap to work out and spare most layouts a ledger.

With two hundred kinds of nodes there are thousands of pairs of layout and device, and a ledger with its predictions takes a
millisecond. So each pair first gets a bound that the real figures cannot beat (weights and cache are read once a step at the
fitted speed of the device, and nothing else takes time). A pair whose bound is worse than what was found already is turned down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll.facts.architecture import MoeFfn
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import attains, carried, predicting
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import kv_bytes_per_token
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.settle.derive import base_settings
from plimsoll.planning.speed.rates import classes_of, committed_rates
from plimsoll.planning.speed.roofline import TimeCost, Work, share_of_experts_hit

MOST_SEQUENCES: Final = 1024
"""The most sequences that any engine version runs at once by default."""
COARSE: Final = 4
"""To one part in how many a bound looks for the most requests that keep the target. A bound may be too high, but never too low."""
OPTIMISM: Final = 0.98
"""Factor on a bound's step time, so that rounding of its few terms never makes it longer than the prediction's many."""
HALVINGS: Final = 6
"""How often the range is halved in which the most sequences within a limit lie."""


@dataclass(frozen=True, slots=True)
class Weight:
    """The bytes that a layout puts on a rank, whatever the device; worked out once for all devices of a plan."""

    largest: int
    """Weights on the rank that has most of them."""
    dense: int
    """Weights that each decode step reads, summed over the stages of a pipeline, routed experts left out."""
    experts: int
    """Routed experts, summed over the stages of a pipeline."""
    token: float
    """Cache of one token."""


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """How long a kind of device takes at least for the largest terms of a decode step, whatever the layout."""

    dense: float
    """Seconds for a byte of dense weights."""
    experts: float
    """Seconds for a byte of routed experts."""
    cache: float
    """Seconds for a byte of cache."""
    fixed: float
    """Seconds for what every step has to do, however many sequences it holds."""
    sequence: float
    """Seconds for each sequence in a step."""


def device_speed(task: Task, slot: Slot) -> DeviceSpeed:
    """From the fitted constants of the device's class; what a layout adds to them (collectives, products) only makes it slower. Where a
    ramp found any layout of the model faster than predicted, all layouts count as that much faster."""
    architecture, bandwidth = task.model.architecture, slot.gpu.bandwidth
    work = Work.of(architecture, slot.gpu, Layout(), None)
    fastest = min((1.0, *(one.tpot for one in task.learned.speeds if one.key.model == task.model.digest)))
    rates = committed_rates(classes_of(work, task.engine)).seconds_each
    each = {cost: seconds * fastest for cost, seconds in rates.items()}
    constant = (TimeCost.LAUNCH, TimeCost.EXPERT_LAYER, TimeCost.QUANTIZED_INPUT)
    return DeviceSpeed(
        dense=each[TimeCost.DENSE_WEIGHTS] / bandwidth,
        # Weights that are unpacked on the way cost operations instead of bytes.
        experts=0.0 if work.unpacked else each[TimeCost.EXPERT_WEIGHTS] / bandwidth,
        cache=each[TimeCost.CACHE_READ] / bandwidth,
        fixed=sum(work.fixed[cost] * each[cost] for cost in constant),
        sequence=each[TimeCost.SEQUENCE],
    )


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that one replica could carry and answer."""

    concurrency: float
    """Requests in flight within the latency target and the memory."""
    tokens_per_second: float
    """Output tokens at a modest load."""
    requests_per_second: float
    """Requests answered with `concurrency` in flight."""


def weight_of(task: Task, layout: Layout) -> Weight:
    """The weights and the cache that a layout puts on a rank."""
    ranks, weights = rank_weight_bytes(task.model, layout), task.model.weights
    experts = sum(ranks.experts)
    # A decode step reads no encoder, no draft layer, and of an embedding that is not also the head only a few rows.
    idle = (weights.embedding if weights.lm_head else 0) + weights.vision + weights.mtp
    return Weight(
        largest=ranks.largest,
        dense=max(0, sum(ranks.stages) - experts - idle - task.model.architecture.position_table_bytes),
        experts=experts,
        token=kv_bytes_per_token(task.model.architecture, layout, None),
    )


def bound_of(task: Task, speed: DeviceSpeed, layout: Layout, weight: Weight, budget: float) -> Bound:
    """The first, cheapest bound. `budget` is how many bytes of a device the engine may take."""
    lengths, intent = task.intent.lengths, task.intent
    room = max(0.0, budget - weight.largest)
    asked = intent.spec.engine.max_sequences
    allowed = float(MOST_SEQUENCES if asked is None else asked)
    held = room / (weight.token * lengths.live) if weight.token else allowed
    most = min(held, allowed) * layout.data

    def step(running: float) -> float:
        return _step(task, speed, layout, weight, running)

    if intent.itl_ms is not None:
        most_within = _most_by_halving if weight.experts else _most_on_line
        most = most_within(step, most, intent.itl_ms / 1000)
    modest = max(1.0, min(most, float(task.modest)))
    return Bound(
        concurrency=most,
        tokens_per_second=modest / step(modest),
        requests_per_second=most / (step(max(1.0, most)) * max(1, lengths.output_typical)),
    )


def tight_bound(task: Task, slot: Slot, layout: Layout, weight: Weight, budget: float) -> Bound:
    """A tighter bound: the prediction for a cache that gets all the memory beside the weights, which is more than any ledger leaves it."""
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
    if not task.sized_by_load:
        return Bound(float(most), likely.output_tokens_per_second, best.requests_per_second)
    most, best = carried(intent, limit, at, steps=COARSE)
    # The true most lies up to one step of the search beyond what was found.
    edge = min(limit, most + max(1, most // COARSE))
    rate = best.requests_per_second * edge / most
    return Bound(float(edge), likely.output_tokens_per_second, rate)


def _step(task: Task, speed: DeviceSpeed, layout: Layout, weight: Weight, running: float) -> float:
    """The least seconds of a decode step, in which each running sequence gains a token."""
    lengths = task.intent.lengths
    hit = _hit(task, running / layout.pipeline)
    context = lengths.input_typical if weight.token else 0
    # The cache of a token counts as on the pipeline stage that holds most of it, which is never more than all stages together hold.
    cache = weight.token * context * running / layout.data
    read = weight.dense * speed.dense + weight.experts * hit * speed.experts + cache * speed.cache
    return OPTIMISM * (read + speed.fixed + running * speed.sequence)


def _most_on_line(step: Callable[[float], float], most: float, limit: float) -> float:
    """The most sequences whose step is within a limit, where its time grows evenly with them, as it does without experts."""
    base = step(0.0)
    slope = step(1.0) - base
    if base + slope > limit:
        return 0.0
    return most if slope <= 0 else min(most, (limit - base) / slope)


def _most_by_halving(step: Callable[[float], float], most: float, limit: float) -> float:
    """The most sequences whose step is within a limit, rounded up, since a bound must not be too low."""
    if step(1.0) > limit:
        return 0.0
    if step(most) <= limit:
        return most
    low, high = 1.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if step(middle) <= limit else (low, middle)
    return high


def _hit(task: Task, tokens: float) -> float:
    """Share of the routed experts that so many tokens choose; 0 for a model without experts."""
    for layer, _ in task.model.architecture.kinds:
        if isinstance(layer.ffn, MoeFfn):
            return share_of_experts_hit(layer.ffn, max(1.0, tokens))
    return 0.0
