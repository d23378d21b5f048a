"""Replicas are wanted that no node has room for."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import REPLICAS, each

_LASTING: Final = "6m"
"""Less than the ten minutes after which the law gives a replica up, so that one is told of that is asked for again and again."""
_KEEPS: Final = "40m"
"""More than between two such tries, of which the next comes up to half an hour later."""

WAITING_FOR_GPUS: Final = Alert(
    name="WaitingForGPUs",
    summary=f"Replicas of {WHO} wait for GPUs.",
    description=(
        "{{ $value }} replicas have had no place for minutes: GPUs are used by others, cordoned, or a queue or quota holds them. "
        f"`plimsoll doctor {NAMED}` says which. Add nodes, free some, raise the quota, or allow smaller GPUs (spec.topology.gpuProducts)."
    ),
    levels=(
        Level(
            "warning",
            each("sum", f'{REPLICAS}{{state=~"waiting_gpus|waiting_quota"}}') + " > 0",
            _LASTING,
            keeps=_KEEPS,
        ),
    ),
)
