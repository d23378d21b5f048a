"""All that is known of one deployment before any device is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.learned import Learned
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.context_length import ContextLength
from plimsoll.planning.ask.intent import ASSUMED_CONCURRENCY, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One deployment to be planned: what is asked of it, and the facts of its model and engine."""

    intent: Intent
    model: ModelFacts
    """As the model will be in memory: quantization while loading is applied already."""
    draft: ModelFacts | None
    engine: EngineFacts
    own_image: bool = False
    """Whether the image for NVIDIA GPUs is another one than the engine's project publishes, and may be built for other GPUs."""
    learned: Learned
    context: ContextLength

    @property
    def modest(self) -> int:
        """Requests in flight on a replica at which layouts are compared when no load is declared."""
        asked = self.intent.spec.engine.max_sequences
        return ASSUMED_CONCURRENCY if asked is None else min(ASSUMED_CONCURRENCY, asked)

    @property
    def sized_by_load(self) -> bool:
        """Whether a declared load decides the number of replicas."""
        intent = self.intent
        return intent.bounds.fixed is None and (intent.concurrency is not None or intent.rate is not None)
