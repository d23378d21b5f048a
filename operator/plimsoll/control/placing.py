"""What to do with replicas that find no GPUs, or fail: wait a little, ask for no more, then take the wish back and try again later.

A node that is being made is waited for, though not for ever. What the user's own minimum asks for stays asked for, in another set
where that one has room. Other sets, and steps down, are not held up meanwhile. Replicas that a rollout, a retune or a drain moves
may wait for GPUs too; their wish is not taken back, as their number is that of replicas that serve, one of which would go with it.

Of replicas that fail the wish is taken back only where another set takes their place: by themselves they may still come to serve. Beside
others of their set that do, one more is tried now and then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from plimsoll.control.copying import replace
from plimsoll.control.demand import weights
from plimsoll.control.law import Law
from plimsoll.control.memory import FAILS, Blocked, RoleMemory
from plimsoll.control.pools import Allotment, grown, shrunk
from plimsoll.control.situation import ReplicaState, Role, Room, ServingSet
from plimsoll.control.turn import Turn
from plimsoll.values import light


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    memory: RoleMemory
    blocked: frozenset[str]
    """Sets of which no more replicas are asked for now, as they find no GPUs."""
    failing: Mapping[str, int]
    """Sets of which replicas failed for long, and how many may be on their way: none while they are left alone, then one until it serves."""
    withdrawn: Mapping[str, int]
    """Replicas of each set that are no longer asked for."""
    moved: Mapping[str, int]
    """Replicas of each set that are asked for in place of withdrawn ones, so that the minimum stays asked for."""
    stuck: Mapping[str, int]
    """Replicas of each set without GPUs for longer than a moment."""


def placing(turn: Turn, memory: RoleMemory, *, least: int) -> Placing:
    """What becomes of replicas that find no GPUs. At least `least` replicas stay asked for."""
    role, now, law = turn.role, turn.now, turn.law
    stuck = _stuck(role, now, law)
    if not stuck and not memory.blocked:
        return Placing(memory=memory, blocked=frozenset(), failing={}, withdrawn={}, moved={}, stuck=stuck)
    blocked = _blocked(role, memory, stuck, now, law)
    refused, failing = _spared(role, blocked, stuck, now)
    # While something else moves replicas, no wish is taken back.
    busy = turn.situation.busy is not None
    late = {} if busy else {each.name: _late(each, now, law) for each in role.sets if each.name in stuck}
    spare = max(0, sum(each.told for each in role.sets) - least)
    moved = _moved(role, sum(late.values()) - spare, refused, failing, turn.room)
    left, withdrawn = spare + sum(moved.values()), {}
    for name, count in late.items():
        if going := min(count, left):
            left, withdrawn[name] = left - going, going
            blocked[name] = _again(blocked.get(name), now, law, most=law.retry_most_s)
    return Placing(
        memory=_remembered(memory, blocked),
        blocked=refused | withdrawn.keys(),
        failing=failing,
        withdrawn=withdrawn,
        moved=moved,
        stuck=stuck,
    )


def toward(turn: Turn, memory: RoleMemory, aim: int, most: int) -> Allotment:
    """To a number of replicas at once: up where the budget allows, those that find no room too; down from the dearest.

    What is left alone is asked for only where nothing else has room: else a deployment that wakes waits for what has just failed.
    """
    role, now, law = turn.role, turn.now, turn.law
    if aim <= turn.there:
        return shrunk(role, weights(role.sets), turn.there - aim, 0)
    ones, more = {each.name: 1.0 for each in role.sets}, float(aim - turn.there)
    stuck = _stuck(role, now, law)
    refused, failing = _spared(role, _blocked(role, memory, stuck, now, law), stuck, now)
    return grown(role, ones, more, most=most, blocked=refused, failing=failing, room=turn.room, patient=True)


def failed(role: Role, memory: RoleMemory, now: float, seconds: float) -> Mapping[str, int]:
    """Replicas of each set that have failed, or could not be made, for so long. Surplus ones go anyway, and do not count."""
    found = {}
    for each in role.sets:
        count = sum(replica.has_failed(now, seconds) for replica in each.replicas)
        count = max(0, count - max(0, each.present - each.told))
        if now - memory.unmade_since.get(each.name, now) >= seconds:
            count += each.unmade
        if count:
            found[each.name] = count
    return found


def further_fail(role: Role, now: float, seconds: float) -> Collection[str]:
    """Sets of which a further replica would most likely fail too: one has failed for so long, and none has come to serve since it was made."""
    return [
        each.name
        for each in role.sets
        if any(one.has_failed(now, seconds) and one.created >= each.served_at for one in each.replicas)
    ]


def tried_again(role: Role, now: float, seconds: float, law: Law) -> Mapping[str, int]:
    """Sets some of which serve while all that came since fail, and how many of each may be on their way: those, and a further one once they have
    failed for so long, or for twice as long with each of them but the first. The fault may be a node's, and no set's; where more fail than
    serve it is the set's."""
    found = {}
    for each in role.sets:
        fail = [one for one in each.replicas if one.has_failed(now, 0)]
        newest = [one for one in fail if one.created >= each.served_at]
        waits = seconds
        for _ in newest[1:]:
            waits = min(law.retry_failed_most_s, 2 * waits)
        few = bool(newest) and len(newest) <= each.ready
        if few and not each.unmade and all(one.has_failed(now, waits) for one in newest):
            found[each.name] = len(fail) + each.lost + 1
    return found


