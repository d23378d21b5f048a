"""By how much: steps sized from the pool, the requests that run, and the lengths they have, never from a table.

Live requests are the long ones more often than not, since they stay longer; with lengths taken as log-normal, what a live
request holds has a mean and a spread in closed form. A pool then holds as many as leave it room for that spread.

A watermark keeps blocks free for what running requests still grow before one of them ends. They grow by output/block
blocks in the mean time between two ends, and that time is about exponential, so a request is preempted with probability
exp(-free / growth). Measured on one engine (pool of 64 blocks, growth of 4, watermark of 0, 5, 10 and 20%): 144, 88, 48 and
17 preemptions, which is exp(-0.68 free / growth).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from plimsoll.control.latencies import Spread
from plimsoll.control.signals import Signals

NONE_PREEMPTED: Final = 2.5
"""Standard deviations of what all live requests hold, that a pool needs as spare room for none of them to be preempted."""
FEW_PREEMPTED: Final = 1.0
"""The same where a few preemptions may be left, since each request fewer that may run costs output. In five pools of the simulator's engine 1
left 0 to 9% of them, 0.5 up to 21%, and 2.5 none, with 5 to 14% less output; of a real one ten places were measured to leave 5%, twelve 46%."""
DECAY: Final = 0.68
MOST_SIGMA: Final = 1.5
MOST_WATERMARK: Final = 200
"""Thousandths of the blocks. What is kept free of new requests is not idle, as running ones grow into it."""
STEP_SHARE: Final = 0.9
"""Of the promised gap, that a step full of prompt tokens is aimed at: what is taken of it moves from step to step."""
P95: Final = 1.645


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What one running request holds of the pool, in tokens."""

    mean: float
    deviation: float
    output: float
    """Mean length of an answer."""


def live_of(signals: Signals) -> Live | None:
    """From the lengths that were seen; None where too few were."""
    prompt, output = signals.latencies.prompt, signals.latencies.output
    if prompt is None or output is None or not (prompt.trusted and output.trusted):
        return None
    prompts, outputs = prompt.mean or prompt.p50, output.mean or output.p50
    wide, long = _sigma(prompt), _sigma(output)
    # A request is seen running in proportion to its length, at a moment that is even over its life.
    mean = outputs * math.exp(long**2) / 2
    square = outputs**2 * math.exp(3 * long**2) / 3
    variance = max(0.0, square - mean**2) + prompts**2 * (math.exp(wide**2) - 1)
    live = Live(mean=prompts + mean, deviation=math.sqrt(variance), output=outputs)
    # Prefixes that requests share are held once: what the pool says of running requests is then the smaller figure.
    held = signals.held_each()
    if (signals.prefix_share or 0.0) > 0.05 and held:
        share = min(1.0, held / live.mean)
        live = Live(mean=live.mean * share, deviation=live.deviation * share, output=live.output)
    return live


def _sigma(spread: Spread) -> float:
    # Engines' buckets of lengths double and more: a p95 guessed within one was measured to be half as large again.
    if spread.sigma is not None:
        return min(MOST_SIGMA, spread.sigma)
    return min(MOST_SIGMA, math.log(max(1.0, spread.p95 / max(spread.p50, 1.0))) / P95)


def sequences(pool_tokens: float, block: int, live: Live, *, spreads: float) -> int:
    """Most requests that run without crowding each other out of the pool. The last block of each is half empty."""
    # n mean + spreads deviation sqrt(n) = pool, solved for sqrt(n).
    mean = live.mean + block / 2
    half = spreads * live.deviation / (2 * mean)
    return max(1, int((math.sqrt(half**2 + pool_tokens / mean) - half) ** 2))


def watermark(
    pool_tokens: float, block: int, live: Live, *, preempted: float, aim: float, now_permille: int
) -> int:
    """Thousandths of the blocks to keep free, for preemptions to fall from a share to another."""
    growth = live.output / block
    more = growth * math.log(max(1.0, preempted / aim)) / DECAY
    return now_permille + math.ceil(1000 * more * block / pool_tokens)


def preemptions_left(pool_tokens: float, block: int, live: Live, more_permille: int) -> float:
    """Share of the preemptions that so many more thousandths of the blocks kept free would leave."""
    growth = max(live.output / block, 1e-9)
    return math.exp(-DECAY * max(0, more_permille) / 1000 * pool_tokens / block / growth)


def step_tokens(full: float, quick_s: float, slow_s: float, limit_s: float) -> float | None:
    """Prompt tokens of a step that lasts as long as is promised, when one without any is quick and one with `full` is slow: time
    grows with the tokens, in a straight line. None where even the quick one is too slow."""
    left = STEP_SHARE * limit_s - quick_s
    if left <= 0:
        return None
    return full if slow_s - quick_s <= left else full * left / (slow_s - quick_s)


def longest_step(now: float, quick_s: float, slow_s: float, limit_s: float) -> float:
    """Tokens of a step that lasts as long as is promised, where one of `now` is the slow one."""
    if slow_s <= quick_s:
        return math.inf
    return now * max(0.0, STEP_SHARE * limit_s - quick_s) / (slow_s - quick_s)
