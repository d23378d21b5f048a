"""Numbers that no load decides: what a person fixed, the least and the most, and a deployment that is asleep.

These hold with or without metrics: an outage never skips the floor.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.control.decision import Action, Need, Told
from plimsoll.control.memory import RoleMemory
from plimsoll.control.placing import toward
from plimsoll.control.situation import Zero
from plimsoll.control.telling import scaling_limited
from plimsoll.control.turn import Answer, Turn
from plimsoll.control.zero import woken


def fixed(turn: Turn, memory: RoleMemory, count: int) -> Answer:
    allotted = toward(turn, memory, count, max(count, turn.there))
    return turn.answer(
        memory,
        replicas=allotted.replicas,
        wanted=count,
        reason="Fixed",
        message=f"spec.replicas is {count}",
        told=scaling_limited(turn.role, allotted, count),
    )


def asleep(turn: Turn, memory: RoleMemory, zero: Zero) -> Answer:
    least, verdict = turn.role.bounds.min, woken(zero, memory)
    if not verdict.answer and least == 0:
        return turn.answer(memory, wanted=0, reason="ScaledToZero", message=verdict.why)
    allotted = toward(turn, memory, max(1, least), turn.role.bounds.max)
    told = scaling_limited(turn.role, allotted, max(1, least))
    if allotted.limit is not None and not any(allotted.replicas.values()):
        return turn.answer(memory, wanted=1, reason=allotted.limit, message=verdict.why, told=told)
    return turn.answer(
        replace(memory, woken_at=turn.now, up_at=turn.now),
        replicas=allotted.replicas,
        wanted=max(1, least),
        reason="Woken",
        message=verdict.why,
        told=told,
        action=Action.WAKE,
    )


def held(turn: Turn, memory: RoleMemory, *, reason: str, message: str, told: tuple[Told, ...] = ()) -> Answer:
    """What is there, for this reason, where the user's bounds allow it; else what they ask for."""
    moved = into_bounds(turn, memory, told=told)
    return moved or turn.answer(memory, wanted=turn.there, reason=reason, message=message, told=told)


def into_bounds(
    turn: Turn,
    memory: RoleMemory,
    *,
    told: tuple[Told, ...] = (),
    wanted: int | None = None,
    need: Need | None = None,
) -> Answer | None:
    """What is there, moved into the user's bounds; None where it is within them."""
    bounds, there = turn.role.bounds, turn.there
    aim = min(max(there, bounds.min), bounds.max)
    if aim == there:
        return None
    allotted = toward(turn, memory, aim, bounds.max)
    after = sum(allotted.replicas.values())
    if after > there:
        memory = replace(memory, up_at=turn.now)
        reason, message = "AtMin", f"scaling.min is {bounds.min}, and there are {there}"
    elif after < there:
        reason, message = "AtMax", f"scaling.max is {bounds.max}, and there are {there}"
    else:
        reason = allotted.limit or "AtMin"
        message = f"{aim} replicas are asked for by the bounds, and there are {there}; none can be moved now"
    return turn.answer(
        memory,
        replicas=allotted.replicas,
        wanted=there if wanted is None else wanted,
        reason=reason,
        message=message,
        need=need,
        told=(*told, *scaling_limited(turn.role, allotted, aim)),
    )
