"""One layout on one kind of device, worked out: its settings, its ledger, and how much it can carry within the latency target.

Settings and ledger depend on each other: the size of the cache decides how many sequences may run, and their number takes memory
from the cache. Two ledgers are enough, since the number of sequences only goes down from the first to the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

from plimsoll.api.quantity import format_gib
from plimsoll.api.same import Same
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.inventory import Pool
from plimsoll.facts.learned import Learned
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.guesses import tokens_each
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import explained
from plimsoll.planning.choice import rule
from plimsoll.planning.layouts.every import Refusal
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.load import Load, Performance
from plimsoll.planning.memory.learned_key import speed_key
from plimsoll.planning.memory.ledger import Capacity, Ledger, Verdict, build_ledger
from plimsoll.planning.memory.verdict import CONTEXT_AT_START
from plimsoll.planning.placing.budgets import Claim
from plimsoll.planning.placing.placement import Slot, holds_pod, room
from plimsoll.planning.plan import Origin, PodResources, Value
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.settle.derive import UTILIZATION, base_settings, share_on
from plimsoll.planning.settle.pod_resources import pod_resources
from plimsoll.planning.settle.sequences import held_sequences, sequences, watermark
from plimsoll.planning.speed.believing import belief
from plimsoll.planning.speed.performance import Replica

LIKELY: Final = 0.9
"""Chance of keeping the latency target that a layout must have."""
POOL_STEP: Final = 64 * 2**20
"""Bytes to whose multiples a fixed cache is rounded down."""
LEAST_SEQUENCES: Final = 8
"""Sequences that a layout is tried with where the engine's default of them leaves no cache."""
LEDGERS: Final = 256
"""How many ledgers are remembered. They do not depend on what is free, so the next turn of a deployment finds all of its own."""
BISECTION_STEPS: Final = 16
"""To one part in how many the most requests in flight within the target are found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A layout that fits on a kind of device, worked out."""

    slot: Slot
    layout: Layout
    shape: Shape
    settings: EngineSettings
    resources: PodResources
    ledger: Ledger
    values: tuple[Value, ...]
    most: int
    """Requests in flight that one replica carries within the latency target; 0 where even a single one misses it."""
    at_most: Performance | None
    """Prediction for so many in flight; None where none is possible."""

    @property
    def fits(self) -> bool:
        return self.ledger.verdict is Verdict.FITS

    @property
    def devices(self) -> int:
        return self.layout.gpus

    @cached_property
    def claim(self) -> Claim:
        return Claim.on(self.slot.hardware, self.devices)

    @property
    def gpu_hours(self) -> Fraction:
        return self.slot.part * self.devices

    @property
    def price(self) -> Fraction | None:
        """Price of a replica for an hour; None where it is not known."""
        return None if self.slot.price is None else self.slot.price * self.devices


def load_of(intent: Intent, concurrency: int) -> Load:
    return Load(
        input_tokens=intent.lengths.input_typical,
        output_tokens=intent.lengths.output_typical,
        concurrency=concurrency,
        shared_prefix_share=intent.shared_prefix or 0.0,
        generates=intent.generates,
    )


def attains(intent: Intent, performance: Performance) -> bool:
    """Whether the latency target will be kept. It is about 99 of 100 requests and the prediction about the mean, so keeping it by the
    mean alone is not enough: it must be likely."""
    predicted = rule.Predicted(ttft_ms=performance.ttft_ms, tpot_ms=performance.tpot_ms, value=0.0)
    limits = rule.LatencyLimits(ttft_ms=intent.ttft_ms, tpot_ms=intent.itl_ms)
    return rule.chance(predicted, limits) >= LIKELY


def evaluate(task: Task, slot: Slot, shape: Shape, layout: Layout) -> Candidate | Refusal:
    """A layout worked out as the preset or the defaults say; where that does not fit, with as much of the device as is safe to take."""
    found = _evaluated(task, slot, shape, layout, generous=False)
    if isinstance(found, Refusal) and not task.intent.binds(UTILIZATION):
        return _evaluated(task, slot, shape, layout, generous=True)
    return found


