"""Replicas serve and nobody sees how: nothing is scaled down or retuned, and no alert about load can fire."""

from __future__ import annotations

from typing import Final

from plimsoll import names
from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import CONDITION, READY, RUNNING, SAME

SERVES: Final = f"{READY} > 0"
UNSEEN: Final = f'{CONDITION}{{type="{names.METRICS}"}} == 0'

METRICS_STALE: Final = Alert(
    name="MetricsStale",
    summary=f"Nobody sees how loaded the replicas of {WHO} are.",
    description=(
        "{{ $value }} replicas serve, but Prometheus has none of their series, or Plimsoll cannot read them: the condition MetricsAvailable says which. Until "
        "it can, it neither scales down nor retunes, and without series the alerts about load are silent. Let Prometheus select the deployment's PodMonitor "
        "and reach the pods (NetworkPolicy), keep --disable-log-stats out of spec.engine.extraArgs, and let Plimsoll reach prometheusUrl with its token."
    ),
    levels=(
        Level(
            "warning",
            f"({SERVES} unless {SAME} {RUNNING}) or ({SERVES} and {SAME} {UNSEEN})",
            "5m",
        ),
    ),
)
