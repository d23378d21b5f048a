"""The number of replicas that stays asked for: what is decided starts from what a plan holds, and the plan may be behind.

A turn may take longer than a tick, and a plan may get fewer GPUs than were wished for. What is wished stands meanwhile, so that
it is neither taken back nor asked for anew at each tick, and goes once a whole window asked for less.
"""

from __future__ import annotations

from math import ceil

from plimsoll.control.decision import Action, RoleDecision
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import Bounds


def standing(before: int, role: RoleDecision, memory: RoleMemory, bounds: Bounds) -> int:
    """`before` is what was asked for last."""
    before = min(max(before, bounds.min), max(bounds.min, bounds.max))
    if role.action in (Action.DOWN, Action.ZERO):
        return min(before, role.replicas)
    if role.action is Action.HOLD and before < role.replicas:
        return max(before, min(role.replicas, role.wanted))
    asked = ceil(memory.most_wished) if memory.wishes else before
    return max(role.replicas, min(before, asked))


def acted(before: int, after: int, action: Action) -> bool:
    """Whether that was a step of its own: what merely follows the load while the plan is behind is none."""
    if action in (Action.DOWN, Action.ZERO):
        return after < before
    return action is Action.MOVE or (action is not Action.HOLD and after > before)
