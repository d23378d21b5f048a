"""Why pods of a workload are refused, from what its controller says. Pure functions of the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MESSAGE_KEPT: Final = 1000
"""Characters that are kept of a message, as Pod Security names each field of each container."""


def refused_pods(status: Mapping[str, Any]) -> str:
    """Why the API server refuses a Deployment's pods, by the Deployment's status; empty where it does not."""
    for one in status.get("conditions") or ():
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            return refusal_text(str(one.get("message") or one.get("reason") or ""))
    return ""


def refusal_text(message: str) -> str:
    """The API server's words in a controller's message on a refused pod, bounded, and without the pod's name, which differs each time."""
    for word in (" is forbidden: ", " is invalid: "):
        _, split, why = message.partition(word)
        if split:
            return why[:_MESSAGE_KEPT]
    return message[:_MESSAGE_KEPT]
