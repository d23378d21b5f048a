"""How steps and prompts share a device when a fixed number of requests is always in flight.

Chunked prefill puts prompts into the steps of the requests that decode, so each next token waits for the prompts in its step, and a
prompt waits for the step that is under way, for prompts before it, and for room in the cache. Each of these waits has a formula; the
numbers below weigh them.
"""

from __future__ import annotations

from dataclasses import dataclass

START_SHARE = 0.15
"""Share of requests in a closed loop that arrive in the first volley, when all start at once (runs last some ten rounds)."""
STEPS_WAITED = 1.5
"""Decode steps before a first token: half of the one that is under way, and the one that the prompt itself runs in."""
BUSIEST = 0.9
"""The most that the share of time spent on prompts counts. Above it the queue's formula goes to infinity, which no closed loop does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """The requests that are always in flight, as far as they share steps."""

    output_tokens: int
    """Tokens of each answer."""
    running: float
    """Sequences that decode together."""
    arriving: float
    """Requests that start together when the loop does, including those that find no room in the cache."""
    prompt_steps: float
    """How many steps one prompt fills with its tokens; less than one where several prompts fit in a step."""

    @property
    def prompts_each_step(self) -> float:
        """Prompts for each decode step: every sequence that ends makes room for one."""
        return self.running / self.output_tokens

    @property
    def launches_each_step(self) -> float:
        """Steps with prompt tokens for each decode step. Prompts that come in the same step share one."""
        each = self.prompts_each_step
        return max(each * self.prompt_steps, min(1.0, each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How often each time counts: TPOT = decode + tpot_prompts x prompt + tpot_launches x launch; TTFT likewise, with steps, and with what
    happens outside the device added."""

    tpot_prompts: float
    tpot_launches: float
    ttft_prompts: float
    ttft_launches: float
    ttft_steps: float


def shares(loop: ClosedLoop, *, decode: float, prompt: float, launch: float) -> Shares:
    """The shares in a loop. `decode` is the seconds of one step, `prompt` of one prompt's tokens, `launch` of what a step costs more for
    having prompt tokens in it."""
    prompts, launches = loop.prompts_each_step, loop.launches_each_step
    computing = prompts * prompt + launches * launch
    busy = min(BUSIEST, computing / (decode + computing))
    queue = busy / (2 * (1 - busy))
    later = (1 - START_SHARE) * (1 + queue)
    # In the first volley the last prompt waits for all others, and the first one for those that fit in its step. As prompts arrive one
    # after another, most of them find a step under way and go with the next.
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
    """How long a request waits for a place, in lifetimes of a sequence: with more requests than places, each place serves them in turn."""
    return max(0.0, concurrency / max(1.0, running) - 1)
