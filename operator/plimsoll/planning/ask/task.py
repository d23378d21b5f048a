"""All that planning one deployment knows before it looks at a device."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.learned import Learned
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.context_length import ContextLength
from plimsoll.planning.ask.intent import ASSUMED_CONCURRENCY, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    intent: Intent
    model: ModelFacts
    """As it will be in memory: online quantization is already applied."""
    draft: ModelFacts | None
    engine: EngineFacts
    learned: Learned
    context: ContextLength

    @property
    def modest(self) -> int:
        """Requests in flight on a replica that layouts are compared at when no load is declared."""
        asked = self.intent.spec.engine.max_sequences
        return ASSUMED_CONCURRENCY if asked is None else min(ASSUMED_CONCURRENCY, asked)

    @property
    def sized_by_load(self) -> bool:
        """Whether a declared load decides the number of replicas."""
        intent = self.intent
        return intent.bounds.fixed is None and (intent.concurrency is not None or intent.rate is not None)
