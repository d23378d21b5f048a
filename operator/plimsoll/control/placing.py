"""What to do with replicas that find no GPUs: wait a little, ask for no more, then take the wish back and try again later.

A node that is being made is waited for; a replica that the user's own minimum asks for stays wished for ever. Nothing else
may hold a plan up: the other sets, and the way down, go on. Who is moved by a rollout, a retune or a drain waits too, but its
number is what serves already: with it one that serves would go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.control.copying import replace
from plimsoll.control.law import Law
from plimsoll.control.memory import Blocked, RoleMemory
from plimsoll.control.situation import Role, ServingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    memory: RoleMemory
    blocked: frozenset[str]
    """Sets of which no more is asked now."""
    withdrawn: Mapping[str, int]
    """Replicas of each set that are no longer asked for."""
    stuck: int
    """Replicas without GPUs for longer than a moment."""


def placing(role: Role, memory: RoleMemory, now: float, law: Law, *, busy: bool) -> Placing:
    spare = sum(each.told for each in role.sets) - role.bounds.min
    blocked = {name: kept for name, kept in memory.blocked.items() if any(e.name == name for e in role.sets)}
    withdrawn: dict[str, int] = {}
    waits, stuck = set(), 0
    for each in role.sets:
        waiting = _unplaced(each, now, law.unplaced_s)
        stuck += waiting
        if waiting:
            waits.add(each.name)
        elif each.name in blocked and _started_since(each, blocked[each.name]):
            del blocked[each.name]
        beyond = max(0, each.present - each.told)
        late = _unplaced(each, now, law.withdraw_s) - beyond
        count = 0 if busy else max(0, min(late, spare))
        if count:
            spare -= count
            withdrawn[each.name] = count
            before = blocked.get(each.name)
            retry = law.retry_first_s if before is None else min(law.retry_most_s, 2 * before.retry_s)
            blocked[each.name] = Blocked(until=now + retry, retry_s=retry)
    if blocked != memory.blocked:
        memory = replace(memory, blocked={name: blocked[name] for name in sorted(blocked)})
    return Placing(
        memory=memory,
        blocked=frozenset(waits | {name for name, each in blocked.items() if now < each.until}),
        withdrawn=withdrawn,
        stuck=stuck,
    )


def _unplaced(each: ServingSet, now: float, seconds: float) -> int:
    return sum(replica.is_unplaced(now, seconds) for replica in each.replicas)


def _started_since(each: ServingSet, block: Blocked) -> bool:
    """A replica that got its GPUs after the last refusal: there is room again, and the next refusal is a first one."""
    refused = block.until - block.retry_s
    return any((replica.scheduled or 0.0) > refused for replica in each.replicas)
