"""No operator acts: what serves goes on serving, and nothing changes any more."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import Alert, Level
from plimsoll.prometheus import own

OPERATOR_GONE: Final = Alert(
    name="OperatorGone",
    summary="No Plimsoll operator acts.",
    description=(
        "No process that Prometheus sees holds the Lease and takes turns. Deployments go on serving, but nothing is scaled, rolled out or replaced, and "
        "alerts that need the operator's own figures are silent: NotServing, Stalled, CrashLoop and those of places. Promises are held for an hour more. "
        "Look at the operator's pods and their last log lines; if they run, at their PodMonitor."
    ),
    levels=(Level("critical", f"absent({own.LEADS.name} == 1)", "5m"),),
)
