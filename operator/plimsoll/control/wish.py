"""The number of replicas that stays asked for from tick to tick.

A decision starts from the replicas that the plan has, and the plan may be behind: a turn takes longer than a tick, or there are too
few GPUs for all that was wished. The wish stands meanwhile, so that no tick takes it back or asks for it a second time; it goes once
a whole window has asked for less.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from plimsoll.control.decision import Action, RoleDecision
from plimsoll.control.law import Law
from plimsoll.control.memory import RoleMemory
from plimsoll.control.pools import ROUNDING
from plimsoll.control.situation import Bounds, Role

NO_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({})


def standing(
    before: int,
    role: RoleDecision,
    memory: RoleMemory,
    bounds: Bounds,
    weight: Mapping[str, float] = NO_WEIGHTS,
) -> int:
    """The number after a decision. `before` was asked for so far; `weight` is what a replica of each set carries, in replicas of the first
    set, in which wishes are counted."""
    before = min(max(before, bounds.min), max(bounds.min, bounds.max))
    if role.action in (Action.DOWN, Action.ZERO):
        return min(before, role.replicas)
    if role.action is Action.HOLD and before < role.replicas:
        return max(before, min(role.replicas, _carrying(role.wanted, role, weight)))
    asked = _carrying(memory.most_wished, role, weight) if memory.wishes else before
    return max(role.replicas, min(before, asked))


def charged(
    role: Role, decided: RoleDecision, up_at: float | None, now: float, law: Law
) -> Mapping[str, int]:
    """By set: the replicas that nobody else may have the room of. Those that were asked for and that a late turn has not planned yet are among
    them: else who is less important would get it at each look between two at which they are asked for.

    For no longer than such a turn explains, since the plan may never have them, and another could.
    """
    asked, after = role.asked, decided.wished
    comes = decided.action in (Action.HOLD, Action.UP, Action.WAKE)
    if not asked or not comes or up_at is None or now - up_at >= law.unplaced_s:
        return after
    return {name: max(count, asked.get(name, 0)) for name, count in after.items()}


def _carrying(wished: float, role: RoleDecision, weight: Mapping[str, float]) -> int:
    """How many replicas surely carry what is wished: any that come may be of the set that carries least, and any that go of the one that
    carries most."""
    each = [weight.get(wish.set, 1.0) for wish in role.wishes]
    more = wished - sum(wish.replicas * units for wish, units in zip(role.wishes, each, strict=True))
    if more >= 0:
        return role.replicas + ceil(more / min(each, default=1.0) - ROUNDING)
    return role.replicas - floor(-more / max(each) + ROUNDING)


def acted(before: int, after: int, action: Action, *, moved: bool) -> bool:
    """Whether the decision was a step of its own, and not one that the plan still has to follow. `moved`: other sets were asked for than
    before."""
    if action in (Action.DOWN, Action.ZERO):
        return after < before
    if action is Action.MOVE:
        return moved
    return action is not Action.HOLD and after > before