def _evaluated(
    task: Task, slot: Slot, shape: Shape, layout: Layout, *, generous: bool
) -> Candidate | Refusal:
    settings, values = base_settings(task, slot, layout, generous=generous)
    ledger = ledger_of(task, slot, layout, settings)
    if ledger.verdict is Verdict.DOES_NOT_FIT and not task.intent.binds("engine.maxSequences"):
        # The sampler's buffers grow with the sequences: few of them may be what makes a small card start.
        settings = replace(settings, max_num_seqs=min(settings.max_num_seqs, LEAST_SEQUENCES))
        ledger = ledger_of(task, slot, layout, settings)
    if ledger.verdict is Verdict.DOES_NOT_FIT:
        return Refusal(layout, "memory", ledger.reason)
    most, best = _carried(task, slot, layout, settings, ledger)
    capacity = cache_of(ledger)
    if capacity is not None:
        target = most // layout.data if task.intent.itl_ms is not None and most > 0 else None
        held = settings.max_num_batched_tokens // tokens_each(task.intent.spec, task.engine)
        count, why = sequences(task, settings.max_num_seqs, held, capacity, target)
        settings = replace(settings, max_num_seqs=min(count, settings.max_num_seqs))
        values += (why,)
    if most > settings.max_num_seqs * layout.data:
        most = settings.max_num_seqs * layout.data
        best = predictor(task, slot, layout, settings, ledger)(most)
    if ledger.verdict is Verdict.TIGHT:
        # Fewer sequences than were weighed may be what makes it sure.
        ledger = ledger_of(task, slot, layout, settings)
    resources, reasons = pod_resources(task, slot, shape, layout, settings)
    return Candidate(
        slot=slot,
        layout=layout,
        shape=shape,
        settings=settings,
        resources=resources,
        ledger=ledger,
        values=(*values, *reasons),
        most=most,
        at_most=best,
    )


def settled(task: Task, candidate: Candidate) -> Candidate:
    """The candidate with its last settings decided, and the ledger of those. It still fits, as it runs no more sequences than before."""
    slot, layout, settings, values = candidate.slot, candidate.layout, candidate.settings, candidate.values
    ledger = ledger_of(task, slot, layout, settings)
    if slot.hardware.sharing > 1 and settings.kv_cache_bytes is None and ledger.term("kv").bytes.low > 0:
        settings, why = _fixed_pool(slot, ledger, settings)
        values += (why,)
        ledger = ledger_of(task, slot, layout, settings)
    if slot.hardware.sharing > 1 and not task.intent.binds(UTILIZATION):
        settings, why = _free_at_start(slot, ledger, settings)
        values = (*(value for value in values if value.name != why.name), why)
    capacity = cache_of(ledger)
    if capacity is not None:
        permille, why = watermark(task, settings, capacity)
        settings = replace(settings, watermark_permille=permille)
        values += (why,)
    return replace(candidate, settings=settings, ledger=ledger, values=values)


def _fixed_pool(slot: Slot, ledger: Ledger, settings: EngineSettings) -> tuple[EngineSettings, Value]:
    """The size of the cache on a shared device, where nothing can be profiled since neighbours come and go: what the share surely leaves."""
    pool = max(0, int(ledger.term("kv").bytes.low)) // POOL_STEP * POOL_STEP
    why = explained(
        "kv_cache_bytes",
        format_gib(pool),
        f"the low end of what the share leaves, in steps of {format_gib(POOL_STEP, places=3)}",
        inputs={"share": f"1/{slot.hardware.sharing}", "budget": format_gib(ledger.budget_bytes)},
        origin=Origin.DERIVED,
        source="the device is shared",
        changes="memory.kvCacheSize, memory.tenancySharePercent, the sharing factor of the GPU",
        field="memory.kvCacheSize",
    )
    return replace(settings, kv_cache_bytes=pool), why


def _free_at_start(slot: Slot, ledger: Ledger, settings: EngineSettings) -> tuple[EngineSettings, Value]:
    """The utilization where the cache is fixed. It is then only the share of the device that must be free at the start, when this process
    has its driver context already and every neighbour may have taken its whole part."""
    free = (ledger.budget_bytes - CONTEXT_AT_START) / slot.hardware.memory_bytes
    utilization = max(1, int(free * 100)) / 100
    why = explained(
        "utilization",
        f"{utilization:.0%}",
        "what the share leaves free beside the driver's context, which is all that the start asks of it: the pool is fixed",
        inputs={"budget": format_gib(ledger.budget_bytes), "context": format_gib(int(CONTEXT_AT_START))},
        origin=Origin.DERIVED,
        source="the device is shared",
        changes=f"{UTILIZATION}, memory.tenancySharePercent, the sharing factor of the GPU",
        field=UTILIZATION,
    )
    return replace(settings, utilization=utilization), why


def room_for(candidate: Candidate, owner: str) -> int:
    """Replicas that find devices on hosts with enough memory and disk for their pods."""
    return sum(room(pool, candidate.shape, candidate.layout, owner) for pool in hosts_of(candidate, owner))


def hosts_of(candidate: Candidate, owner: str) -> tuple[Pool, ...]:
    return tuple(pool for pool in candidate.slot.pools if holds_pod(pool, candidate.resources, owner))


