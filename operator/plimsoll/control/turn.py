"""One role at one tick, and the form of an answer about it: what every step of the decision is given and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.control.decision import Action, Need, RoleDecision, SetWish, Told
from plimsoll.control.law import Law
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import Role, Room, Situation
from plimsoll.values import light


@dataclass(frozen=True, slots=True)
class Answer:
    decision: RoleDecision
    memory: RoleMemory
    told: tuple[Told, ...] = ()


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    now: float
    situation: Situation
    role: Role
    room: Room | None
    law: Law
    told: Mapping[str, int]
    """Replicas that each set is told to run now."""
    there: int
    """All of them."""
    since: float
    """The look before, or a tick ago where that is longer ago."""

    @classmethod
    def of(
        cls,
        now: float,
        situation: Situation,
        role: Role,
        *,
        seen: float | None,
        room: Room | None,
        law: Law,
    ) -> Turn:
        """`seen`: when it was looked at before."""
        told = {each.name: each.told for each in role.sets}
        return cls(
            now=now,
            situation=situation,
            role=role,
            room=room,
            law=law,
            told=told,
            there=sum(told.values()),
            since=min(now, max(seen or 0.0, now - law.tick_s)),
        )

    def units(self, weight: Mapping[str, float]) -> float:
        """What all of them carry, in replicas of the first set."""
        return sum(weight[name] * count for name, count in self.told.items())

    def answer(
        self,
        memory: RoleMemory,
        *,
        replicas: Mapping[str, int] | None = None,
        wanted: int,
        reason: str,
        message: str,
        need: Need | None = None,
        told: tuple[Told, ...] = (),
        action: Action | None = None,
        early: bool = False,
    ) -> Answer:
        """Without replicas: those that are there. The action follows from the numbers unless it has a name of its own."""
        wished = self.told if replicas is None else replicas
        after = sum(wished.values())
        moved = Action.UP if after > self.there else Action.DOWN if after < self.there else Action.HOLD
        decision = RoleDecision(
            role=self.role.name,
            action=action or moved,
            wishes=tuple(SetWish(set=each.name, replicas=wished[each.name]) for each in self.role.sets),
            wanted=wanted,
            reason=reason,
            message=message,
            need=need or Need(),
            early=early,
        )
        return Answer(decision, memory, told)
