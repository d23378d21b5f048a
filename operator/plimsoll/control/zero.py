"""To no replica and back: only where it was asked for, and only by signals that live outside the pods.

The pods themselves can neither say that somebody waits for them nor, once gone, wake up; so a gateway that does not answer
never lets the last replica go, and whoever was woken is left alone for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Final

from plimsoll import names
from plimsoll.control.decision import SAYS_NOTHING, Awake, Told
from plimsoll.control.learning import lead_s
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import ReplicaState, Role, Zero
from plimsoll.control.telling import long
from plimsoll.control.turn import Turn
from plimsoll.facts.spans import minute

STARTS_IMMUNE = 3
"""A replica that was woken stays for so many start-ups at least: else one that takes minutes to come is gone before it paid."""
NOBODY_KNOWS: Final = "the wake query has no answer, so nobody knows who asks"
METRICS_MISSING: Final = Awake(
    "metrics are missing, as MetricsAvailable says, so nobody knows who asks", names.METRICS
)
QUIET_SHARE: Final = 0.5
"""Part of the time for which nobody must have asked, after which it is told since when nobody has."""
MINUTE_S: Final = 60


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
        return Verdict(answer=False, why=NOBODY_KNOWS)
    return Verdict(answer=False, why="nobody asks; the wake signal brings it back")


def may_sleep(zero: Zero, role: Role, memory: RoleMemory, *, now: float, lead: float) -> Verdict:
    """May the last replicas go? Why not is told without a figure that is another one at the next look."""
    if zero.idle_s is None:
        return Verdict(answer=False, why=NOBODY_KNOWS if zero.silent else _once(zero))
    immune = max(zero.after_s, STARTS_IMMUNE * lead)
    awake = max((at for at in (memory.woken_at, memory.begun) if at is not None), default=now)
    last = _Last(asked=now - zero.idle_s, sleeps=max(now - zero.idle_s + zero.after_s, awake + immune))
    if zero.idle_s < zero.after_s:
        return Verdict(answer=False, why=_not_long(zero, zero.idle_s, last))
    if zero.waiting:
        return Verdict(answer=False, why="requests wait at the gateway")
    if any(
        each.count(ReplicaState.STARTING, ReplicaState.NODE_COMING, ReplicaState.QUEUED) for each in role.sets
    ):
        return Verdict(answer=False, why="replicas are starting")
    if role.signals.inflight:
        return Verdict(answer=False, why="requests are in flight")
    if now - awake < immune:
        return Verdict(answer=False, why=last.said)
    return Verdict(answer=True, why=f"nobody asked for {zero.idle_s / 60:.0f} minutes")


@dataclass(frozen=True, slots=True)
class _Last:
    asked: float
    """When somebody last asked, as far as is known."""
    sleeps: float
    """When it sleeps if nobody does so again."""

    @property
    def said(self) -> str:
        return f"nobody has asked since {minute(round(self.asked))}, and it sleeps after {minute(MINUTE_S * ceil(round(self.sleeps) / MINUTE_S))} if nobody does"


def _not_long(zero: Zero, idle_s: float, last: _Last) -> str:
    """Why it is not idle for long enough. Moments are told only once it has been quiet for a good part of the time: while requests come
    now and then, they would be others all the time."""
    if zero.unsaid:
        return "a replica does not say whether it is asked for anything, which counts as asking"
    if idle_s < QUIET_SHARE * zero.after_s:
        return _once(zero)
    return last.said


def _once(zero: Zero) -> str:
    return f"it sleeps once nobody has asked for {long(zero.after_s)}"


def why_awake(turn: Turn, memory: RoleMemory, told: Iterable[Told]) -> Awake:
    """Why one with replicas does not sleep now; nothing where nobody lets it sleep. `told`: the conditions of this look."""
    zero, bounds = turn.situation.zero, turn.role.bounds
    if zero is None or bounds.min > 0 or bounds.pause is not None or bounds.fixed is not None:
        return SAYS_NOTHING
    if turn.situation.busy is not None:
        return Awake(turn.situation.busy)
    if any(one.type == names.METRICS and one.status == "False" for one in told):
        return METRICS_MISSING
    verdict = may_sleep(zero, turn.role, memory, now=turn.now, lead=lead_s(memory, turn.role, turn.law))
    return Awake("more replicas are asked for" if verdict.answer else verdict.why)
