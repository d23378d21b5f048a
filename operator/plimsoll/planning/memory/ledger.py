"""The memory ledger of one GPU: every term with its formula, inputs and source, and what is left for the cache.

Terms come from `rank_weights`, `overheads` and `profile_run`, blocks and tokens from `kv_groups`. This module adds them up and keeps
the interval that holds 90% of real starts. `verdict` says whether the engine starts: it fits when even the unfavourable end of the
interval leaves room for one longest request, and does not fit when even the favourable end leaves none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.learned import Learned
from plimsoll.facts.model import Certainty, ModelFacts
from plimsoll.planning.interval import Interval
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory import overheads, profile_run
from plimsoll.planning.memory.constants import MemoryConstants, fitted_constants
from plimsoll.planning.memory.kv_groups import CachePlan
from plimsoll.planning.memory.kv_rules import cache_plan
from plimsoll.planning.memory.learning import taught
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.memory.situation import Estimate, Situation, gib_text
from plimsoll.planning.memory.verdict import OomRisk, Room, Verdict, judge
from plimsoll.planning.settings import EngineSettings

__all__ = ["Capacity", "Ledger", "OomRisk", "Term", "Verdict", "build_ledger"]

UNEVEN_RANKS = 0.005
"""Share of the weights by which the fullest of several ranks may exceed the figure of one rank."""
WEIGHTS_STRAY, CONTEXT_STRAYS, GRAPHS_STRAY = 0.003, 0.15, 0.5
"""By what share of itself each of these terms varies between real starts, as far as logs report it apart."""
NOTHING_LEFT = Interval.exact(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one thing takes of a device's memory."""

    name: str
    """weights, activation, graphs, context, lora, draft, encoder, kv, headroom."""
    bytes: Interval
    formula: str
    inputs: Mapping[str, str]
    certainty: Certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the engine will print about its cache, for the rank that limits all others."""

    blocks: Interval
    block_size: int
    tokens: Interval
    """Tokens as the log of this engine version counts them."""
    concurrency_at_max_len: Interval
    concurrency_at_workload: Interval
    bytes_per_token: float
    """Bytes that one more token takes on this rank, all layers together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the memory of one device goes, and whether the engine starts with what is left."""

    budget_bytes: int
    """How much of one device the engine may take."""
    device_bytes: int
    terms: tuple[Term, ...]
    """In the order a bar is drawn: what is resident first, then the pool, then what stays free."""
    capacity: Capacity | None
    """None where nothing is left for a cache."""
    verdict: Verdict
    risk: OomRisk
    reason: str
    """One sentence that says why this verdict, with the figures that decided and what would change it."""
    left: Interval = NOTHING_LEFT
    """Bytes that the other terms leave for the cache on the rank that limits all others; negative where they do not fit themselves."""

    def term(self, name: str) -> Term:
        for term in self.terms:
            if term.name == name:
                return term
        raise KeyError(name)


def build_ledger(
    *,
    model: ModelFacts,
    gpu: Gpu,
    layout: Layout,
    engine: EngineFacts,
    settings: EngineSettings,
    device_bytes: int | None = None,
    learned: Learned | None = None,
    workload_tokens: int | None = None,
    share: Fraction | None = None,
    constants: MemoryConstants | None = None,
) -> Ledger:
    """The ledger of the rank that limits all others: in a pipeline, the stage whose memory holds the fewest blocks."""
    now = Situation(
        model=model,
        gpu=gpu,
        layout=layout,
        engine=engine,
        settings=settings,
        constants=constants or fitted_constants(),
        device_bytes=device_bytes or gpu.memory_bytes,
    )
    plan = cache_plan(model.architecture, gpu=gpu, layout=layout, engine=engine, settings=settings)
    budget = _budget(now, share)
    stages = [_estimates(now, stage, learned) for stage in range(layout.pipeline)]
    pools = [_pool(now, budget, estimates) for estimates in stages]
    binding = min(range(layout.pipeline), key=lambda stage: _worth(plan, pools, stage))
    blocks = Interval(*(plan.blocks([end(pool) for pool in pools]) for end in (_low, _mid, _high)))
    capacity = _capacity(plan, blocks, settings.max_model_len, workload_tokens or settings.max_model_len)
    taken = _taken(now, stages[binding])
    judged = judge(
        now,
        plan,
        Room(
            budget=budget,
            need=sum(estimate.bytes for estimate in taken),
            spread=sum(estimate.spread for estimate in taken),
            graphs=stages[binding]["graphs"],
            pool=pools[binding],
            blocks=blocks,
        ),
    )
    return Ledger(
        budget_bytes=budget,
        device_bytes=now.device_bytes,
        left=pools[binding],
        terms=_terms(now, stages[binding], pools[binding], plan, budget),
        capacity=capacity if blocks.mid > 0 or not plan.groups else None,
        verdict=judged.verdict,
        risk=judged.risk,
        reason=judged.reason,
    )


def _budget(now: Situation, share: Fraction | None) -> int:
    """Bytes of the device that the engine may take. With a cache of fixed size the utilization is ignored, and only a share limits it."""
    part = share if share is not None else Fraction(1)
    if now.settings.kv_cache_bytes is None:
        part = min(part, Fraction(str(now.settings.utilization)))
    return ceil(now.device_bytes * part)


def _estimates(now: Situation, stage: int, learned: Learned | None) -> dict[str, Estimate]:
    """The terms of a rank of one stage, in the order in which a bar is drawn."""
    ranks = rank_weight_bytes(now.model, now.layout)
    last = stage == now.layout.pipeline - 1
    found = {
        "weights": overheads.loaded_weights(now, ranks.stages[stage], ranks.experts[stage]),
        "context": overheads.context(now),
        "lora": overheads.lora(now),
        "draft": overheads.draft(now, ranks.draft if last else 0),
        "encoder": profile_run.encoder(now),
        "activation": profile_run.activation(now, last_stage=last),
        "graphs": overheads.graphs(now),
    }
    found = _spread_over_terms(now, found)
    if learned is None:
        return found
    return taught(now, found, learned)


def _spread_over_terms(now: Situation, found: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The terms with their spreads. How much real starts vary was measured as one figure for all terms together; here some of it goes to
    each term and the rest to the peak.

    A spread that a term has itself (weights of an architecture that rules filled in) is added.
    """
    whole = found["activation"].spread
    own = {
        "weights": WEIGHTS_STRAY * found["weights"].bytes,
        "context": CONTEXT_STRAYS * found["context"].bytes,
        "graphs": GRAPHS_STRAY * found["graphs"].bytes if overheads.graphs_counted(now) else 0.0,
    }
    shares = {name: min(share, whole / 3) for name, share in own.items()}
    rest = whole - sum(shares.values())
    spreads = {name: found[name].spread + share for name, share in shares.items()} | {"activation": rest}
    return {
        name: replace(estimate, spread=spreads.get(name, estimate.spread)) for name, estimate in found.items()
    }


