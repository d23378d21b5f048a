"""The engine model's constants from measured cells: a search along one constant after the other, in ever smaller steps.

Few numbers with a meaning each, so that a fit on some cells can be held against others. Deterministic, in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from plimsoll.simulate.interference import Interference
from plimsoll.simulate.steps import StepTimes

FACTORS = (2.0, 1.4, 1.15, 1.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Seconds, and how often in one."""

    step: float = 0.01
    """Of a step that decodes, whatever the batch."""
    sequence: float = 1e-4
    """For each sequence in it."""
    kv_token: float = 1e-8
    chunk: float = 0.004
    prompt_token: float = 1e-4
    request: float = 0.005
    beside: float = 1e-4
    stops: float = 1.0
    """Of the machine, in each second of work."""
    stop: float = 0.01

    def times(self, most: int) -> StepTimes:
        return StepTimes(
            decode=(0.0, *(self.step + self.sequence * n for n in range(1, most + 1))),
            kv_token=self.kv_token,
            chunk=self.chunk,
            prompt_token=self.prompt_token,
            seen_token=0.0,
            request=self.request,
            request_beside=self.beside,
        )

    def interference(self) -> Interference:
        return Interference(rate=self.stops, length_s=self.stop)

    def data(self) -> Mapping[str, float]:
        return {name: float(f"{value:.3g}") for name, value in asdict(self).items()}


def fit(loss: Callable[[Constants], float], start: Constants | None = None) -> tuple[Constants, float]:
    """The constants with the least loss that was found, and that loss."""
    best = start or Constants()
    least = loss(best)
    for factor in FACTORS:
        better = True
        rounds = 0
        while better and rounds < 4:
            better, rounds = False, rounds + 1
            for name in asdict(best):
                for by in (factor, 1 / factor):
                    tried = replace(best, **{name: getattr(best, name) * by})
                    found = loss(tried)
                    if found < least - 1e-9:
                        best, least, better = tried, found, True
                        break
    return best, least


def off(model: float | None, real: float | None) -> float:
    """How far a time is from the measured one, as a logarithm; a time that is missing on one side only is far."""
    if model is None or real is None:
        return 0.0 if model is real else math.log(4)
    return abs(math.log(max(model, 0.01) / max(real, 0.01)))
