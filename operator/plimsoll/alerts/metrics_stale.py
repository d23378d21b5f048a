"""Replicas serve and nobody sees how: nothing is scaled down or retuned, and no alert about load can fire."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import REPLICAS, RUNNING

METRICS_STALE: Final = Alert(
    name="MetricsStale",
    summary=f"Prometheus has no metrics of the engines of {WHO}.",
    description=(
        "{{ $value }} replicas serve, but none of their series is there. Until it is, Plimsoll neither scales down nor retunes, and the alerts about load "
        "are silent. Let Prometheus select the deployment's PodMonitor, let it reach the pods (NetworkPolicy), "
        "and keep --disable-log-stats out of spec.engine.extraArgs."
    ),
    levels=(Level("warning", f'{REPLICAS}{{state="ready"}} > 0 unless on (namespace, llm) {RUNNING}', "5m"),),
)
