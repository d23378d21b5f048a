"""How long one iteration of an engine takes, in the planner's own terms, and what the engine's settings allow in it.

The planner's amounts of work are linear in cached tokens and nearly so in prompt tokens, so they come down to a few constants
and one table over the number of sequences that decode (a mixture of experts reads more weights the more sequences there are).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.task import Task
from plimsoll.planning.memory.kv_rules import cache_plan
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.speed.performance import Replica
from plimsoll.planning.speed.rates import Rates, committed_rates
from plimsoll.planning.speed.roofline import TimeCost, decode_step, prompt
from plimsoll.simulate.tables import Tables

BELIEF_IS_OFF: Final = 0.2
"""How far the world's constants may be from the planner's, either way."""
POOL_IS_OFF: Final = 0.05
"""The same of the pool: step times are a belief that stays one, but an engine tells its pool when it starts, and the law goes by what it
tells. What is drawn is how far the ledger of memory, by which the plan was made, may be from that."""
AHEAD: Final = "--async-scheduling"
"""Without it a step is chosen once the one before it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Seconds. A step takes decode[n] + kv_token x cached tokens read + what its prompt chunks take."""

    decode: tuple[float, ...]
    """By the number of sequences that decode in the step; the first is 0."""
    kv_token: float
    chunk: float
    """Of each prompt chunk in a step, whatever its length."""
    prompt_token: float
    seen_token: float
    """For each prompt token, and each token before it."""
    request: float = 0.0
    """For each request, outside the device and before its first token; no other request waits for it."""
    request_token: float = 0.0
    """The same for each of its prompt tokens."""
    request_beside: float = 0.0
    """The same for each request that runs beside it."""
    stages: int = 1
    """Of the pipeline. A prompt passes through all of them, and delays the others by one stage only."""

    def prompt(self, tokens: int, before: int = 0, *, chunks: int = 1) -> float:
        """What so many tokens of a prompt add to steps, after those before them."""
        return chunks * self.chunk + tokens * (self.prompt_token + self.seen_token * (before + tokens / 2))

    def outside(self, tokens: int, cached: int, *, beside: int) -> float:
        """Seconds of a request before its first token in which no other waits, where so many tokens of its prompt were in the cache."""
        found = self.request + self.request_token * tokens + self.request_beside * beside
        if self.stages == 1:
            return found
        return found + (self.stages - 1) * self.prompt(tokens - cached, cached)

    def scaled(self, *, steps: float, cache: float, prompts: float, beside: float) -> StepTimes:
        """Each kind of time by a factor of its own."""
        return replace(
            self,
            decode=tuple(one * steps for one in self.decode),
            kv_token=self.kv_token * cache,
            chunk=self.chunk * prompts,
            prompt_token=self.prompt_token * prompts,
            seen_token=self.seen_token * prompts,
            request=self.request * beside,
            request_token=self.request_token * beside,
            request_beside=self.request_beside * beside,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine was started with."""

    blocks: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    watermark_blocks: int = 0
    """Kept free when a request is admitted; running ones may use them."""
    max_queued: int | None = None
    """Waiting requests beyond which a new one is refused."""
    prefix_caching: bool = True
    steps_ahead: bool = False
    """Each step is chosen while the one before it runs, so a request that comes meanwhile waits for both."""
    mixed: Tables | None = None
    """What a request holds of the pool, where that is not one table of such blocks."""

    @property
    def kv_tokens(self) -> int:
        """As the engine tells it; where layers mix, a request of so many tokens holds more than the pool."""
        return self.blocks * self.block_size

    @property
    def tables(self) -> Tables:
        return self.mixed or Tables((self.block_size,))

    def blocks_for(self, tokens: int) -> int:
        """Blocks that a request holds at such a length."""
        return self.tables.held(tokens, tokens)


def step_times(
    replica: Replica, *, prompt_tokens: int, context: float, rates: Rates | None = None
) -> StepTimes:
    """The planner's belief about a replica, with slopes taken at the lengths that it will mostly see.

    Without `rates`, those that come with the product are used.
    """
    rates = rates or committed_rates(replica.classes)
    work = replica.work
    most = replica.settings.max_num_seqs * work.layout.data

    def step(running: float, held: float) -> float:
        return rates.of(decode_step(work, running, held))

    def prefill(tokens: float, before: float) -> float:
        return rates.of(prompt(work, tokens, before))

    typical, stages = float(max(1, prompt_tokens)), work.layout.pipeline
    chunk = prefill(0.0, 0.0)
    seen = (prefill(typical, typical) - prefill(typical, 0.0)) / typical**2
    return StepTimes(
        decode=(0.0, *(step(running, 0.0) for running in range(1, most + 1))),
        kv_token=max(0.0, step(1.0, context) - step(1.0, 0.0)) / context,
        chunk=chunk / stages,
        prompt_token=max(0.0, prefill(typical, 0.0) - chunk - seen * typical**2 / 2) / typical / stages,
        seen_token=seen / stages,
        request=rates.of({TimeCost.REQUEST: 1.0}),
        request_token=rates.of({TimeCost.REQUEST_TOKEN: 1.0}),
        request_beside=rates.of({TimeCost.REQUEST_BESIDE: 1.0}),
        stages=stages,
    )