def _taken(now: Situation, estimates: Mapping[str, Estimate]) -> list[Estimate]:
    """Terms that come out of the budget before the cache does. Graphs do so only in versions that count them."""
    return [
        estimate
        for name, estimate in estimates.items()
        if name != "graphs" or overheads.graphs_counted(now) or now.settings.kv_cache_bytes is not None
    ]


def _pool(now: Situation, budget: int, estimates: Mapping[str, Estimate]) -> Interval:
    """Bytes left for the cache on one stage, which may be negative. The spreads add up, as all terms may be off to the same side."""
    if now.settings.kv_cache_bytes is not None:
        return Interval.exact(now.settings.kv_cache_bytes)
    taken = _taken(now, estimates)
    left = budget - sum(estimate.bytes for estimate in taken)
    spread = sum(estimate.spread for estimate in taken)
    # Of many ranks another than the mean one binds: logs show up to half a percent less than its own figure.
    uneven = UNEVEN_RANKS * max(0.0, left) if now.layout.gpus > 1 else 0.0
    return Interval(left - spread - uneven, left, left + spread)


def _low(pool: Interval) -> float:
    return pool.low


def _mid(pool: Interval) -> float:
    return pool.mid


def _high(pool: Interval) -> float:
    return pool.high


def _worth(plan: CachePlan, pools: Sequence[Interval], stage: int) -> float:
    """How many blocks the memory that is left on a stage holds."""
    return pools[stage].mid / max(plan.block_bytes[stage], 1)


def _capacity(plan: CachePlan, blocks: Interval, longest: int, workload: int) -> Capacity:
    def each(of: Callable[[int], float]) -> Interval:
        return Interval(of(int(blocks.low)), of(int(blocks.mid)), of(int(blocks.high)))

    return Capacity(
        blocks=blocks,
        block_size=plan.block_tokens,
        tokens=each(lambda count: plan.tokens_line(count, longest)),
        concurrency_at_max_len=each(lambda count: float(plan.concurrency(count, longest))),
        concurrency_at_workload=each(lambda count: float(plan.concurrency(count, workload))),
        bytes_per_token=plan.bytes_per_token,
    )


def _terms(
    now: Situation, estimates: Mapping[str, Estimate], pool: Interval, plan: CachePlan, budget: int
) -> tuple[Term, ...]:
    terms = [
        Term(
            name=name,
            bytes=Interval.around(estimate.bytes, estimate.spread).clamped(0),
            formula=estimate.formula,
            inputs=estimate.inputs,
            certainty=estimate.certainty,
        )
        for name, estimate in estimates.items()
    ]
    fixed = now.settings.kv_cache_bytes is not None
    terms.append(
        Term(
            name="kv",
            bytes=pool.clamped(0),
            formula="as set" if fixed else "budget - all terms within it",
            inputs={"groups": str(len(plan.groups)), "block": f"{max(plan.block_bytes, default=0)} B"},
            certainty=Certainty.EXACT if fixed else Certainty.CALIBRATED,
        )
    )
    taken = sum(estimate.bytes for estimate in estimates.values())
    terms.append(
        Term(
            name="headroom",
            bytes=Interval.exact(max(0.0, now.device_bytes - taken - max(0.0, pool.mid))),
            formula="device - all of the above",
            inputs={"device": gib_text(now.device_bytes), "budget": gib_text(budget)},
            certainty=Certainty.EXACT,
        )
    )
    return tuple(terms)
