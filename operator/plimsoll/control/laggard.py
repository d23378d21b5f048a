"""The one replica that is slower than the others by far: a sick GPU or a crowded node shows so, and no number of replicas cures it."""

from __future__ import annotations

from statistics import median
from typing import Final

from plimsoll.control.signals import RATE_S, ReplicaSignals, Signals

LEAST: Final = 3
"""Replicas that tell their speed, below which nobody knows which of them is the odd one."""
SLOW: Final = 0.5
"""Share of the others' speed below which a replica is slow: fuller batches alone make the steps of a replica that has no queue longer by less."""


def laggard(signals: Signals) -> str | None:
    """Its name; None where none stands out."""
    speeds = {each.replica: speed for each in signals.replicas if (speed := _speed(each)) is not None}
    if len(speeds) < LEAST:
        return None
    slowest = min(speeds, key=lambda name: speeds[name])
    others = median(speed for name, speed in speeds.items() if name != slowest)
    return slowest if speeds[slowest] < SLOW * others else None


def _speed(each: ReplicaSignals) -> float | None:
    """Tokens a second for each request that it has; None where it has hardly one, or lets some wait."""
    if each.generation_tokens is None or each.inflight_mean is None or each.span_s < RATE_S or each.waiting:
        return None
    return each.generation_tokens / each.span_s / each.inflight_mean if each.inflight_mean >= 1 else None
