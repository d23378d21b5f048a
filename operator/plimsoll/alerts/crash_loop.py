"""Engines die and start again, each time for minutes."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import AGAIN, AGAIN_HOUR, REPLICAS, SAME
from plimsoll.alerts.thresholds import RESTARTS

LATELY: Final = f'max_over_time({REPLICAS}{{state="failed"}}[15m]) > 0'
"""Between two back-offs of a replica, of five minutes each in the end, it loads its model and has not failed."""
LATER: Final = f"{AGAIN_HOUR} >= {RESTARTS} and {SAME} {LATELY}"
"""A loop that goes on: the kubelet starts the engine again so late that a quarter of an hour has few starts."""

CRASH_LOOP: Final = Alert(
    name="CrashLoop",
    summary=f"Engines of {WHO} crash again and again.",
    description=(
        "{{ $value | humanize }} times an engine ended that had ended within the hour before: in the last 15 minutes, or, where fewer than "
        f"{RESTARTS} lie in these, in the last hour. The conditions say why in the engine's own words: "
        f"`kubectl describe llm {NAMED}`, `plimsoll doctor {NAMED}`. Out of memory: a smaller spec.memory.utilizationPercent or context. A new image or argument: "
        "put it back."
    ),
    levels=(Level("critical", f"{AGAIN} >= {RESTARTS} or ({LATER})", "1m"),),
)
