"""The entries of what was learned: the key of each, and how an entry is read from a file that anybody may have edited."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

LONGEST_WORD: Final = 256
OWN: Final = "@"
"""Stands in a key's engine before the name of an image that its owner brings."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LearnedKey:
    """What must be equal for one measurement to teach another."""

    model: str
    """Digest of the model's facts, or `shape:` and a digest for what holds for all checkpoints of one shape."""
    gpu: str
    """Catalogue name."""
    engine: str
    """Name and version, e.g. vllm-0.33.0; with the image, where its owner brings one, e.g. vllm-0.33.0@vllm:ours#1f0c44d2a9b35e70."""
    flags: str
    """Layout and settings that matter, as one readable word; `planning.memory.learned_key` makes it."""

    @property
    def of_release(self) -> LearnedKey:
        """The same key for the image that everybody gets by the engine's version."""
        return replace(self, engine=self.engine.partition(OWN)[0])

    def to_data(self) -> dict[str, str]:
        return {"model": self.model, "gpu": self.gpu, "engine": self.engine, "flags": self.flags}


class LearnedError(ValueError):
    """A file of what was learned that cannot be read; the message names the entry, the value and what would be right."""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a file, and its place there, for errors."""

    place: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, place: str, found: object) -> Row:
        if not isinstance(found, dict):
            raise LearnedError(f"{place} is {found!r}; it must be an object")
        return cls(place, found)

    def key(self) -> LearnedKey:
        return LearnedKey(**{name: self.text(name) for name in ("model", "gpu", "engine", "flags")})

    def name(self) -> str:
        """The model's name, which may be left out."""
        return self.text("name") if self.data.get("name") else ""

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str) or not value or len(value) > LONGEST_WORD:
            raise self._wrong(name, f"a word of at most {LONGEST_WORD} letters")
        return value

    def whole(self, name: str, least: int | None = None) -> int:
        value = self.data.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            raise self._wrong(name, "an integer" if least is None else f"an integer of at least {least}")
        return value

    def positive(self, name: str) -> float:
        value = self.data.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not (0 < value < math.inf):
            raise self._wrong(name, "a number above 0")
        return float(value)

    def _wrong(self, name: str, right: str) -> LearnedError:
        return LearnedError(f"{self.place}.{name} is {self.data.get(name)!r}; it must be {right}")
