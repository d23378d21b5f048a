"""How steps and prompts share a device when a fixed number of requests is always in flight.

Chunked prefill puts prompts into the steps of those who decode, so everybody's next token waits for every prompt, and a
prompt waits for the step that is under way, for prompts before it, and for room in the cache. Each wait is a formula with
its mechanism; their weights are the few numbers below.
"""

from __future__ import annotations

from dataclasses import dataclass

START_SHARE = 0.15
"""Share of requests in a closed loop that arrive in the first volley, when all start at once (runs last some ten rounds)."""
STEPS_WAITED = 1.5
"""Decode steps before a first token: half of the one under way, and the one the prompt itself runs in."""
BUSIEST = 0.9
"""Share of the time in prompts above which the queue's formula would run away; a closed loop never lets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    output_tokens: int
    running: float
    """Sequences that decode together."""
    prompts_per_step: int
    """Prompts that fit the token budget of one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How often each time counts: TPOT = decode + tpot_prompts x prompt; TTFT likewise, plus what happens off the device."""

    tpot_prompts: float
    ttft_prompts: float
    ttft_steps: float


def shares(demand: Demand, *, decode: float, prompt: float) -> Shares:
    """`decode` and `prompt` are the seconds of one step and of one prompt alone."""
    running, output = demand.running, demand.output_tokens
    busy = min(BUSIEST, running * prompt / (output * decode + running * prompt))
    volley = running if running <= demand.prompts_per_step else (running + demand.prompts_per_step) / 2
    queue = busy / (2 * (1 - busy))
    return Shares(
        tpot_prompts=running / output,
        ttft_prompts=START_SHARE * volley + (1 - START_SHARE) * (1 + queue),
        ttft_steps=STEPS_WAITED,
    )


def cache_wait(concurrency: int, running: float) -> float:
    """Lifetimes of a sequence that a request waits before it finds a place: a loop's throughput is that of the places."""
    return max(0.0, concurrency / max(1.0, running) - 1)