def left_alone(memory: RoleMemory, names: Iterable[str], now: float, law: Law) -> RoleMemory:
    """The memory once replicas of these sets were given up since they failed: of each nothing is asked for a while."""
    blocked = dict(memory.blocked)
    for name in names:
        before = blocked.get(name + FAILS)
        if before is None or now >= before.until:
            # Else the plan is behind, and these are the same replicas.
            blocked[name + FAILS] = _again(before, now, law, most=law.retry_failed_most_s)
    return _remembered(memory, blocked)


def _remembered(memory: RoleMemory, blocked: Mapping[str, Blocked]) -> RoleMemory:
    if blocked == memory.blocked:
        return memory
    return replace(memory, blocked={key: blocked[key] for key in sorted(blocked)})


def _again(before: Blocked | None, now: float, law: Law, *, most: float) -> Blocked:
    retry = law.retry_first_s if before is None else min(most, 2 * before.retry_s)
    return Blocked(until=now + retry, retry_s=retry)


def _blocked(
    role: Role, memory: RoleMemory, stuck: Collection[str], now: float, law: Law
) -> dict[str, Blocked]:
    """What is remembered of the sets that were left alone and have not done since what they were left alone for."""
    found = {}
    for each in role.sets:
        block = memory.blocked.get(each.name)
        if block is not None and (each.name in stuck or not _started_since(each, block)):
            found[each.name] = block
        # An only set is not left alone: no other one would have the load meanwhile.
        block = memory.blocked.get(each.name + FAILS) if len(role.sets) > 1 else None
        if block is not None and not _served_since(each, block, now - law.withdraw_s):
            found[each.name + FAILS] = block
    return found


def _stuck(role: Role, now: float, law: Law) -> Mapping[str, int]:
    return {each.name: count for each in role.sets if (count := _unplaced(each, now, law.unplaced_s))}


def _spared(
    role: Role, blocked: Mapping[str, Blocked], stuck: Collection[str], now: float
) -> tuple[frozenset[str], Mapping[str, int]]:
    """Sets that find no GPUs for more, and those of which replicas failed, each with how many may be on their way."""
    waiting = {key for key, each in blocked.items() if now < each.until}
    refused = frozenset(stuck) | {each.name for each in role.sets if each.name in waiting}
    failing = {
        each.name: 0 if each.name + FAILS in waiting else 1
        for each in role.sets
        if (block := blocked.get(each.name + FAILS)) is not None and not _served_since(each, block)
    }
    return refused, failing


def _moved(
    role: Role, count: int, refused: frozenset[str], failing: Mapping[str, int], room: Room | None
) -> Mapping[str, int]:
    """Up to `count` replicas for other sets, by set, where those have room now."""
    if count <= 0 or len(role.sets) < 2:
        return {}
    ones = {each.name: 1.0 for each in role.sets}
    most = count + sum(each.told for each in role.sets)
    after = grown(role, ones, float(count), most=most, blocked=refused, failing=failing, room=room).replicas
    return {each.name: more for each in role.sets if (more := after[each.name] - each.told)}


def _late(each: ServingSet, now: float, law: Law) -> int:
    """How many replicas of a set have waited so long that they are no longer asked for. Surplus ones go anyway, and do not count."""
    return max(0, _unplaced(each, now, law.withdraw_s) - max(0, each.present - each.told))


def _unplaced(each: ServingSet, now: float, seconds: float) -> int:
    return sum(replica.is_unplaced(now, seconds, each.node_s) for replica in each.replicas)


def _started_since(each: ServingSet, block: Blocked) -> bool:
    """Whether a replica got its GPUs after the last refusal: there is room again, so that the next refusal counts as a first one."""
    return any((replica.scheduled or 0.0) > block.since for replica in each.replicas)


def _served_since(each: ServingSet, block: Blocked, until: float = math.inf) -> bool:
    """Whether a replica serves that came to serve after others were given up since they failed, and before `until`."""
    return any(one.state is ReplicaState.READY and block.since < one.since <= until for one in each.replicas)
