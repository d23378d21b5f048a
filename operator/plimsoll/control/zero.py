"""To no replica and back: only where it was asked for, and only by signals that live outside the pods.

The pods themselves can neither say that somebody waits for them nor, once gone, wake up; so a gateway that does not answer
never lets the last replica go, and whoever was woken is left alone for a while.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import ReplicaState, Role, Zero

STARTS_IMMUNE = 3
"""A replica that was woken stays for so many start-ups at least: else one that takes minutes to come is gone before it paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    answer: bool
    why: str


def woken(zero: Zero, memory: RoleMemory) -> Verdict:
    """Does anybody want a deployment without replicas?"""
    if zero.waiting is not None and zero.waiting > 0:
        return Verdict(answer=True, why=f"{zero.waiting:g} requests wait at the gateway")
    if zero.woken_at is not None and zero.woken_at > (memory.zero_at or 0.0):
        return Verdict(answer=True, why="the wake annotation was written")
    if zero.silent:
        return Verdict(answer=False, why="the wake query has no answer, so nobody knows who asks")
    return Verdict(answer=False, why="nobody asks; the wake signal brings it back")


def may_sleep(zero: Zero, role: Role, memory: RoleMemory, *, now: float, lead: float) -> Verdict:
    """May the last replicas go?"""
    if zero.idle_s is None:
        return Verdict(answer=False, why="the gateway does not say how long nobody asked")
    if zero.idle_s < zero.after_s:
        return Verdict(answer=False, why=f"idle for {zero.idle_s:.0f} of {zero.after_s:.0f} seconds")
    if zero.waiting:
        return Verdict(answer=False, why=f"{zero.waiting:g} requests wait at the gateway")
    coming = sum(
        each.count(ReplicaState.STARTING, ReplicaState.NODE_COMING, ReplicaState.QUEUED) for each in role.sets
    )
    if coming:
        return Verdict(answer=False, why=f"{coming} replicas are starting")
    if role.signals.inflight:
        return Verdict(answer=False, why=f"{role.signals.inflight:g} requests are in flight")
    immune = max(zero.after_s, STARTS_IMMUNE * lead)
    awake = max((at for at in (memory.woken_at, memory.begun) if at is not None), default=now)
    if now - awake < immune:
        return Verdict(answer=False, why=f"awake for {now - awake:.0f} of at least {immune:.0f} seconds")
    return Verdict(answer=True, why=f"nobody asked for {zero.idle_s / 60:.0f} minutes")
