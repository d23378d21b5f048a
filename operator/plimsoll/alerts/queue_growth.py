"""More comes than is answered: the queue in front of the engines grows."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import RUNNING, WAITING
from plimsoll.alerts.thresholds import QUEUE_LEAST, QUEUE_SHARE

QUEUE_GROWTH: Final = Alert(
    name="QueueGrowth",
    summary=f"Requests queue up in front of {WHO}.",
    description=(
        "{{ $value | humanize }} requests wait and the number rises: more comes than is answered. "
        "Allow more replicas (spec.scaling.max); where replicas wait for GPUs already, add nodes or raise the namespace's budget."
    ),
    levels=(
        Level(
            "warning",
            f"{WAITING} > {QUEUE_LEAST} and {WAITING} > on (namespace, llm) {QUEUE_SHARE} * {RUNNING} and deriv({WAITING}[10m]) > 0",
            "5m",
        ),
    ),
)
