"""What ramps have taught about speed: by what factors real answers were slower or faster than the performance model says.

One entry for one model on one GPU under one engine version and layout, from the newest ramp that was handed in. Factors and
spreads are bounded, so that no measurement, true or made up, moves a prediction further than the bound.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.facts.learned_rows import LONGEST_WORD, LearnedKey, Row

MOST_FACTOR: Final = 2.0
"""No prediction is made more than so many times slower or faster."""
DIGITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Speed:
    key: LearnedKey
    ttft: float
    """Time to first token, measured over predicted."""
    tpot: float
    """Time per output token, likewise."""
    ttft_spread: float
    """Factor within which other loads of the same lengths are expected, either way."""
    tpot_spread: float
    input_tokens: int
    """Of its prompts and answers, on average."""
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
        """What a person may name it by."""
        key = self.key
        return f"{key.model} {key.gpu} {key.engine} {key.flags} speed {self.name}"

    def bounded(self) -> Speed:
        return replace(
            self,
            ttft=_within(self.ttft, 1 / MOST_FACTOR, MOST_FACTOR),
            tpot=_within(self.tpot, 1 / MOST_FACTOR, MOST_FACTOR),
            ttft_spread=_within(self.ttft_spread, 1.0, MOST_FACTOR),
            tpot_spread=_within(self.tpot_spread, 1.0, MOST_FACTOR),
            name=self.name[:LONGEST_WORD],
        )

    def figures(self) -> dict[str, float]:
        """As a file has them."""
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
