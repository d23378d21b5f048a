"""Replicas are wanted and none serves: every request finds nobody, and no figure of an engine tells of it."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import ASLEEP_AT, READY, REPLICAS, SAME, SERVED_AT

_WANTED: Final = f'{REPLICAS}{{state="wanted"}}'
_NONE: Final = f"{READY} == 0 and {SAME} {_WANTED} > 0"
_LAST: Final = f"max_over_time({SERVED_AT}[1h])"
_SERVED: Final = f"{_LAST} > {SAME} (max_over_time({ASLEEP_AT}[1h]) or {SAME} {_LAST} * 0)"
"""It has served of late, and not slept since: one that is woken loads its model, and one that is new loads it for the first time."""
_CALLED: Final = 'ALERTS{alertname="PlimsollNotServing",alertstate="firing",severity="critical"}'
_TOLD: Final = f"max_over_time({_CALLED}[15m]) unless {SAME} max_over_time({ASLEEP_AT}[15m])"
"""Whoever was called is not sent home as the hour passes in which it served, nor as nobody tells of it for some minutes: the operator or Prometheus
may be away. One that has slept since loads its model."""

NOT_SERVING: Final = Alert(
    name="NotServing",
    summary=f"No replica of {WHO} serves.",
    description=(
        "Replicas are wanted and none is ready, so that every request fails. The conditions say why, images, tokens, places and crashes alike: "
        f"`kubectl describe llm {NAMED}`, `plimsoll doctor {NAMED}`. It is critical where it has served within the hour, and has not been asleep since."
    ),
    levels=(
        Level("warning", _NONE, "45m", "that has not served of late"),
        Level("critical", f"{_NONE} and {SAME} (({_SERVED}) or {SAME} {_TOLD})", "5m", "that has served"),
    ),
)
