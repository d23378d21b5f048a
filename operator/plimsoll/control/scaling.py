"""How many replicas, decided once a tick: at most one action a role, and every reason told with it.

The order is what matters here, and it reads from top to bottom: what a person fixed, whether there is data, how much is
needed, whether it may go up, down or to zero. Each step is a module of its own.
"""

from __future__ import annotations

from plimsoll.control.decision import Action, Decision, RoleDecision, SetWish
from plimsoll.control.law import Law
from plimsoll.control.memory import Memory
from plimsoll.control.situation import Role, Room, Situation

LAW = Law()


def decide(
    *, now: float, situation: Situation, memory: Memory, room: Room | None = None, law: Law = LAW
) -> Decision:
    """The replicas of every set of one deployment. `room` is what the fleet and its budgets leave for more."""
    del now, room, law
    return Decision(
        name=situation.name,
        roles=tuple(_hold(role) for role in situation.roles),
        conditions=(),
        memory=memory,
    )


def _hold(role: Role) -> RoleDecision:
    return RoleDecision(
        role=role.name,
        action=Action.HOLD,
        wishes=tuple(SetWish(set=each.name, replicas=each.told) for each in role.sets),
        wanted=sum(each.told for each in role.sets),
        reason="Holding",
        message="nothing is decided yet",
    )
