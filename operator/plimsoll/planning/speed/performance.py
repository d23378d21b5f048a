"""The predicted performance of a replica at a load: time to first token, time per output token and throughput, as intervals.

`roofline` has the amounts of work, `rates` what they cost, `closed_loop` how requests share the device. The intervals hold 90% of
measured points whose model and hardware were not among those that the constants were fitted on. Speculative decoding does not count
as faster, as what it gains depends on the text. What a ramp has taught moves the prediction and not the amounts of work.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.interval import Interval
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Correction, Load, Performance
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.speed.believing import Belief
from plimsoll.planning.speed.closed_loop import ClosedLoop, Shares, cache_wait, shares
from plimsoll.planning.speed.rates import Classes, Rates, classes_of, committed_rates
from plimsoll.planning.speed.roofline import Amounts, TimeCost, Work, decode_step, launch, prompt, request

POOL_SPREAD = 0.15
"""By what share the cache may hold more or fewer sequences than the ledger says: it has a spread, and lengths differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One model on one layout, with all that does not depend on the load worked out."""

    work: Work
    settings: EngineSettings
    classes: Classes
    kv_tokens: float | None
    """Tokens that the cache of one data rank holds; None where the model has no cache."""
    belief: Belief | None = None
    """What ramps have taught about its speed."""

    @staticmethod
    def of(
        *,
        model: ModelFacts,
        gpu: Gpu,
        layout: Layout,
        engine: EngineFacts,
        settings: EngineSettings,
        kv_tokens: float | None,
        belief: Belief | None = None,
    ) -> Replica:
        work = Work.of(model.architecture, gpu, layout, settings.kv_dtype)
        classes = classes_of(work, engine)
        return Replica(work=work, settings=settings, classes=classes, kv_tokens=kv_tokens, belief=belief)

    def at(self, load: Load) -> Performance:
        """The prediction for a load."""
        taught = None if self.belief is None else self.belief.at(load)
        return self.case(load).answer(committed_rates(self.classes), taught)

    def case(self, load: Load) -> Case:
        """The amounts of work of a load, and how many of its requests run."""
        share = load.shared_prefix_share if self.settings.prefix_caching else 0.0
        # The last token of a prompt is always computed, as the first output token follows from it.
        cached = max(0.0, min(load.input_tokens * share, load.input_tokens - 1))
        fresh = load.input_tokens - cached
        context = load.input_tokens + load.output_tokens / 2
        asked = float(min(load.concurrency, self.settings.max_num_seqs * self.work.layout.data))
        # A prefix that prompts share is in the cache once.
        held = self._held(context - cached, cached)
        carried = self._carried(fresh / load.output_tokens)
        placed = min(asked, carried)
        running = max(1.0, placed if held is None else min(placed, held))
        return Case(
            load=load,
            pipeline=self.work.layout.pipeline,
            classes=self.classes,
            decode=decode_step(self.work, running, context),
            prompt=prompt(self.work, fresh, cached),
            launch=launch(self.work),
            request=request(load.input_tokens, load.concurrency),
            loop=ClosedLoop(
                output_tokens=load.output_tokens,
                running=running,
                arriving=asked,
                prompt_steps=max(1.0, fresh) / self.settings.max_num_batched_tokens,
            ),
            waits=_waits(load.concurrency, placed, held),
            full_steps=carried < min(asked, asked if held is None else held),
        )

    def _carried(self, prompt_share: float) -> float:
        """Sequences that steps have room for. A step has a limit of tokens; each sequence that decodes takes one, and for each of these come
        `prompt_share` prompt tokens of the requests that follow. With more in flight, the rest wait for their prompts to be computed."""
        layout = self.work.layout
        return layout.data * layout.pipeline * self.settings.max_num_batched_tokens / (1 + prompt_share)

    def _held(self, live: float, shared: float) -> float | None:
        """Sequences that the caches of all data ranks hold, each with `live` tokens of its own and `shared` tokens that are held once."""
        if self.kv_tokens is None:
            return None
        return self.work.layout.data * max(0.0, self.kv_tokens - shared) / max(1.0, live)


def _waits(concurrency: int, asked: float, held: float | None) -> Interval:
    """How long a request waits for a place, in lifetimes of a sequence, if the cache holds more or fewer sequences than expected."""
    if held is None:
        return Interval(*(3 * [cache_wait(concurrency, asked)]))
    ends = (
        cache_wait(concurrency, min(asked, held * factor)) for factor in (1 + POOL_SPREAD, 1, 1 - POOL_SPREAD)
    )
    return Interval(*ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One load on one replica, as far as it can be worked out without fitted constants."""

    load: Load
    pipeline: int
    classes: Classes
    decode: Amounts
    prompt: Amounts
    launch: Amounts
    request: Amounts
    loop: ClosedLoop
    waits: Interval
    full_steps: bool
    """True where steps are full of prompt tokens before the cache or the batch is full."""

    @property
    def starved(self) -> bool:
        """True where some of the requests in flight find no room in the cache or in the batch."""
        return self.waits.mid > 0

    def shares(self, decode: float, prompt: float, launch: float) -> Shares:
        return shares(self.loop, decode=decode, prompt=prompt, launch=launch)

    def times(self, rates: Rates) -> tuple[float, float]:
        """TPOT, and TTFT of a request that finds room at once, in seconds."""
        decode, prompt, launch = (rates.of(part) for part in (self.decode, self.prompt, self.launch))
        share = self.shares(decode, prompt, launch)
        # Stages of a pipeline work on different prompts, so each delays the others by one stage only. Data ranks step together, so a
        # prompt on one delays all. (Counting them as independent was 2 percentage points worse on 32 measured points.)
        tpot = decode + (share.tpot_prompts * prompt + share.tpot_launches * launch) / self.pipeline
        ttft = share.ttft_prompts * prompt + share.ttft_launches * launch + share.ttft_steps * decode
        return tpot, ttft + rates.of(self.request)

    def answer(self, rates: Rates, taught: Correction | None = None) -> Performance:
        """The performance by these rates, moved by what ramps have taught."""
        tpot, placed = self.times(rates)
        ttft_spread, tpot_spread = rates.ttft_spread, rates.tpot_spread
        if taught is not None:
            tpot, placed = tpot * taught.tpot, placed * taught.ttft
            ttft_spread, tpot_spread = taught.ttft_spread, taught.tpot_spread
        life = self.load.output_tokens * tpot
        first = [placed + rounds * life for rounds in (self.waits.low, self.waits.mid, self.waits.high)]
        rate = self.load.concurrency / (first[1] + life)
        return Performance(
            ttft_ms=Interval(1000 * first[0] / ttft_spread, 1000 * first[1], 1000 * first[2] * ttft_spread),
            tpot_ms=_around(1000 * tpot, tpot_spread),
            output_tokens_per_second=rate * self.load.output_tokens,
            requests_per_second=rate,
            bound=self._bound(rates),
            running=max(1, round(self.loop.running)),
            unfitted=rates.unfitted,
            learned=taught,
        )

    def _bound(self, rates: Rates) -> str:
        """The largest part of a step's time, in the words of `Performance.bound`."""
        if self.starved and not self.full_steps:
            return "cache"
        parts = dict.fromkeys(sorted(set(_KIND.values())), 0.0)
        each_step = (
            (self.decode, 1.0),
            (self.prompt, self.loop.prompts_each_step),
            (self.launch, self.loop.launches_each_step),
        )
        for amounts, weight in each_step:
            for cost, amount in amounts.items():
                parts[_KIND[cost]] += weight * amount * rates.seconds_each[cost]
        return max(parts, key=lambda kind: parts[kind])


def _around(middle: float, factor: float) -> Interval:
    return Interval(middle / factor, middle, middle * factor)


_KIND = {
    TimeCost.DENSE_WEIGHTS: "memory",
    TimeCost.EXPERT_WEIGHTS: "memory",
    TimeCost.CACHE_READ: "memory",
    TimeCost.EXPERT_TILES: "compute",
    TimeCost.UNPACKING: "compute",
    TimeCost.DECODE_MATH: "compute",
    TimeCost.PROMPT_DENSE: "compute",
    TimeCost.PROMPT_EXPERTS: "compute",
    TimeCost.PROMPT_ATTENTION: "compute",
    TimeCost.ALL_REDUCE: "communication",
    TimeCost.ALL_REDUCE_BYTES: "communication",
    TimeCost.PROMPT_LINK: "communication",
    TimeCost.LAUNCH: "overhead",
    TimeCost.EXPERT_LAYER: "overhead",
    TimeCost.QUANTIZED_INPUT: "overhead",
    TimeCost.PROMPT_LAUNCH: "overhead",
    TimeCost.SEQUENCE: "overhead",
    TimeCost.SEQUENCE_LAYER: "overhead",
}
