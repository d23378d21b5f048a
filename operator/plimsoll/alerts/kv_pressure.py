"""The KV pool is nearly full: the next burst is preempted or waits."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import KV_USAGE
from plimsoll.alerts.thresholds import KV_FULL

KV_PRESSURE: Final = Alert(
    name="KVPressure",
    summary=f"The KV cache of {WHO} is nearly full.",
    description=(
        "{{ $value | humanizePercentage }} of the KV pool is in use. More requests, or longer ones, will be preempted or wait. "
        "Allow more replicas (spec.scaling.max), let retuning work (spec.tuning.mode: auto), or make room: "
        "spec.memory.kvCacheDtype fp8, more GPUs a replica (spec.topology)."
    ),
    levels=(Level("warning", f"{KV_USAGE} > {KV_FULL}", "5m", keeps=SWINGS),),
)
