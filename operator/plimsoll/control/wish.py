"""The number of replicas that stays asked for: what is decided starts from what a plan holds, and the plan may be behind.

A turn may take longer than a tick, and a plan may get fewer GPUs than were wished for. What is wished stands meanwhile, so that
it is neither taken back nor asked for anew at each tick, and goes once a whole window asked for less.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from plimsoll.control.decision import Action, RoleDecision
from plimsoll.control.memory import RoleMemory
from plimsoll.control.pools import ROUNDING
from plimsoll.control.situation import Bounds

NO_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({})


def standing(
    before: int,
    role: RoleDecision,
    memory: RoleMemory,
    bounds: Bounds,
    weight: Mapping[str, float] = NO_WEIGHTS,
) -> int:
    """`before` is what was asked for last; `weight` is what a replica of each set carries, beside one of the first, of which wishes are."""
    before = min(max(before, bounds.min), max(bounds.min, bounds.max))
    if role.action in (Action.DOWN, Action.ZERO):
        return min(before, role.replicas)
    if role.action is Action.HOLD and before < role.replicas:
        return max(before, min(role.replicas, _carrying(role.wanted, role, weight)))
    asked = _carrying(memory.most_wished, role, weight) if memory.wishes else before
    return max(role.replicas, min(before, asked))


def _carrying(wished: float, role: RoleDecision, weight: Mapping[str, float]) -> int:
    """Replicas that surely carry so much: those that come are taken to be the smallest, and those that go the largest."""
    each = [weight.get(wish.set, 1.0) for wish in role.wishes]
    more = wished - sum(wish.replicas * units for wish, units in zip(role.wishes, each, strict=True))
    if more >= 0:
        return role.replicas + ceil(more / min(each, default=1.0) - ROUNDING)
    return role.replicas - floor(-more / max(each) + ROUNDING)


def acted(before: int, after: int, action: Action) -> bool:
    """Whether that was a step of its own: what merely follows the load while the plan is behind is none."""
    if action in (Action.DOWN, Action.ZERO):
        return after < before
    return action is Action.MOVE or (action is not Action.HOLD and after > before)
