"""No operator acts: what serves goes on serving, and nothing changes any more."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import Alert, Level
from plimsoll.prometheus import own

_ACTS: Final = f"{own.LEADS.name} == 1"
_STAYS: Final = f"{_ACTS} and {own.LEADS.name} offset 5m == 1 and min_over_time({own.LEADS.name}[5m]) == 1"
"""Acts, and has for five minutes: where each that takes over soon ends, one acts at nearly every moment."""

OPERATOR_GONE: Final = Alert(
    name="OperatorGone",
    summary="No Plimsoll operator acts.",
    description=(
        "No process that Prometheus sees holds the Lease and takes turns. Deployments go on serving, but nothing is scaled, rolled out or replaced, and "
        "alerts that need the operator's own figures are silent: NotServing, Stalled, CrashLoop and those of places. Promises are held for an hour more. "
        "Where it is a warning, some process acts now and then, and soon ends or gives the Lease away. "
        "Look at the operator's pods and their last log lines; if they run, at their PodMonitor."
    ),
    levels=(
        Level("warning", f"absent({_STAYS})", "20m", "where none does for five minutes on end"),
        Level("critical", f"absent({_ACTS})", "5m"),
    ),
)
