"""Turns of the operator fail: deployments are not as they should be, and their status may be old."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import Alert, Level
from plimsoll.alerts.records import CLUSTER
from plimsoll.alerts.thresholds import FAILING
from plimsoll.prometheus import own

TURNS_FAILING: Final = Alert(
    name="TurnsFailing",
    summary="Turns of the Plimsoll operator fail.",
    description=(
        "{{ $value | humanizePercentage }} of the turns end in an error. plimsoll_turns_failed_total says by reason which: a refused call is a missing right or "
        "a policy of the cluster, Unreachable an API server in trouble, Bug a mistake of the operator's; its log has the line."
    ),
    levels=(
        Level(
            "warning",
            f"sum by ({CLUSTER}) (rate({own.TURNS_FAILED.name}[10m])) / sum by ({CLUSTER}) (rate({own.TURNS.name}[10m])) > {FAILING}",
            "10m",
        ),
    ),
)
