"""What the control loop hands to a deployment's turns: how many replicas, which change is tried, and what is to be told.

A turn takes it as it takes everything else that it sees. It is made anew only when something that matters changed, so that a
quiet deployment is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.decision import Told
from plimsoll.control.record import EMPTY, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    record: Record = EMPTY
    """To be kept; replicas and effects follow from it alone."""
    reason: str = ""
    """Why this number of replicas, in a sentence; empty where the plan decides."""
    told: tuple[Told, ...] = ()
    """Conditions, sorted by type."""

    @property
    def mark(self) -> tuple[object, ...]:
        """What of it a turn acts on; figures in sentences move all the time."""
        step = self.record.retune.step
        state = None if step is None else (step.id, step.phase, step.rolled)
        return self.record.replicas, state, tuple((one.type, one.status, one.reason) for one in self.told)
