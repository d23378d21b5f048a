"""May replicas go, and how many: only after a whole window that never asked for them, and only if those left stay calm.

Each check answers why not; the first that objects is what the user is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.control.demand import Demand, Supply
from plimsoll.control.law import Law
from plimsoll.control.memory import RoleMemory
from plimsoll.control.need import Asked
from plimsoll.control.pools import shrunk
from plimsoll.control.situation import ReplicaState, Role, Situation
from plimsoll.control.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    replicas: Mapping[str, int]
    """By set."""
    why_not: str | None = None
    """One clause; None where replicas may go."""


def window_s(situation: Situation, lead: float, law: Law) -> float:
    return situation.down_window_s or max(law.down_window_s, 2 * lead)


def down(
    turn: Turn, asked: Asked, *, demand: Demand, supply: Supply, weight: Mapping[str, float], missing: int
) -> Down:
    role, law, there = turn.role, turn.law, turn.there
    # With a wake signal the last replica goes by idleness alone, never by a small load.
    least = max(1, role.bounds.min)
    window = window_s(turn.situation, asked.need.lead_s, law)
    # Replicas that do not serve yet cost nobody an answer when they go.
    idle = sum(
        each.count(ReplicaState.STARTING, ReplicaState.UNSCHEDULABLE, ReplicaState.FAILED)
        for each in role.sets
    )
    step = max(1, idle, math.floor(law.down_share * there))
    peak = math.ceil(asked.memory.most_wished - 1e-9)
    count = min(step, there - peak, there - least)
    if count <= 0:
        wanted = f"up to {peak} were wanted in the last {window / 60:.0f} minutes"
        return Down(replicas=turn.told, why_not=wanted if there > least else f"{least} is the least")
    fewer = shrunk(role, weight, count, least).replicas
    after = min(supply.ready, sum(fewer[name] * weight[name] for name in fewer))
    objection = _timing(turn, asked.memory, window) or _calm(
        role, asked, demand, missing=missing, after=after, ready=supply.ready, law=law
    )
    return Down(replicas=turn.told if objection else fewer, why_not=objection)


def _timing(turn: Turn, memory: RoleMemory, window: float) -> str | None:
    if turn.situation.busy is not None:
        return f"{turn.situation.busy} is under way"
    for at, since in (
        (memory.begun, "of watching"),
        (memory.up_at, "since the last step up"),
        (memory.down_at, "since the last step down"),
    ):
        if at is not None and turn.now - at < window:
            return f"{(turn.now - at) / 60:.0f} of {window / 60:.0f} minutes {since}"
    return None


def _calm(
    role: Role, asked: Asked, demand: Demand, *, missing: int, after: float, ready: float, law: Law
) -> str | None:
    """Would those that are left be calm? Replicas that said nothing count as full."""
    if after >= ready:
        return None
    if demand.full is None:
        return "no replica says how full it is"
    load = demand.full + missing
    if load > law.down_target * after:
        share = f"{load / after:.0%}" if after else "more than 100%"
        return f"the {after:g} left would be {share} full, above {law.down_target:.0%}"
    if (role.signals.sum("waiting") or 0.0) >= max(1.0, after):
        return "requests wait"
    if (role.signals.preempted_share or 0.0) > law.healthy_preempted:
        return "requests are preempted"
    if asked.slow is not None and asked.slow > law.down_latency:
        return f"p99 latency is at {asked.slow:.0%} of its limit, above {law.down_latency:.0%}"
    return None
