"""What a replica answers at a load: time to first token, time per output token and throughput, with honest intervals.

Amounts of work from `roofline`, what they cost from `rates`, how requests share the device from `closed_loop`. The
intervals hold 90% of measured points whose model and hardware the constants had never seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.closed_loop import Demand, Shares, shares
from plimsoll.planning.interval import Interval
from plimsoll.planning.layout import Layout
from plimsoll.planning.load import Load, Performance
from plimsoll.planning.rates import Classes, Constants, classes_of, committed, rates_for, unfitted
from plimsoll.planning.roofline import Amounts, Cost, Work, decode_step, prompt, request
from plimsoll.planning.settings import EngineSettings


def predict(
    *,
    model: ModelFacts,
    gpu: Gpu,
    layout: Layout,
    engine: EngineFacts,
    settings: EngineSettings,
    load: Load,
    kv_tokens: float | None,
    constants: Constants | None = None,
) -> Performance:
    """`kv_tokens` is the pool of one data-parallel rank as the ledger counts it; None means it never binds."""
    constants = constants or committed()
    case = Case.of(
        model=model, gpu=gpu, layout=layout, engine=engine, settings=settings, load=load, kv_tokens=kv_tokens
    )
    return case.answer(constants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One load on one layout, as far as no fitted constant is needed."""

    load: Load
    pipeline: int
    classes: Classes
    decode: Amounts
    prompt: Amounts
    request: Amounts
    demand: Demand

    @staticmethod
    def of(
        *,
        model: ModelFacts,
        gpu: Gpu,
        layout: Layout,
        engine: EngineFacts,
        settings: EngineSettings,
        load: Load,
        kv_tokens: float | None,
    ) -> Case:
        work = Work.of(model.architecture, gpu, layout, settings.kv_dtype)
        cached = load.input_tokens * load.shared_prefix_share if settings.prefix_caching else 0.0
        fresh = max(1.0, load.input_tokens - cached)
        context = load.input_tokens + load.output_tokens / 2
        running = float(min(load.concurrency, settings.max_num_seqs * layout.data))
        if kv_tokens is not None:
            # Prompts that share a prefix hold it once.
            live = max(1.0, context - cached)
            running = max(1.0, min(running, layout.data * (kv_tokens - cached) / live))
        return Case(
            load=load,
            pipeline=layout.pipeline,
            classes=classes_of(work, engine),
            decode=decode_step(work, running, context),
            prompt=prompt(work, fresh, cached),
            request=request(load.input_tokens, load.concurrency),
            demand=Demand(
                concurrency=load.concurrency,
                output_tokens=load.output_tokens,
                running=running,
                prompts_per_step=max(1, int(settings.max_num_batched_tokens // fresh)),
            ),
        )

    def shares(self, decode: float, alone: float) -> Shares:
        # Stages of a pipeline work on different prompts, so each delays the others by one stage only.
        return shares(self.demand, decode=decode, prompt=alone)

    def times(self, constants: Constants) -> tuple[float, float]:
        """TPOT and TTFT in seconds."""
        rates = rates_for(constants, self.classes)
        decode, alone = rates.of(self.decode), rates.of(self.prompt)
        share = self.shares(decode, alone)
        tpot = decode + share.tpot_prompts * alone / self.pipeline
        ttft = share.ttft_prompts * alone + share.ttft_steps * decode + rates.of(self.request)
        return tpot, ttft + share.cache_wait_rounds * self.load.output_tokens * tpot

    def answer(self, constants: Constants) -> Performance:
        tpot, ttft = self.times(constants)
        cycle = ttft + self.load.output_tokens * tpot
        rate = self.load.concurrency / cycle
        unknown = unfitted(constants, self.classes)
        wider = constants.spread.unfitted_class ** len(unknown)
        return Performance(
            ttft_ms=_around(ttft * 1000, constants.spread.ttft * wider),
            tpot_ms=_around(tpot * 1000, constants.spread.tpot * wider),
            output_tokens_per_second=rate * self.load.output_tokens,
            requests_per_second=rate,
            bound=self.bound(constants),
            running=max(1, round(self.demand.running)),
        )

    def bound(self, constants: Constants) -> str:
        """The largest part of a step's time, in the words of `Performance.bound`."""
        if self.demand.running < self.load.concurrency:
            return "cache"
        rates = rates_for(constants, self.classes)
        share = self.demand.running / self.demand.output_tokens
        parts = dict.fromkeys(("communication", "compute", "memory", "overhead"), 0.0)
        for amounts, weight in ((self.decode, 1.0), (self.prompt, share)):
            for cost, amount in amounts.items():
                parts[_KIND[cost]] += weight * amount * rates.seconds_each[cost]
        return max(parts, key=lambda kind: parts[kind])


def _around(middle: float, factor: float) -> Interval:
    return Interval(middle / factor, middle, middle * factor)


_KIND = {
    Cost.DENSE_WEIGHTS: "memory",
    Cost.EXPERT_WEIGHTS: "memory",
    Cost.CACHE_READ: "memory",
    Cost.EXPERT_TILES: "compute",
    Cost.DECODE_MATH: "compute",
    Cost.PROMPT_DENSE: "compute",
    Cost.PROMPT_EXPERTS: "compute",
    Cost.PROMPT_ATTENTION: "compute",
    Cost.ALL_REDUCE: "communication",
    Cost.ALL_REDUCE_BYTES: "communication",
    Cost.PROMPT_LINK: "communication",
    Cost.UNPACKING: "compute",
    Cost.LAUNCH: "overhead",
    Cost.EXPERT_LAYER: "overhead",
    Cost.QUANTIZED_INPUT: "overhead",
    Cost.PROMPT_LAUNCH: "overhead",
    Cost.SEQUENCE: "overhead",
    Cost.SEQUENCE_LAYER: "overhead",
    Cost.REQUEST: "overhead",
    Cost.REQUEST_TOKEN: "overhead",
    Cost.REQUEST_BESIDE: "overhead",
}
