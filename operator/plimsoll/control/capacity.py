"""What a plan says that one replica can carry, in the words of the control law."""

from __future__ import annotations

from typing import Final

from plimsoll.control.situation import Capacity
from plimsoll.planning.plan import PlanSet

SURE: Final = 0.95
"""Of what is predicted: half of all predictions are off by more than the rest."""
NEAR: Final = 0.8
"""Of what a replica carries at most, from which on a prediction for less, in a plan of the release before, is one for that."""


def capacity_of(chosen: PlanSet) -> Capacity:
    """Of one replica of a planned set; predictions that were not possible stay None."""
    performance, pool = chosen.performance, chosen.ledger.capacity
    return Capacity(
        kv_tokens=0 if pool is None else int(pool.blocks.mid * pool.block_size),
        max_num_seqs=chosen.settings.max_num_seqs,
        concurrency=chosen.max_concurrency
        if performance is not None and chosen.max_concurrency > 0
        else None,
        requests_per_second=_most(chosen),
        input_tokens=chosen.load.input_tokens,
        output_tokens=chosen.load.output_tokens,
        # Of guessed tokens, counters of gaps and of steps say no more how many there were in a step.
        max_batched_tokens=None
        if chosen.settings.speculation is not None
        else (chosen.settings.max_num_batched_tokens * chosen.layout.data) or None,
    )


def _most(chosen: PlanSet) -> float | None:
    """With as many in flight as the limits allow. What was declared may be far less, and says nothing of what a replica carries."""
    if chosen.most_per_second is not None:
        return SURE * chosen.most_per_second
    if chosen.performance is None or chosen.load.concurrency < NEAR * chosen.max_concurrency:
        return None
    return chosen.performance.requests_per_second
