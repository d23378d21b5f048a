"""Levels of the alerts that hold a latency against what the resource promises of it."""

from __future__ import annotations

from plimsoll.alerts.base import SWINGS, Level
from plimsoll.alerts.records import ENOUGH, SAME, SLO, Record
from plimsoll.alerts.thresholds import SLO_ACT


def over_promise(seen: Record, latency: str) -> tuple[Level, ...]:
    limit = f'{SLO}{{latency="{latency}"}}'
    return (
        Level("warning", f"{seen} > {SAME} {limit} {ENOUGH}", "5m", "above the promise", keeps=SWINGS),
        Level(
            "critical",
            f"{seen} > {SAME} ({SLO_ACT} * {limit}) {ENOUGH}",
            "5m",
            f"above {SLO_ACT} times the promise",
            keeps=SWINGS,
        ),
    )
