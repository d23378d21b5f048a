"""What ramps have taught about speed: by what factors real answers were slower or faster than the performance model predicts.

There is one entry for a model on a GPU under an engine version and a layout, from the newest ramp that was handed in. Factors and spreads
are bounded, so that no measurement, true or made up, moves a prediction further than the bound.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.facts.learned_rows import LONGEST_WORD, LearnedKey, Row

MOST_FACTOR: Final = 2.0
"""The most times that a prediction may be made slower or faster."""
DIGITS: Final = 4
"""Decimals to which factors are kept."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Speed:
    """What one ramp has taught."""

    key: LearnedKey
    ttft: float
    """Measured time to first token over the predicted one."""
    tpot: float
    """Measured time per output token over the predicted one."""
    ttft_spread: float
    """Factor, up or down, within which other loads of the same lengths are expected."""
    tpot_spread: float
    input_tokens: int
    """Mean tokens of its prompts; of its answers for the next one."""
    output_tokens: int
    points: int
    """Loads that were measured."""
    at: int
    """When, in seconds since the epoch."""
    name: str = ""
    """The model as somebody wrote it, for people."""

    @property
    def loads(self) -> str:
        return "1 load" if self.points == 1 else f"{self.points} loads"

    @property
    def words(self) -> str:
        """The text in which people search for it."""
        key = self.key
        return f"{key.model} {key.gpu} {key.engine} {key.flags} speed {self.name}"

    def bounded(self) -> Speed:
        """The same within all bounds."""
        return replace(
            self,
            ttft=_within(self.ttft, 1 / MOST_FACTOR, MOST_FACTOR),
            tpot=_within(self.tpot, 1 / MOST_FACTOR, MOST_FACTOR),
            ttft_spread=_within(self.ttft_spread, 1.0, MOST_FACTOR),
            tpot_spread=_within(self.tpot_spread, 1.0, MOST_FACTOR),
            name=self.name[:LONGEST_WORD],
        )

    def figures(self) -> dict[str, float]:
        """The figures, as a file has them."""
        return {
            "ttft": self.ttft,
            "tpot": self.tpot,
            "ttftSpread": self.ttft_spread,
            "tpotSpread": self.tpot_spread,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "points": self.points,
            "at": self.at,
        }

    def line(self) -> str:
        return json.dumps(
            {**self.key.to_data(), **self.figures(), **({"name": self.name} if self.name else {})}
        )

    @classmethod
    def read(cls, row: Row) -> Speed:
        return cls(
            key=row.key(),
            ttft=row.positive("ttft"),
            tpot=row.positive("tpot"),
            ttft_spread=row.positive("ttftSpread"),
            tpot_spread=row.positive("tpotSpread"),
            input_tokens=row.whole("inputTokens", 1),
            output_tokens=row.whole("outputTokens", 1),
            points=row.whole("points", 1),
            at=row.whole("at", 0),
            name=row.name(),
        ).bounded()


def _within(value: float, least: float, most: float) -> float:
    return max(least, min(most, round(value, DIGITS)))
