"""Which sets grow and which shrink, where a role has more than one: the cheapest grows first, the dearest shrinks first, and
before any replica that serves one that does not. Where no more may be asked for, those that have failed for long make way for others.

Cost is compared for what a replica carries, not for the replica; among those without a price by their devices. Sets that a
rollout moves, that fail, or that could not be placed do not grow. What the fleet's room does not allow is said, not silently
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from plimsoll.control.situation import ReplicaState, Role, Room, ServingSet, claim_of

ROUNDING = 1e-9
REASONS: Final = ("StartFailed", "BudgetExhausted", "GPUsUnavailable")
"""Why sets do not grow, below the maximum: first what a person has to mend, last what may come by itself."""
NONE_FAILED: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """How many replicas each set is to have, and what found no place."""

    replicas: Mapping[str, int]
    limit: str | None = None
    """Why some found no place: a reason of ScalingLimited, or StartFailed. Never None where more was wanted and none was given."""
    besides: tuple[str, ...] = ()
    """Why further sets have none, where that is something else and more of them would have been asked for."""


def _cheapest_first(role: Role, weight: Mapping[str, float]) -> list[ServingSet]:
    """Where they cost the same, in the order of the plan."""

    def cost(each: ServingSet) -> tuple[bool, float]:
        price = each.price_per_hour
        return price is None, (each.gpus if price is None else price) / weight[each.name]

    return sorted(role.sets, key=cost)


def grown(
    role: Role,
    weight: Mapping[str, float],
    units: float,
    *,
    most: int,
    blocked: Collection[str],
    room: Room | None,
    failing: Mapping[str, int] = NONE_FAILED,
    patient: bool = False,
) -> Allotment:
    """The sets with `units` more replicas of the first set, or as good as, and at most `most` replicas in all.

    `blocked` find no GPUs for more. Of `failing` replicas have failed: so many of each may be on their way.
    `patient`: replicas that find no room are asked for all the same, and wait for it; then also of sets that are `blocked` or `failing`.
    """
    told = {each.name: each.told for each in role.sets}
    room = room or Room()
    total, left, held, full = sum(told.values()), units, False, False
    reasons = set[str]()
    ordered = _cheapest_first(role, weight)
    for place, each in enumerate(2 * ordered if patient else ordered):
        if left <= ROUNDING:
            break
        if place == len(ordered):
            blocked, failing, room = (), NONE_FAILED, Room(limits=room.limits)
            reasons.clear()
        if each.name in blocked:
            reasons.add("GPUsUnavailable")
            continue
        if each.name not in failing and _fails(each):
            held = True
            reasons.add("StartFailed")
            continue
        wanted = math.ceil(left / weight[each.name] - ROUNDING)
        if each.name in failing:
            unproven = told[each.name] - min(told[each.name], each.ready)
            may = min(wanted, max(0, failing[each.name] - unproven))
            if may < wanted:
                held = held or unproven > 0
                reasons.add("StartFailed")
            wanted = may
        taken, why = _fits(each, wanted, room)
        if why is not None:
            reasons.add(why)
        if taken > most - total:
            taken, full = max(0, most - total), True
        room = room.after([each], {each.name: each.told + taken})
        told[each.name] += taken
        total += taken
        left -= taken * weight[each.name]
    if left <= ROUNDING:
        return Allotment(replicas=told)
    if full:
        # Those that fail have the places of some that would serve.
        return Allotment(replicas=told, limit="StartFailed" if held else "AtMax")
    why_not = sorted(reasons, key=REASONS.index)
    return Allotment(replicas=told, limit=next(iter(why_not), None), besides=tuple(why_not[1:]))


def in_place(
    role: Role,
    weight: Mapping[str, float],
    units: float,
    failed: Mapping[str, int],
    *,
    blocked: Collection[str],
    failing: Mapping[str, int],
    room: Room | None,
) -> Mapping[str, int] | None:
    """The sets with replicas for `units` more in place of as many of those that have failed, the dearest of which go first; None where no
    other set can grow. While those that go are still there they have their part of budgets, so the others need room beside them."""
    there = sum(each.told for each in role.sets)
    after = dict(
        grown(
            role,
            weight,
            units,
            most=there + sum(failed.values()),
            blocked=blocked,
            failing={**failing, **dict.fromkeys(failed, 0)},
            room=room,
        ).replicas
    )
    left = sum(after.values()) - there
    for each in reversed(_cheapest_first(role, weight)) if left else ():
        going = min(left, failed.get(each.name, 0))
        after[each.name] -= going
        left -= going
    return None if all(after[each.name] == each.told for each in role.sets) else after


def _fails(each: ServingSet) -> bool:
    """Whether a further replica would most likely fail too: one cannot be made, or one fails that was created after the last
    good start. An engine that ends again and again before it serves fails while it loads, too."""
    if each.unmade:
        return True
    return any(
        (replica.state is ReplicaState.FAILED or (replica.begins_anew and not replica.served))
        and replica.created >= each.served_at
        for replica in each.replicas
    )


def _fits(each: ServingSet, wanted: int, room: Room) -> tuple[int, str | None]:
    """How many of those wanted there is room for, and what keeps the others out."""
    taken, why, free = wanted, None, room.gpus
    allowed = room.limits.allows(claim_of(each))
    if allowed is not None and allowed < taken:
        taken, why = allowed, "BudgetExhausted"
    if each.pool in free and each.gpus > 0:
        fits = max(0, math.floor(free[each.pool] / each.gpus + ROUNDING))
        if fits < taken:
            taken, why = fits, "GPUsUnavailable"
    return taken, why


def _in_turn(role: Role, weight: Mapping[str, float]) -> list[tuple[ServingSet, int]]:
    """The order in which replicas go: first those that cannot be made, then those that do not serve, whose end costs nobody an
    answer, and then those that serve. Within each of these the dearest set goes first."""
    ordered = [
        (each, each.unmade, min(each.told, each.ready)) for each in reversed(_cheapest_first(role, weight))
    ]
    return [
        *((each, unmade) for each, unmade, _ in ordered),
        *((each, each.told - unmade - serve) for each, unmade, serve in ordered),
        *((each, serve) for each, _, serve in ordered),
    ]


def spare(role: Role, weight: Mapping[str, float], wanted: float) -> int:
    """How many replicas may go, in that order, while those that are left still carry what is wanted."""
    found, left = 0, sum(each.told * weight[each.name] for each in role.sets) - wanted
    for each, count in _in_turn(role, weight):
        going = max(0, min(count, math.floor(left / weight[each.name] + ROUNDING)))
        found, left = found + going, left - going * weight[each.name]
        if going < count:
            break
    return found


def shrunk(role: Role, weight: Mapping[str, float], count: int, least: int) -> Allotment:
    """The sets with `count` replicas fewer, in that order, and never fewer than `least` in all."""
    told = {each.name: each.told for each in role.sets}
    left = max(0, min(count, sum(told.values()) - least))
    for each, there in _in_turn(role, weight):
        taken = min(left, there)
        told[each.name] -= taken
        left -= taken
    return Allotment(replicas=told)