def limits_of(
    chosen: PlanSet, *, model: ModelFacts, gpu: Gpu, engine: EngineFacts, steps_ahead: bool
) -> Limits:
    """What a set's ledger and settings come to; a replica of several data-parallel ranks is one pool here."""
    capacity, settings, ranks = chosen.ledger.capacity, chosen.settings, chosen.layout.data
    if capacity is None:
        raise ValueError(f"{chosen.layout} on {chosen.hardware} leaves no cache, so no request could run")
    blocks = max(1, round(capacity.blocks.mid))
    plan = cache_plan(model.architecture, gpu=gpu, layout=chosen.layout, engine=engine, settings=settings)
    tables = Tables.of(plan)
    limits = Limits(
        blocks=blocks * ranks,
        block_size=capacity.block_size,
        max_num_seqs=settings.max_num_seqs * ranks,
        # Each stage of a pipeline has a step of its own under way.
        max_num_batched_tokens=max(settings.max_num_batched_tokens, settings.max_num_seqs)
        * ranks
        * chosen.layout.pipeline,
        max_model_len=settings.max_model_len,
        watermark_blocks=blocks * ranks * settings.watermark_permille // 1000,
        max_queued=settings.max_queued_requests,
        prefix_caching=settings.prefix_caching and bool(tables.growing),
        steps_ahead=steps_ahead,
        mixed=None if tables.only == capacity.block_size else tables,
    )
    longest = bisect_right(range(limits.max_model_len + 1), blocks, key=limits.blocks_for) - 1
    return replace(limits, max_model_len=longest)


def steps_ahead(task: Task, gpu: Gpu) -> bool:
    """Whether an engine on such devices chooses each step while the one before it runs."""
    # On CPUs nothing runs beside the engine's own process.
    if gpu.vendor is Vendor.CPU or not task.engine.steps_ahead:
        return False
    words = [word for word in task.intent.spec.engine.extra_args if word.startswith("--")]
    matches = [match for word in words if (match := task.engine.flags.find(word)) is not None]
    # In any spelling that the engine takes; the last one counts.
    return next((not match.negated for match in reversed(matches) if match.flag.name == AHEAD), True)


def believed(
    chosen: PlanSet, *, model: ModelFacts, gpu: Gpu, engine: EngineFacts, limits: Limits
) -> StepTimes:
    """Step times of one set of a plan as the planner predicts them. What a ramp has taught corrects them: prompts by its first tokens, and
    all other times of a step by its further tokens."""
    replica = Replica.of(
        model=model,
        gpu=gpu,
        layout=chosen.layout,
        engine=engine,
        settings=chosen.settings,
        kv_tokens=float(limits.kv_tokens),
    )
    load = chosen.load
    times = step_times(
        replica,
        prompt_tokens=load.input_tokens,
        context=load.input_tokens + load.output_tokens / 2,
    )
    taught = None if chosen.performance is None else chosen.performance.learned
    if taught is None:
        return times
    return times.scaled(steps=taught.tpot, cache=taught.tpot, prompts=taught.ttft, beside=taught.ttft)


def drawn(times: StepTimes, limits: Limits, random: Random) -> tuple[StepTimes, Limits]:
    """A world that differs from the planner's belief: each kind of time, and the pool, by a factor of its own."""

    def factor(most: float) -> float:
        return random.uniform(1 - most, 1 + most)

    steps, cache, prompts, beside = (factor(BELIEF_IS_OFF) for _ in range(4))
    world = times.scaled(steps=steps, cache=cache, prompts=prompts, beside=beside)
    longest = limits.blocks_for(limits.max_model_len)
    blocks = max(longest, round(limits.blocks * factor(POOL_IS_OFF)))
    kept = limits.watermark_blocks * blocks // limits.blocks
    return world, replace(limits, blocks=blocks, watermark_blocks=kept)
