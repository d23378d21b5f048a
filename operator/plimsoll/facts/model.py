"""Everything that is known about one model at one revision: its architecture, its bytes, and where they are from.

A plan takes this value as an input; `models`, `resolve` and `model_told` make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from plimsoll.facts.architecture import Architecture


class Certainty(StrEnum):
    """How well a figure is known. A term of the ledger is as certain as its least certain input."""

    EXACT = "exact"
    CALIBRATED = "calibrated"
    LEARNED = "learned"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Bytes of weights as the engine loads them, by how tensor parallelism treats them. Padding and copies are added by the ledger."""

    embedding: int
    lm_head: int
    """0 where the head is tied to the embedding."""
    attention_sharded: int
    """q, k, v, o and other projections of mixers that are cut over ranks. This and all figures below are of all layers together."""
    attention_replicated: int
    """What every rank holds whole: down projections of latents, indexers."""
    ffn: int
    """Dense feed-forward parts and shared experts."""
    experts: int
    """Routed experts."""
    router_and_norms: int
    vision: int = 0
    mtp: int = 0
    """Draft layers: they are on storage, but loaded only where speculative decoding uses them."""
    stored: int | None = None
    """Bytes on storage, where they differ from those above: a checkpoint in full precision is loaded at half its size."""
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
    """What is known of one model."""

    source: str
    """Where the user said the model is, e.g. hf://Qwen/Qwen3-32B; the display name is derived from it."""
    revision: str | None
    architecture: Architecture
    weights: WeightBytes
    origin: str
    """Which resolver had the facts: catalogue, inline, folder, hub, facts pod; with a note where only a variant of the name matched."""
    digest: str
    """Changes when anything changes that memory or speed depend on."""

    def __hash__(self) -> int:
        return hash(self.digest)
