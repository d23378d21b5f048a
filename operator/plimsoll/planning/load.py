"""What is asked of a replica and what it is predicted to answer. The formulas are `performance`."""

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
    """False where a request is answered at once, which counts as one output token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a ramp has taught about a prediction: by what factors it is moved, and within what factors the truth then lies."""

    ttft: float
    tpot: float
    ttft_spread: float
    tpot_spread: float
    taught_by: str
    """Loads and lengths of that ramp, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    ttft_ms: Interval
    tpot_ms: Interval
    output_tokens_per_second: float
    """Of one replica, all its GPUs together."""
    requests_per_second: float
    bound: str
    """What limits a decode step: memory, compute, communication, overhead, or cache where the pool caps the batch."""
    running: int
    """Sequences that really decode together; fewer than the concurrency where the cache or max_num_seqs caps them."""
    unfitted: tuple[str, ...] = ()
    """Classes of hardware or format that no measured point had, so that the intervals are wider: "gpu cdna3", ..."""
    learned: Correction | None = None
    """None where no ramp has taught anything about this model on this layout."""
