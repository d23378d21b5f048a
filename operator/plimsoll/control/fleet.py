"""Every deployment of a fleet in one tick: who goes first when GPUs or budgets do not suffice for all.

Decisions are made one after the other, the most important first, each in the room that the ones before have left. What is
taken away from somebody is not room for anybody until its pods are gone: a fleet that grows here while it shrinks there
never holds more than its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.control.decision import Decision
from plimsoll.control.law import LAW, Law
from plimsoll.control.memory import Memory
from plimsoll.control.scaling import decide
from plimsoll.control.situation import ReplicaState, Room, ServingSet, Situation, claim_of
from plimsoll.control.wish import charged
from plimsoll.planning.placing.budgets import UNLIMITED, Limits

EMPTY: Final = Memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What there is to share."""

    free: Mapping[str, float] = field(default_factory=dict)
    """Devices by pool that no pod has and nobody was promised, those of nodes that could still be made included; an absent pool has
    no limit."""
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What each of those pools is made up of, where several may share devices."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """Budgets by namespace, whole; absent namespaces have none."""


def decide_fleet(
    *,
    now: float,
    situations: Iterable[Situation],
    memories: Mapping[str, Memory],
    fleet: Fleet,
    law: Law = LAW,
    spoiled: Callable[[str, Exception], None] | None = None,
) -> tuple[Decision, ...]:
    """One decision each, sorted by name. A deployment without a memory begins with an empty one.

    `spoiled` is told of one that cannot be decided, so that the others still are.
    """
    asked = sorted(situations, key=lambda each: (-each.priority, each.name))
    room, limits = Room(gpus=fleet.free, parts=fleet.parts), _left(asked, fleet)
    decisions = []
    for situation in asked:
        left = limits.get(situation.namespace, UNLIMITED)
        try:
            decision = decide(
                now=now,
                situation=situation,
                memory=memories.get(situation.name, EMPTY),
                room=_within(room, _own(left, situation)),
                law=law,
            )
        except Exception as error:
            if spoiled is None:
                raise
            spoiled(situation.name, error)
            continue
        decisions.append(decision)
        room = _within(room, left)
        for role, decided in zip(situation.roles, decision.roles, strict=True):
            up_at = decision.memory.of(role.name).up_at
            room = room.after(role.sets, charged(role, decided, up_at, now, law))
        if room.limits is not left:
            limits[situation.namespace] = replace(room.limits, replicas=left.replicas)
    return tuple(sorted(decisions, key=lambda decision: decision.name))


def _sets(situation: Situation) -> Iterable[ServingSet]:
    return (each for role in situation.roles for each in role.sets)


def _holds(each: ServingSet) -> int:
    """Replicas that a budget counts: those asked for, and those that are still there though they leave."""
    return max(each.told, each.present) + each.count(ReplicaState.LEAVING)


def _left(asked: Iterable[Situation], fleet: Fleet) -> dict[str, Limits]:
    left = dict(fleet.limits)
    for situation in asked:
        if situation.namespace in left:
            whole = left[situation.namespace]
            for each in _sets(situation):
                left[situation.namespace] = left[situation.namespace].less(claim_of(each), _holds(each))
            # The most replicas are those of one deployment, not of all of a namespace.
            left[situation.namespace] = replace(left[situation.namespace], replicas=whole.replicas)
    return left


def _within(room: Room, limits: Limits) -> Room:
    """Most of a fleet has no budgets, and so the same room."""
    return room if room.limits is limits else replace(room, limits=limits)


def _own(left: Limits, situation: Situation) -> Limits:
    if left.replicas is None:
        return left
    return replace(left, replicas=max(0, left.replicas - sum(map(_holds, _sets(situation)))))
