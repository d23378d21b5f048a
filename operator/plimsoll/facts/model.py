"""Everything known about one model at one revision: its architecture, its bytes, and where each came from.

This is the value a plan takes as input; resolvers (`catalogue`, `resolve`) make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from plimsoll.facts.architecture import Architecture


class Certainty(StrEnum):
    """How a figure is known; a ledger term carries the weakest one among its inputs."""

    EXACT = "exact"
    CALIBRATED = "calibrated"
    LEARNED = "learned"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Checkpoint bytes by the way tensor parallelism treats them; the sum is what is read from storage."""

    embedding: int
    lm_head: int
    """0 where the head is tied to the embedding."""
    attention_sharded: int
    """q, k, v, o and mixer projections that are cut over ranks (all layers together, as are all figures below)."""
    attention_replicated: int
    """Latent down projections, indexers, what every rank holds whole."""
    ffn: int
    """Dense feed-forward parts and shared experts."""
    experts: int
    """Routed experts."""
    router_and_norms: int
    vision: int = 0
    mtp: int = 0
    certainty: Certainty = Certainty.ASSUMED

    @property
    def total(self) -> int:
        return (
            self.embedding
            + self.lm_head
            + self.attention_sharded
            + self.attention_replicated
            + self.ffn
            + self.experts
            + self.router_and_norms
            + self.vision
            + self.mtp
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    source: str
    """Where the user said the model is, e.g. hf://Qwen/Qwen3-32B; the display name is derived from it."""
    revision: str | None
    architecture: Architecture
    weights: WeightBytes
    origin: str
    """Which resolver answered: catalogue, inline, folder, hub, facts-pod; with its note where the match was by variant."""
    digest: str
    """Changes when anything a plan reads from these facts changes."""
