"""Nodes that are to be made for replicas do not come."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import REPLICAS

WAITING_FOR_NODES: Final = Alert(
    name="WaitingForNodes",
    summary=f"Replicas of {WHO} wait for nodes that do not come.",
    description=(
        "{{ $value }} replicas have waited for 20 minutes for a node of a declared class. The cloud may have none left, or the autoscaler of nodes may "
        f"not make any: `plimsoll doctor {NAMED}` says what holds them. After half an hour, or three times what the class's provisionSeconds says, "
        "Plimsoll counts on them no more and asks for other GPUs that spec.topology.gpuProducts allows."
    ),
    levels=(Level("warning", f'{REPLICAS}{{state="waiting_nodes"}} > 0', "20m"),),
)
