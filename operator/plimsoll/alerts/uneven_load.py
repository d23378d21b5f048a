"""One replica has a queue while another of its set has none: the number of replicas is not what is wrong, but who gets the requests.

Replicas of another set tell nothing of it: one that tries a setting may run more at once, and one that a rollout lets go is given nothing.
Nor does one that drains, whose supervisor says so.
"""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import SAME_SET, WAITING_LEAST, WAITING_MOST, each
from plimsoll.alerts.thresholds import QUEUE_LEAST, QUEUE_UNEVEN

UNEVEN_LOAD: Final = Alert(
    name="UnevenLoad",
    summary=f"One replica of {WHO} has a queue while another has none.",
    description=(
        "{{ $value | humanize }} requests wait at one replica, and hardly any at another, which has room for them: a Service knows no queue, and leaves "
        "connections that clients keep where they are. Have a router that knows queues choose (spec.networking.gateway.endpointPicker), or, where the "
        "admin keeps engines from it (runtime.closeConnections), have them close connections. More replicas get requests only from clients that connect."
    ),
    levels=(
        Level(
            "warning",
            each(
                "max",
                f"{WAITING_MOST} > {QUEUE_LEAST} and {SAME_SET} {WAITING_LEAST} < {SAME_SET} ({QUEUE_UNEVEN} * {WAITING_MOST})",
            ),
            "5m",
            keeps=SWINGS,
        ),
    ),
)
