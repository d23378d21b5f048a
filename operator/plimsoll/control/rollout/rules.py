"""What the user and the fleet allow of a rollout, with every absent field decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

HOLD_SECONDS: Final = 600
PROVEN_SECONDS: Final = 10
"""How long a new replica must have been ready: an engine that dies of its first requests is ready until then."""
PLACE_SECONDS: Final = 300.0
"""How long a pod without a node is waited for: a cluster autoscaler makes a node in one to three minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    surge: int = 1
    """Replicas beyond the wanted number while replicas move; 0 takes the old one away first."""
    step: int = 1
    """Replicas that may be missing at a time where nothing may surge."""
    replaces: bool = False
    """Whether the user asks that old replicas go before new ones come."""
    by_room: bool = False
    """Whether the user leaves it to the room in the fleet which of the two comes first."""
    alone: bool = False
    """Whether the only replica may go before another one serves, for a change that the user did not make."""
    percents: tuple[int, ...] = ()
    """Shares of the replicas on the new sets at each step of a canary."""
    hold_seconds: int = HOLD_SECONDS
    hold: bool = False
    automatic: bool = True
    """Whether a failing set is rolled back without a person."""
    proven_seconds: int = PROVEN_SECONDS
    """How long a new replica must have been ready before an old one goes for it."""
    deadline_seconds: int = 1800
    """How long a new replica may take to be ready."""


def rules_of(spec: LLMDeploymentSpec, *, room: int | None, deadline_seconds: int) -> Rules:
    """`room` is the number of further replicas of the new sets that would find devices now; None where that is unknown."""
    asked = spec.rollout
    surge = asked.max_surge or 1
    if asked.strategy == "replace":
        surge = 0
    elif asked.strategy is None and room is not None:
        surge = min(surge, room)
    canary = asked.canary
    hold = HOLD_SECONDS if canary is None or canary.hold_seconds is None else canary.hold_seconds
    return Rules(
        surge=surge,
        replaces=asked.strategy == "replace",
        by_room=asked.strategy is None,
        alone=spec.tuning.allow_disruption is True,
        percents=() if canary is None else canary.percents,
        hold_seconds=hold,
        hold=asked.hold is True,
        automatic=asked.rollback != "manual",
        deadline_seconds=asked.deadline_seconds or deadline_seconds,
    )
