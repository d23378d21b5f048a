"""How long a question may be, where a server in front of Prometheus limits that without saying so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

CLOSE: Final = 1 / 8
"""Share of a length within which the limit need not be known more exactly."""


@dataclass(frozen=True, slots=True)
class Limit:
    answered: int = 0
    """The longest question that had an answer, of those shorter than `refused`."""
    refused: float = math.inf
    """The shortest question that was refused although nothing is wrong with its parts."""

    @property
    def most(self) -> float:
        """Up to which length questions are asked: halfway to the one that was refused, as long as there is much to find out."""
        if self.refused - self.answered < CLOSE * self.refused:
            return self.answered
        return (self.answered + self.refused) / 2

    def after_answer(self, length: int) -> Limit:
        if length >= self.refused:
            # There was another reason then, or the limit is no longer what it was.
            return Limit(length, 2 * length)
        return Limit(max(self.answered, length), self.refused)

    def after_refusal(self, length: int) -> Limit:
        if length >= self.refused:
            return self
        return Limit(self.answered if self.answered < length else 0, length)


def packed(lengths: Mapping[str, int], most: float) -> Iterator[list[str]]:
    """The keys in their order, in as few packs as may be of which none is longer than `most`, but for a single one that is so by itself."""
    pack, filled = list[str](), 0
    for key, length in lengths.items():
        if pack and filled + length > most:
            yield pack
            pack, filled = [], 0
        pack.append(key)
        filled += length
    if pack:
        yield pack
