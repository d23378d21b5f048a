"""Why pods of a workload are not made, from what its controller says. A function of the object alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SAID: Final = 1000
"""Characters kept: Pod Security names each field of each container."""


def refused_pods(status: Mapping[str, Any]) -> str:
    """Of a Deployment: the words of the API server, without the name of the pod, which is another one at each attempt."""
    for one in status.get("conditions") or ():
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            return refusal(str(one.get("message") or one.get("reason") or ""))
    return ""


def refusal(message: str) -> str:
    """What a controller says of a pod that it was not allowed to make, bounded and without that pod's name."""
    for word in (" is forbidden: ", " is invalid: "):
        _, split, why = message.partition(word)
        if split:
            return why[:_SAID]
    return message[:_SAID]
