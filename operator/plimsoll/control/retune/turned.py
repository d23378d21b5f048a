"""What one look at a retune results in: the memory to store, and what is told."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.decision import Told
from plimsoll.control.retune.steps import RetuneMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    memory: RetuneMemory
    """To be stored before its effect is asked for."""
    told: tuple[Told, ...] = ()
    events: tuple[Event, ...] = ()
    why_not: str | None = None
    """Why nothing is begun though something is wrong."""
