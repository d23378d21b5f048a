"""The one replica that is slower than the others by far: a sick GPU or a crowded node shows so, and no number of replicas cures it."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from plimsoll.control.signals import RATE_S, ReplicaSignals
from plimsoll.control.situation import Role, ServingSet

LEAST: Final = 3
"""Replicas that tell their speed, below which nobody knows which of them is the odd one."""
SLOW: Final = 0.5
"""Share of the others' speed below which a replica is slow: fuller batches alone make the steps of a replica that has no queue longer by less."""


def laggard(role: Role) -> str | None:
    """The name of its pod; None where none stands out among those of its set, as another set may have slower GPUs and be well."""
    speeds = {each.replica: speed for each in role.signals.replicas if (speed := _speed(each)) is not None}
    found = (_slowest(each, speeds) for each in role.sets)
    return next((name for name in found if name is not None), None)


def _slowest(among: ServingSet, speeds: Mapping[str, float]) -> str | None:
    known = {each.pod: speeds[each.id] for each in among.replicas if each.id in speeds}
    if len(known) < LEAST:
        return None
    slowest = min(known, key=lambda pod: known[pod])
    others = median(speed for pod, speed in known.items() if pod != slowest)
    return slowest if known[slowest] < SLOW * others else None


def _speed(each: ReplicaSignals) -> float | None:
    """Tokens a second for each request that it has; None where it has hardly one, or lets some wait."""
    if each.generation_tokens is None or each.inflight_mean is None or each.span_s < RATE_S or each.waiting:
        return None
    return each.generation_tokens / each.span_s / each.inflight_mean if each.inflight_mean >= 1 else None
