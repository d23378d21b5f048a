"""Histograms take turns to be asked for, as each is many rows of every set: a p99 of five minutes is little older for being asked for every minute."""

from __future__ import annotations

from math import ceil
from typing import Final

TURNS: Final = (
    "ttft", "itl", "e2e",
    "ttft", "itl", "prompt_lengths",
    "ttft", "itl", "output_lengths",
)  # fmt: skip
"""One each fifteen seconds: those that latency limits are about come every three turns, the others every nine."""
TURN_S: Final = 15.0
AT_ONCE: Final = 3
"""Turns that a look takes at most. Any three in a row have both of those that latency limits are about."""


def turns_of(interval_s: float) -> int:
    """How many turns a look takes: whoever looks less often asks for more at a time."""
    return min(AT_ONCE, ceil(interval_s / TURN_S))


def kinds_of(turn: int, turns: int) -> tuple[str, ...]:
    """The histograms of `turns` turns from `turn` on, each once."""
    return tuple(dict.fromkeys(TURNS[(turn + further) % len(TURNS)] for further in range(turns)))
