"""Reads the text in which engines export metrics into samples. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_SAMPLE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>[^\s]+)(?:\s+-?\d+)?(?:\s+#.*)?"
)
_LABEL: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def read_exposition(text: str) -> Iterator[Sample]:
    """All samples of a page. Malformed lines are skipped, where Prometheus itself would reject the whole page."""
    for line in text.splitlines():
        found = None if line.startswith("#") else _SAMPLE.fullmatch(line.strip())
        if found is None:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        yield Sample(found["name"], dict(_labels(found["labels"] or "")), value)


def _labels(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _LABEL.findall(text):
        yield name, _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], value)
