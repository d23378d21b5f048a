"""Faults between a client and the API server, for tests of what the client makes of them."""

from cluster.faults.calls import WRITES, Call, Where
from cluster.faults.proxy import FaultProxy
from cluster.faults.rules import (
    ANY,
    WATCHES,
    Answer,
    CutWatch,
    Delay,
    ExpireWatch,
    Hang,
    LoseAnswer,
    LoseEvents,
    Refuse,
    Rule,
    SilenceWatch,
    Stale,
)
from cluster.faults.stale import version_now
from cluster.faults.stop import Stop

__all__ = [
    "ANY",
    "WATCHES",
    "WRITES",
    "Answer",
    "Call",
    "CutWatch",
    "Delay",
    "ExpireWatch",
    "FaultProxy",
    "Hang",
    "LoseAnswer",
    "LoseEvents",
    "Refuse",
    "Rule",
    "SilenceWatch",
    "Stale",
    "Stop",
    "Where",
    "version_now",
]
