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
    """Bytes as the engine loads them, by the way tensor parallelism treats them; padding and replicas are the ledger's."""

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
    """Draft layers: on storage, but loaded only where the engine speculates with them."""
    stored: int | None = None
    """Bytes on storage, where they differ: a checkpoint in full precision is loaded at half its size."""
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

    @property
    def on_storage(self) -> int:
        return self.total if self.stored is None else self.stored


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

    def __hash__(self) -> int:
        return hash(self.digest)
