"""What to do with replicas that find no GPUs: wait a little, ask for no more, then take the wish back and try again later.

A node that is being made is waited for, though not for ever. What the user's own minimum asks for stays asked for, in another set
where that one has room. Other sets, and steps down, are not held up meanwhile. Replicas that a rollout, a retune or a drain moves
may wait for GPUs too; their wish is not taken back, as their number is that of replicas that serve, one of which would go with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.control.copying import replace
from plimsoll.control.law import Law
from plimsoll.control.memory import Blocked, RoleMemory
from plimsoll.control.pools import grown
from plimsoll.control.situation import Role, Room, ServingSet
from plimsoll.values import light


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    memory: RoleMemory
    blocked: frozenset[str]
    """Sets of which no more replicas are asked for now."""
    withdrawn: Mapping[str, int]
    """Replicas of each set that are no longer asked for."""
    moved: Mapping[str, int]
    """Replicas of each set that are asked for in place of withdrawn ones, so that the minimum stays asked for."""
    stuck: Mapping[str, int]
    """Replicas of each set without GPUs for longer than a moment."""


def placing(
    role: Role, memory: RoleMemory, now: float, law: Law, *, least: int, busy: bool, room: Room | None
) -> Placing:
    """What becomes of replicas that find no GPUs. At least `least` replicas stay asked for; `busy`: something else moves replicas."""
    stuck = {each.name: count for each in role.sets if (count := _unplaced(each, now, law.unplaced_s))}
    if not stuck and not memory.blocked:
        return Placing(memory=memory, blocked=frozenset(), withdrawn={}, moved={}, stuck=stuck)
    blocked = {
        each.name: memory.blocked[each.name]
        for each in role.sets
        if each.name in memory.blocked
        and (each.name in stuck or not _started_since(each, memory.blocked[each.name]))
    }
    refused = frozenset(stuck) | {name for name, each in blocked.items() if now < each.until}
    late = {} if busy else {each.name: _late(each, now, law) for each in role.sets if each.name in stuck}
    spare = max(0, sum(each.told for each in role.sets) - least)
    moved = _moved(role, sum(late.values()) - spare, refused, room)
    left, withdrawn = spare + sum(moved.values()), {}
    for name, count in late.items():
        if going := min(count, left):
            left, withdrawn[name] = left - going, going
            before = blocked.get(name)
            retry = law.retry_first_s if before is None else min(law.retry_most_s, 2 * before.retry_s)
            blocked[name] = Blocked(until=now + retry, retry_s=retry)
    if blocked != memory.blocked:
        memory = replace(memory, blocked={name: blocked[name] for name in sorted(blocked)})
    return Placing(
        memory=memory, blocked=refused | withdrawn.keys(), withdrawn=withdrawn, moved=moved, stuck=stuck
    )


def _moved(role: Role, count: int, refused: frozenset[str], room: Room | None) -> Mapping[str, int]:
    """Up to `count` replicas for other sets, by set, where those have room now."""
    if count <= 0 or len(role.sets) < 2:
        return {}
    ones = {each.name: 1.0 for each in role.sets}
    most = count + sum(each.told for each in role.sets)
    after = grown(role, ones, float(count), most=most, blocked=refused, room=room).replicas
    return {each.name: more for each in role.sets if (more := after[each.name] - each.told)}


def _late(each: ServingSet, now: float, law: Law) -> int:
    """How many replicas of a set have waited so long that they are no longer asked for. Surplus ones go anyway, and do not count."""
    return max(0, _unplaced(each, now, law.withdraw_s) - max(0, each.present - each.told))


def _unplaced(each: ServingSet, now: float, seconds: float) -> int:
    return sum(replica.is_unplaced(now, seconds, each.node_s) for replica in each.replicas)


def _started_since(each: ServingSet, block: Blocked) -> bool:
    """Whether a replica got its GPUs after the last refusal: there is room again, so that the next refusal counts as a first one."""
    refused = block.until - block.retry_s
    return any((replica.scheduled or 0.0) > refused for replica in each.replicas)
