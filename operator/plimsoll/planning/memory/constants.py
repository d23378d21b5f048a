"""Fitted constants of the memory formulas: each with its value, how far real starts are from it, and what it was fitted on.

They are in overheads.yaml, which the benchmark that fits them writes. The formulas get them all as one value, so that a fit which
left some measurements out can be scored with the same code. None is for a model by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from plimsoll.facts.own_data import own_data


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConstant:
    value: float
    spread: float
    """Half the width of the interval that held 90% of the measurements, in the unit of the value."""
    rows: int
    """How many measurements it was fitted on; 0 where it was read from the engine's code or taken over from a similar constant."""
    fitted_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConstants:
    named: Mapping[str, MemoryConstant]

    def __getitem__(self, name: str) -> MemoryConstant:
        return self.named[name]

    def value(self, name: str) -> float:
        return self.named[name].value


@cache
def fitted_constants() -> MemoryConstants:
    """The constants that come with this release."""
    return parse_constants(own_data("plimsoll.planning.memory", "overheads.yaml"))


def parse_constants(data: Mapping[str, Any]) -> MemoryConstants:
    return MemoryConstants(
        named={
            name: MemoryConstant(
                value=float(entry["value"]),
                spread=float(entry["spread"]),
                rows=int(entry["rows"]),
                fitted_on=str(entry["fittedOn"]),
            )
            for name, entry in sorted(data["constants"].items())
        }
    )
