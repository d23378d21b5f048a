"""The rules by which Flux and `kubectl wait`'s relatives judge any custom resource, in the order in which they are asked."""

from __future__ import annotations

from typing import Any


def kstatus(body: dict[str, Any]) -> str:
    """Of a resource that has conditions of its own."""
    metadata, status = body["metadata"], body.get("status") or {}
    if "deletionTimestamp" in metadata:
        return "Terminating"
    seen = status.get("observedGeneration")
    if seen is not None and seen != metadata["generation"]:
        return "InProgress"
    said = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    if said.get("Reconciling") == "True":
        return "InProgress"
    if said.get("Stalled") == "True":
        return "Failed"
    if "Ready" in said:
        return "Current" if said["Ready"] == "True" else "InProgress"
    return "Current"
