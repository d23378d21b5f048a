"""What else a machine does while an engine runs: now and then the engine stands still for a moment.

Step times say how long an engine's own work takes. Other programs, its own server among them, take the processor from it at moments
that do not depend on its steps, so a long step meets more of them than a short one. The engine model itself has no randomness:
whoever runs it moves its clock on by what is drawn here.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

SEED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    rate: float = 0.0
    """How often the engine stands still, for each second of its work."""
    length_s: float = 0.0
    """Their mean length."""


NONE: Final = Interference()


class Standstills:
    """Draws these moments, the same ones in every run."""

    def __init__(self, interference: Interference) -> None:
        self._rate, self._length = interference.rate, interference.length_s
        self._random = Random(SEED)  # noqa: S311 - repeatable
        self._next = self._gap()

    def during(self, worked_s: float) -> float:
        """How long the engine stood still in so much work."""
        if not self._rate:
            return 0.0
        stood = 0.0
        self._next -= worked_s
        while self._next <= 0.0:
            stood += self._random.expovariate(1.0) * self._length
            self._next += self._gap()
        return stood

    def _gap(self) -> float:
        return self._random.expovariate(self._rate) if self._rate else 0.0
