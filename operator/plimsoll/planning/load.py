"""The load on a replica and the performance predicted for it. The formulas are in `performance`."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.planning.interval import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A steady closed loop: `concurrency` requests in flight on one replica, each of these lengths."""

    input_tokens: int
    output_tokens: int
    concurrency: int
    shared_prefix_share: float = 0.0
    generates: bool = True
    """False where a request is answered at once (embeddings, scores), which counts as one output token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a ramp has taught about a prediction: the factors that it is multiplied by, and the factors within which the truth then lies."""

    ttft: float
    tpot: float
    ttft_spread: float
    tpot_spread: float
    taught_by: str
    """The loads and lengths of the ramp, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What one replica is predicted to answer at a load."""

    ttft_ms: Interval
    tpot_ms: Interval
    output_tokens_per_second: float
    """Of all GPUs of the replica together."""
    requests_per_second: float
    bound: str
    """What limits a decode step: memory, compute, communication, overhead, or cache where the pool caps the batch."""
    running: int
    """Sequences that decode together; fewer than the concurrency where the cache or max_num_seqs caps them."""
    unfitted: tuple[str, ...] = ()
    """Classes of hardware or format that were never measured ("gpu cdna3", ...); each makes the intervals wider."""
    learned: Correction | None = None
    """None where no ramp has taught anything about this model on this layout."""
