"""Engines die and start again, each time for minutes."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import RESTARTS as SEEN
from plimsoll.alerts.thresholds import RESTARTS

CRASH_LOOP: Final = Alert(
    name="CrashLoop",
    summary=f"Engines of {WHO} crash again and again.",
    description=(
        "{{ $value | humanize }} restarts in 15 minutes. The conditions say why in the engine's own words: `kubectl describe llm`, "
        "`plimsoll doctor NAME`. Out of memory: a smaller spec.memory.utilizationPercent or context. A new image or argument: put it back."
    ),
    levels=(Level("critical", f"{SEEN} >= {RESTARTS}", "1m"),),
)
