"""More comes than is answered: the queue in front of the engines grows, or stands and does not go."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import RUNNING, SAME, WAITING
from plimsoll.alerts.thresholds import QUEUE_LEAST, QUEUE_SHARE, QUEUE_SOON

QUEUE_GROWTH: Final = Alert(
    name="QueueGrowth",
    summary=f"Requests queue up in front of {WHO}.",
    description=(
        "{{ $value | humanize }} requests wait, and at this pace some still will in ten minutes: more comes than is answered. "
        "Allow more replicas (spec.scaling.max); where replicas wait for GPUs already, add nodes or raise the namespace's budget. "
        "A queue that may grow no longer (spec.engine.maxQueuedRequests) stands there, and the rest is refused: llm:refused:increase5m."
    ),
    levels=(
        Level(
            "warning",
            f"{WAITING} > {QUEUE_LEAST} and {WAITING} > {SAME} ({QUEUE_SHARE} * {RUNNING}) "
            f"and predict_linear({WAITING}[10m], {QUEUE_SOON}) > {QUEUE_LEAST}",
            "5m",
            keeps=SWINGS,
        ),
    ),
)