def ledger_of(task: Task, slot: Slot, layout: Layout, settings: EngineSettings) -> Ledger:
    return _ledger(
        model=task.model,
        gpu=slot.gpu,
        layout=layout,
        engine=Same(task.engine),
        settings=settings,
        device_bytes=slot.hardware.memory_bytes,
        learned=Same(task.learned),
        workload_tokens=min(task.intent.lengths.live, task.context.tokens),
        share=share_on(task, slot),
    )


@lru_cache(LEDGERS)
def _ledger(
    *,
    model: ModelFacts,
    gpu: Gpu,
    layout: Layout,
    engine: Same[EngineFacts],
    settings: EngineSettings,
    device_bytes: int,
    learned: Same[Learned],
    workload_tokens: int,
    share: Fraction | None,
) -> Ledger:
    return build_ledger(
        model=model,
        gpu=gpu,
        layout=layout,
        engine=engine.value,
        settings=settings,
        device_bytes=device_bytes,
        learned=learned.value,
        workload_tokens=workload_tokens,
        share=share,
    )


def cache_of(ledger: Ledger) -> Capacity | None:
    """The cache, where the model has one: encoders keep nothing between requests."""
    capacity = ledger.capacity
    return capacity if capacity is not None and capacity.blocks.mid > 0 else None


def predictor(
    task: Task, slot: Slot, layout: Layout, settings: EngineSettings, ledger: Ledger
) -> Callable[[int], Performance]:
    """A function from requests in flight on a replica to its performance, with the cache that the ledger leaves."""
    capacity = cache_of(ledger)
    tokens = capacity.tokens.mid if capacity is not None else None
    return predicting(task, slot, layout, settings, tokens)


def predicting(
    task: Task, slot: Slot, layout: Layout, settings: EngineSettings, kv_tokens: float | None
) -> Callable[[int], Performance]:
    """The same with a cache of so many tokens; None where the model has no cache."""
    replica = replica_of(task, slot, layout, settings, kv_tokens)
    return lambda concurrency: replica.at(load_of(task.intent, concurrency))


def replica_of(
    task: Task, slot: Slot, layout: Layout, settings: EngineSettings, kv_tokens: float | None
) -> Replica:
    """A replica with a cache of so many tokens; None where the model has no cache."""
    return Replica.of(
        model=task.model,
        gpu=slot.gpu,
        layout=layout,
        engine=task.engine,
        settings=settings,
        kv_tokens=kv_tokens,
        belief=belief(task.learned, speed_key(task.model, slot.gpu, layout, task.engine, settings)),
    )


def rate_at(task: Task, candidate: Candidate, concurrency: int) -> float | None:
    """Output tokens a second of one replica at a load; None where nothing can be predicted."""
    if candidate.at_most is None:
        return None
    if concurrency == candidate.most:
        return candidate.at_most.output_tokens_per_second
    at = predictor(task, candidate.slot, candidate.layout, candidate.settings, candidate.ledger)
    return at(concurrency).output_tokens_per_second


def _carried(
    task: Task, slot: Slot, layout: Layout, settings: EngineSettings, ledger: Ledger
) -> tuple[int, Performance | None]:
    limit = settings.max_num_seqs * layout.data
    capacity = cache_of(ledger)
    if capacity is not None:
        limit = max(1, min(limit, held_sequences(capacity) * layout.data))
    return carried(task.intent, limit, predictor(task, slot, layout, settings, ledger))


def carried(
    intent: Intent, limit: int, at: Callable[[int], Performance], *, steps: int = BISECTION_STEPS
) -> tuple[int, Performance]:
    """The most requests in flight within the target and `limit`, to one part in `steps`, and the prediction for them.

    Latency rises with concurrency, so bisection finds them. Without a target `limit` is the answer.
    """
    top = at(limit)
    if not intent.has_target or attains(intent, top):
        return limit, top
    first = at(1)
    if limit == 1 or not attains(intent, first):
        return 0, first
    low, high, best = 1, limit, first
    while high - low > max(1, low // steps):
        middle = (low + high) // 2
        found = at(middle)
        if attains(intent, found):
            low, best = middle, found
        else:
            high = middle
    return low, best


def unfitting(task: Task, slot: Slot, shape: Shape, layout: Layout) -> Candidate:
    """A layout that does not fit in memory, worked out as far as its ledger, to show what is missing."""
    settings, values = base_settings(task, slot, layout, generous=True)
    if not task.intent.binds("engine.maxSequences"):
        settings = replace(settings, max_num_seqs=min(settings.max_num_seqs, LEAST_SEQUENCES))
    resources, reasons = pod_resources(task, slot, shape, layout, settings)
    return Candidate(
        slot=slot,
        layout=layout,
        shape=shape,
        settings=settings,
        resources=resources,
        ledger=ledger_of(task, slot, layout, settings),
        values=(*values, *reasons),
        most=0,
        at_most=None,
    )
