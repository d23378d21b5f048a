"""What one real start teaches: residuals of the ledger's terms, from what the engine reported about its memory.

The engine tells apart no more than its weights and what was left for the cache, so these two are compared: the residual of
the weights, and of everything that is neither weights nor cache, which is kept with the activations. A compile cache that was
cold makes the profile run's peak larger than it will ever be again: then only the weights teach. Figures that cannot be come
from a pod that lies or a log that was misread: they teach nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.learned import ONE_START, Residual, beyond_noise
from plimsoll.facts.learned_rows import LONGEST_WORD, LearnedKey
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.constants import MemoryConstants
from plimsoll.planning.memory.learned_key import learned_key, shape_key, whole_key
from plimsoll.planning.memory.ledger import Ledger, build_ledger
from plimsoll.planning.settings import EngineSettings

RESIDENT: Final = ("weights", "draft", "lora")
"""What the engine counts as loaded with its model."""
FURTHEST_WEIGHTS: Final = 2
"""Times more or less than predicted: what is further off is other weights than those of the model's facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start that reached its cache, as the engine reported it. None is not told."""

    model: ModelFacts
    gpu: Gpu
    layout: Layout
    engine: EngineFacts
    settings: EngineSettings
    device_bytes: int
    kv_bytes: int | None
    """Left for the cache on the rank that told."""
    weights_bytes: int | None
    cold: bool = False
    """Whether kernels were compiled during the start."""


def lessons(start: Start, constants: MemoryConstants | None = None) -> tuple[Residual, ...]:
    ledger = build_ledger(
        model=start.model,
        gpu=start.gpu,
        layout=start.layout,
        engine=start.engine,
        settings=start.settings,
        device_bytes=start.device_bytes,
        constants=constants,
    )
    if not _can_be(start, ledger):
        return ()
    situation = (start.model, start.gpu, start.layout, start.engine, start.settings)
    found: list[Residual] = []
    swollen = 0
    # Of a pipeline the first stage tells, and which one binds is another's matter.
    if start.weights_bytes is not None and start.layout.pipeline == 1:
        swollen = round(start.weights_bytes - _resident(ledger))
        ranks = start.model.weights.total / max(1.0, ledger.term("weights").bytes.mid)
        whole = beyond_noise(swollen) * ranks
        found += [
            _residual(learned_key(*situation), "weights", swollen, start),
            _residual(whole_key(start.model, start.gpu, start.engine), "weights", round(whole), start),
        ]
    if start.kv_bytes is not None and not start.cold and _is_profiled(start, ledger):
        rest = round(ledger.left.mid - start.kv_bytes) - swollen
        found += [
            _residual(learned_key(*situation), "activation", rest, start),
            _residual(shape_key(*situation), "activation", rest, start),
        ]
    return tuple(found)


def _resident(ledger: Ledger) -> float:
    return sum(ledger.term(name).bytes.mid for name in RESIDENT)


def _can_be(start: Start, ledger: Ledger) -> bool:
    """Whether the model could be this large, and the budget hold it with such a cache."""
    kv, weights = start.kv_bytes or 0, start.weights_bytes
    if weights is None or start.layout.pipeline > 1:
        return kv <= ledger.budget_bytes
    predicted = _resident(ledger)
    if not predicted / FURTHEST_WEIGHTS <= weights <= predicted * FURTHEST_WEIGHTS:
        return False
    return kv + weights <= ledger.budget_bytes


def _is_profiled(start: Start, ledger: Ledger) -> bool:
    """A pool of fixed size says nothing about what is beside it."""
    return start.settings.kv_cache_bytes is None and ledger.capacity is not None


def _residual(key: LearnedKey, term: str, size: int, start: Start) -> Residual:
    return Residual(
        key=key, term=term, bytes=size, half_width=ONE_START, starts=1, name=start.model.source[:LONGEST_WORD]
    )
