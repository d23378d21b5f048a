"""Replicas are wanted that no node has room for."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import REPLICAS, SAME, SCALING_LIMITED, each

_LASTING: Final = "6m"
"""Less than the ten minutes after which the law gives a replica up, so that one is told of that is asked for again and again."""
PAUSE: Final = "40m"
"""More than between two such tries, of which the next comes up to half an hour later."""
_WAITING: Final = f'{REPLICAS}{{state=~"waiting_gpus|waiting_quota"}}'
_WAITS: Final = each("sum", _WAITING) + " > 0"
_WISHED: Final = f'{SCALING_LIMITED}{{reason="GPUsUnavailable"}} == 1'
_TOLD: Final = 'max_over_time(ALERTS{alertname="PlimsollWaitingForGPUs",alertstate="firing"}[15m])'
_PAUSES: Final = (
    each("sum", f"max_over_time({_WAITING}[{PAUSE}])") + f" > 0 and {SAME} {_WISHED} and {SAME} {_TOLD}"
)
"""Between two tries nothing waits, and the wish is still there, which one of ScalingLimited's reasons tells. Once it is met, or gone, the alert is
over, whatever else keeps more replicas from being asked for."""

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
            f"{_WAITS} or ({_PAUSES})",
            _LASTING,
            keeps=SWINGS,
        ),
    ),
)
