"""What one real start teaches: residuals of the ledger's terms, from what the engine reported about its memory.

The engine reports only two figures: its weights, and what was left for the cache. So there are two residuals: that of the weights, and
that of everything which is neither weights nor cache, which is kept with the activations. Where kernels were compiled during the start,
the peak of the profile run is larger than it will be again, so then only the weights teach. Figures that are impossible come from a pod
that lies or a log that was misread, and teach nothing.
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
"""Terms that the engine counts as weights of its model."""
FURTHEST_WEIGHTS: Final = 2
"""How many times more or less than predicted weights may be; otherwise they are not those that the model's facts are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start that got as far as its cache, as the engine reported it. None is not reported."""

    model: ModelFacts
    gpu: Gpu
    layout: Layout
    engine: EngineFacts
    settings: EngineSettings
    device_bytes: int
    kv_bytes: int | None
    """Bytes left for the cache on the rank that reported."""
    weights_bytes: int | None
    cold: bool = False
    """Whether kernels were compiled during the start."""


def lessons(start: Start, constants: MemoryConstants | None = None) -> tuple[Residual, ...]:
    """The residuals that a start shows; none where its figures are impossible."""
    ledger = build_ledger(
        model=start.model,
        gpu=start.gpu,
        layout=start.layout,
        engine=start.engine,
        settings=start.settings,
        device_bytes=start.device_bytes,
        constants=constants,
    )
    if not _is_possible(start, ledger):
        return ()
    situation = (start.model, start.gpu, start.layout, start.engine, start.settings)
    found: list[Residual] = []
    swollen = 0
    # In a pipeline the first stage reports, and the ledger may be of another one, so the two cannot be compared.
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


def _is_possible(start: Start, ledger: Ledger) -> bool:
    """Whether the model can be this large, and the budget can hold it together with such a cache."""
    kv, weights = start.kv_bytes or 0, start.weights_bytes
    if weights is None or start.layout.pipeline > 1:
        return kv <= ledger.budget_bytes
    predicted = _resident(ledger)
    if not predicted / FURTHEST_WEIGHTS <= weights <= predicted * FURTHEST_WEIGHTS:
        return False
    return kv + weights <= ledger.budget_bytes


def _is_profiled(start: Start, ledger: Ledger) -> bool:
    """Whether the size of the cache was found by profiling; a fixed one says nothing about the other terms."""
    return start.settings.kv_cache_bytes is None and ledger.capacity is not None


def _residual(key: LearnedKey, term: str, size: int, start: Start) -> Residual:
    return Residual(
        key=key, term=term, bytes=size, half_width=ONE_START, starts=1, name=start.model.source[:LONGEST_WORD]
    )
