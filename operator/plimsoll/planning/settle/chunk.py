"""How many tokens a step may hold. A prompt is computed in parts, and all requests that are being answered wait for each part.

A full step beside the requests that are planned to run must end within the ITL target, by the planner's own step times. Otherwise
the target is missed however few requests a replica has, and no number of replicas could keep it.
"""

from __future__ import annotations

from functools import cache
from math import ceil, inf
from typing import Final

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import as_set, explained
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import Origin, Value
from plimsoll.planning.speed.rates import Rates, classes_of, committed_rates
from plimsoll.planning.speed.roofline import Work, decode_step, launch, prompt

NAME: Final = "max_num_batched_tokens"
FIELD: Final = "engine.maxBatchedTokens"
LEAST_BATCHED: Final = 512
"""Tokens for which a large GPU computes about as long as it reads its weights: smaller steps would take as long for fewer tokens."""
TIGHT_LEAST: Final = 128
"""The least tokens of a step where otherwise every full step would miss the target."""
GAIN_LEAST: Final = 0.1
"""Share by which halving the tokens must then shorten a step. Where most of its time goes to reading weights, halving only costs speed."""
STEP_SHARE: Final = 0.85
"""Share of the ITL target that a step full of prompt tokens may last, as predictions of a step are off by about a tenth."""


def step_tokens(
    task: Task, gpu: Gpu, layout: Layout, dtype: Dtype | None, *, sequences: int, default: int
) -> tuple[int, Value]:
    """The tokens of a step, and the reason for them; `sequences` and `default` are what the engine takes when it is told neither."""
    intent, asked, start = task.intent, task.intent.spec.engine.max_batched_tokens, "engine default"
    if asked is not None:
        if intent.binds(FIELD):
            return asked, as_set(intent, NAME, FIELD, str(asked))
        default, start = asked, intent.source_of(FIELD)[1]
    if task.model.architecture.encoder and default < task.context.tokens:
        return task.context.tokens, explained(
            NAME,
            str(task.context.tokens),
            "the longest request: a model that looks both ways computes each whole, and the engine refuses to start with less",
            inputs={start: str(default), "max_model_len": str(task.context.tokens)},
            origin=Origin.DERIVED,
            source="max_model_len",
            changes=f"workload.contextTokens or {FIELD}",
            field=FIELD,
        )
    if intent.itl_ms is None:
        return default, explained(
            NAME,
            str(default),
            f"the {start}",
            inputs={start: str(default)},
            origin=Origin.ENGINE if asked is None else Origin.PRESET,
            source=f"{task.engine.name} {task.engine.version}" if asked is None else start,
            changes=f"slo.itlP99Ms or {FIELD}",
            field=FIELD,
        )
    return _within_target(
        task, gpu, layout, dtype, sequences=sequences, default=default, start=start, itl_ms=intent.itl_ms
    )


def _within_target(
    task: Task,
    gpu: Gpu,
    layout: Layout,
    dtype: Dtype | None,
    *,
    sequences: int,
    default: int,
    start: str,
    itl_ms: int,
) -> tuple[int, Value]:
    """The default, halved until a full step ends within the ITL target. `start` says in words where the default is from."""
    intent = task.intent
    work = Work.of(task.model.architecture, gpu, layout, dtype)
    rates = committed_rates(classes_of(work, task.engine))
    running = _running_within(intent, work, rates, sequences * layout.data)
    decode = _decode_ms(intent, work, rates, running)
    answered = ceil(running / layout.data)  # on each data rank, as each has steps of its own
    longest = intent.lengths.input_long or intent.lengths.input_typical

    @cache
    def step_ms(tokens: int) -> float:
        return decode + _prompt_ms(intent, work, rates, tokens)

    def first_token_in_time(tokens: int) -> bool:
        """Whether the longest prompt, in steps of so many tokens, still has its first token in time."""
        room = max(1, tokens - answered)  # requests that are being answered take one token of each step
        return intent.ttft_ms is None or ceil(longest / room) * step_ms(tokens) <= intent.ttft_ms

    chosen = default
    while chosen > LEAST_BATCHED and step_ms(chosen) > STEP_SHARE * itl_ms:
        if first_token_in_time(chosen) and not first_token_in_time(chosen // 2):
            break
        chosen //= 2
    # Steps as small as these cost speed, but a target that each full step misses could be kept by no number of replicas.
    while (
        step_ms(chosen) > itl_ms
        and chosen // 2 >= max(TIGHT_LEAST, intent.spec.engine.max_sequences or answered)
        and step_ms(chosen // 2) <= (1 - GAIN_LEAST) * step_ms(chosen)
        and (first_token_in_time(chosen // 2) or not first_token_in_time(chosen))
    ):
        chosen //= 2
    return chosen, explained(
        NAME,
        str(chosen),
        f"the {start}, halved while a step of that many prompt tokens, beside the requests that run, lasts longer than "
        f"{STEP_SHARE:.0%} of the ITL target and the longest prompt keeps its first token; less than {LEAST_BATCHED} only where a step would last longer than the whole target",
        inputs={
            start: str(default),
            "ms for the tokens of those running": f"{decode:,.1f} ({running:,})",
            "ms for the prompt tokens": f"{_prompt_ms(intent, work, rates, chosen):,.1f}",
            "slo.itlP99Ms": str(itl_ms),
        },
        origin=Origin.DERIVED,
        source="slo.itlP99Ms",
        changes=f"slo.itlP99Ms, the layout or {FIELD}",
        field=FIELD,
    )


def _running_within(intent: Intent, work: Work, rates: Rates, most: int) -> int:
    """Requests beside which a full step must end in time: as many as keep the ITL target in the mean, to a factor of two."""
    prompt_each = _prompt_ms(intent, work, rates, intent.lengths.input_typical) / max(
        1, intent.lengths.output_typical
    )
    running, target = most, intent.itl_ms or inf
    while running > 1 and _decode_ms(intent, work, rates, running) + running * prompt_each > target:
        running //= 2
    return running


def _decode_ms(intent: Intent, work: Work, rates: Rates, running: int) -> float:
    context = intent.lengths.input_typical + intent.lengths.output_typical / 2
    return 1000 * rates.of(decode_step(work, float(running), context))


def _prompt_ms(intent: Intent, work: Work, rates: Rates, tokens: int) -> float:
    """Milliseconds for so many tokens at the end of a typical prompt, which take longest as they look back at all before them."""
    before = max(0, intent.lengths.input_typical - tokens)
    seconds = rates.of(prompt(work, float(tokens), float(before))) + rates.of(launch(work))
    return 1000 * seconds / work.layout.pipeline
