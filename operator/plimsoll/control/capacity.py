"""What a plan says that one replica can carry, in the words of the control law."""

from __future__ import annotations

from typing import Final

from plimsoll.control.situation import Capacity
from plimsoll.planning.plan import PlanSet

SURE: Final = 0.95
"""Share of the predicted rate that is counted on: half of all predictions are off by more than the rest of it."""
NEAR: Final = 0.8
"""A plan of an older release has a prediction for its declared load alone. It is taken for one at the limits from this share of them on."""


def capacity_of(chosen: PlanSet) -> Capacity:
    """Of one replica of a planned set; predictions that were not possible stay None.

    Each data-parallel rank is an engine with the settings and a pool of its own, and what control hears of a replica are sums over all of them.
    """
    performance, pool, layout = chosen.performance, chosen.ledger.capacity, chosen.layout
    return Capacity(
        kv_tokens=0 if pool is None else int(pool.blocks.mid * pool.block_size * layout.data),
        max_num_seqs=chosen.settings.max_num_seqs * layout.data,
        concurrency=chosen.max_concurrency
        if performance is not None and chosen.max_concurrency > 0
        else None,
        requests_per_second=_most(chosen),
        input_tokens=chosen.load.input_tokens,
        output_tokens=chosen.load.output_tokens,
        cached_share=chosen.load.shared_prefix_share if chosen.settings.prefix_caching else 0.0,
        # Each stage of a pipeline has a step of its own under way.
        # With speculative decoding the counters no longer tell how many tokens there were in a step.
        max_batched_tokens=None
        if chosen.settings.speculation is not None
        else (chosen.settings.max_num_batched_tokens * layout.data * layout.pipeline) or None,
    )


def _most(chosen: PlanSet) -> float | None:
    """Requests a second of a replica with as many in flight as its limits allow. A prediction for the declared load says nothing of that
    where the declared load is far less."""
    if chosen.most_per_second is not None:
        return SURE * chosen.most_per_second
    if chosen.performance is None or chosen.load.concurrency < NEAR * chosen.max_concurrency:
        return None
    return chosen.performance.requests_per_second
