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
class ClosedLoop:
    output_tokens: int
    running: float
    """Sequences that decode together."""
    arriving: float
    """Requests that start together when the loop does, those that find no place in the cache among them."""
    prompt_steps: float
    """Steps whose token budget one prompt fills; a part of one where several fit."""

    @property
    def prompts_each_step(self) -> float:
        return self.running / self.output_tokens

    @property
    def launches_each_step(self) -> float:
        """Prompts that come with the same step share it."""
        each = self.prompts_each_step
        return max(each * self.prompt_steps, min(1.0, each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How often each time counts: TPOT = decode + tpot_prompts x prompt + tpot_launches x launch; TTFT likewise, plus what
    happens off the device."""

    tpot_prompts: float
    tpot_launches: float
    ttft_prompts: float
    ttft_launches: float
    ttft_steps: float


def shares(loop: ClosedLoop, *, decode: float, prompt: float, launch: float) -> Shares:
    """`decode` and `prompt` are the seconds of one step and of one prompt's tokens, `launch` of what a step with prompts adds."""
    prompts, launches = loop.prompts_each_step, loop.launches_each_step
    computing = prompts * prompt + launches * launch
    busy = min(BUSIEST, computing / (decode + computing))
    queue = busy / (2 * (1 - busy))
    later = (1 - START_SHARE) * (1 + queue)
    # Of the first volley the last waits for all, the first for those that fit the same step. As they come one after
    # another, most find a step under way and are launched with the next.
    fitting = min(loop.arriving, max(1.0, 1 / loop.prompt_steps))
    own = max(1.0, loop.prompt_steps)
    return Shares(
        tpot_prompts=prompts,
        tpot_launches=launches,
        ttft_prompts=START_SHARE * (loop.arriving + fitting) / 2 + later,
        ttft_launches=own * (START_SHARE * (loop.arriving + 1) / 2 + later),
        ttft_steps=STEPS_WAITED,
    )


def cache_wait(concurrency: int, running: float) -> float:
    """Lifetimes of a sequence that a request waits before it finds a place: a loop's throughput is that of the places."""
    return max(0.0, concurrency / max(1.0, running) - 1)
