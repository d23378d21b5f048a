"""What every term of the ledger is worked out from, gathered once: the plan's inputs, the constants, and what versions imply.

The terms are worked out in `profile_run` and `overheads`, each as an `Estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.facts.architecture import Architecture
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import GIB, Gpu, LinkKind, Vendor
from plimsoll.facts.model import Certainty, ModelFacts
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.constants import MemoryConstants
from plimsoll.planning.memory.kv_rules import version_of
from plimsoll.planning.settings import EngineSettings

DATA_CENTRE_GIB: Final = 70
"""Memory from which on a card counts as one for data centres."""
SECOND_RUNNER: Final = Version(0, 25)
"""From this version on models without experts and states run on the engine's second model runner."""
SECOND_RUNNER_FOR_ALL: Final = Version(0, 29)
"""From this version on all models run on it, and it counts its graphs; before, it counted nothing for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One term as its formula gives it, in bytes, before it becomes a term of the ledger."""

    bytes: float
    spread: float
    formula: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    certainty: Certainty = Certainty.CALIBRATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The inputs of every term."""

    model: ModelFacts
    gpu: Gpu
    layout: Layout
    engine: EngineFacts
    settings: EngineSettings
    constants: MemoryConstants
    device_bytes: int

    @property
    def arch(self) -> Architecture:
        return self.model.architecture

    @property
    def version(self) -> Version:
        return version_of(self.engine)

    @property
    def rocm(self) -> bool:
        return self.gpu.vendor is Vendor.AMD

    @property
    def small(self) -> bool:
        """Whether the card is smaller than those for data centres: its cache is a few GiB, so that every MiB matters."""
        return self.device_bytes < DATA_CENTRE_GIB * GIB

    @property
    def fast_fabric(self) -> bool:
        return self.gpu.link.kind in {LinkKind.NVLINK, LinkKind.XGMI, LinkKind.XELINK, LinkKind.ROCE}

    @property
    def on_second_runner(self) -> bool:
        """Whether the model runs on the engine's second model runner."""
        plain = not self.arch.is_moe and not self.arch.is_hybrid
        return self.version >= SECOND_RUNNER_FOR_ALL or (self.version >= SECOND_RUNNER and plain)


def gib_text(size: float) -> str:
    return f"{size / GIB:.2f} GiB"
