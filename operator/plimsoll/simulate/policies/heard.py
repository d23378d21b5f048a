"""Signals as old as the operator has them: gauges and counters of each look, histograms of their last turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from plimsoll.control.latencies import Latencies
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.facts.turns import kinds_of, turns_of

SPREADS: Final = {
    "ttft": "ttft", "itl": "itl", "e2e": "e2e", "prompt_lengths": "prompt", "output_lengths": "output",
}  # fmt: skip
"""Fields of `Latencies`, by those of a sample."""


class Heard:
    def __init__(self, interval_s: float) -> None:
        self._turn, self._turns = 0, turns_of(interval_s)
        self._latencies = Latencies()
        """Each as it was when it last had its turn."""

    def signals(self, window: Window, *, now: float, live: Iterable[str], gateway: float | None) -> Signals:
        kinds = kinds_of(self._turn, self._turns)
        self._turn += self._turns
        signals = signals_of(window, now=now, live=live, gateway=gateway, kinds=kinds)
        new = {SPREADS[kind]: getattr(signals.latencies, SPREADS[kind]) for kind in kinds}
        self._latencies = replace(self._latencies, whole=signals.latencies.whole, **new)
        return replace(signals, latencies=self._latencies)
