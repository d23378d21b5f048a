"""Replicas of several pods of which only some have a node: they hold GPUs that serve nobody, and may lock each other out.

Such a group is let go when it has waited for too long, and comes again when no other group of its set waits. The group that lacks
least has twice the time, so that of two groups that each hold what the other lacks one gets it. All of this follows from the pods
that are seen; nothing is remembered.

A LeaderWorkerSet cannot leave out one of its groups: a group is let go by deleting its leader's pod, and comes again at once. So its
groups go one at a time, with as long between them for the others to take what became free. Nor can one be chosen where fewer are wanted:
the last ones go, whether they serve or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.facts.serving import NOWHERE, PodSeen, SetSeen, Stage

HALF_SECONDS: Final = 120.0
"""How long a group waits with only some of its nodes. A cluster autoscaler may take longer to make a node, but a group that has let go and
waits with all its pods gets that node as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """A group some of whose pods have nodes, and others have not."""

    number: int
    placed: int
    pods: int
    since: float
    """Since when none has got a node any more. Nodes that an autoscaler makes come one by one, long after all pods began to wait."""
    why: str
    """The scheduler's sentence about the first of those that wait, or the gate that holds it."""


def halves(seen: SetSeen) -> tuple[Half, ...]:
    """Those that lack least first."""
    found = []
    for number in seen.numbers:
        mine = _members(seen, number)
        waiting = [pod for pod in mine if pod.stage in NOWHERE]
        placed = [pod for pod in mine if pod.node is not None]
        if waiting and placed:
            first = min(waiting, key=lambda pod: (pod.since, pod.name))
            since = max(first.since, *(pod.scheduled or 0.0 for pod in placed))
            found.append(
                Half(number=number, placed=len(placed), pods=len(mine), since=since, why=first.message)
            )
    return tuple(sorted(found, key=lambda one: (-one.placed, one.number)))


def let_go(seen: SetSeen, now: float) -> tuple[frozenset[int], float | None]:
    """Numbers of the groups whose time is over, and in how many seconds the next one's will be."""
    ends = [
        (half.number, half.since + HALF_SECONDS * (2 if best == 0 else 1) - now)
        for best, half in enumerate(halves(seen))
    ]
    over = [number for number, left in ends if left <= 0]
    later = [left for _, left in ends if left > 0]
    if over and seen.one_object:
        pause = _newest(seen) + HALF_SECONDS - now
        over = over[-1:] if pause <= 0 else []
        later += [pause] if pause > 0 else []
    return frozenset(over), min(later, default=None)


def leaders(seen: SetSeen | None, over: frozenset[int]) -> tuple[PodSeen, ...]:
    """The leaders to delete so that these groups go, where a group has no object of its own that could be deleted."""
    if seen is None or not seen.one_object:
        return ()
    return tuple(pod for number in sorted(over) for pod in _members(seen, number) if pod.rank == 0)


def _members(seen: SetSeen, number: int) -> list[PodSeen]:
    """Pods of a group that do not leave. Workers that are older than their leader belong to the leader before, and go with it."""
    mine = [pod for pod in seen.pods if pod.group == number and pod.stage is not Stage.LEAVING]
    if not seen.one_object:
        return mine
    leader = next((pod for pod in mine if pod.rank == 0), None)
    return [] if leader is None else [pod for pod in mine if pod.created >= leader.created]


def _newest(seen: SetSeen) -> float:
    """When the newest of the groups that still wait for nodes was made."""
    waiting = {pod.group for pod in seen.pods if pod.stage in NOWHERE}
    return max(pod.created for pod in seen.pods if pod.group in waiting and pod.rank == 0)


def numbers(seen: SetSeen | None, count: int, over: frozenset[int]) -> tuple[int, ...]:
    """Numbers of the groups that stay or come.

    First those that serve, then others that are there, of which those go first whose engines end, and then those that wait for a node; then
    the lowest free numbers. Where one of the groups waits for nodes, no further one comes to wait beside it.
    """
    there: Sequence[int] = () if seen is None else seen.groups
    whole = {number for number in there if seen is not None and seen.whole(number)}
    # An engine that has restarted may end again at any moment, so it ranks with those that have ended.
    pods = () if seen is None else seen.pods
    end = {pod.group for pod in pods if pod.stage is Stage.FAILED or pod.restarts}
    nowhere = {pod.group for pod in pods if pod.stage in NOWHERE}

    def rank(number: int) -> tuple[bool, bool, bool, int]:
        return number not in whole, number in end - whole, number in nowhere, number

    kept = sorted(there, key=rank)[:count]
    stay = [number for number in kept if number not in over]
    waits = seen is not None and any(pod.stage is Stage.UNSCHEDULED for pod in seen.pods)
    if over or (there and waits):
        return tuple(sorted(stay))
    free = (number for number in range(count + len(there)) if number not in there)
    return tuple(sorted([*stay, *(next(free) for _ in range(count - len(stay)))]))


def still_serving(seen: SetSeen, count: int) -> int:
    """How many of those that serve now are left where a set is told to have `count` replicas."""
    if not seen.one_object:
        return min(count, seen.ready)
    return sum(seen.whole(number) for number in range(min(count, seen.replicas)))


def keeping(seen: SetSeen, count: int) -> int:
    """Replicas that a set is told to have so that no more of those that serve go than of `count` have to."""
    most = max(count, seen.replicas)
    kept = min(count, still_serving(seen, most))
    return next(asked for asked in range(count, most + 1) if still_serving(seen, asked) >= kept)


def told(seen: SetSeen) -> str | None:
    """The half-scheduled groups of a set in a sentence; None where there are none."""
    found = halves(seen)
    if not found:
        return None
    each = ", ".join(f"group {one.number} has nodes for {one.placed} of its {one.pods} pods" for one in found)
    why = found[0].why
    return (
        f"{seen.name}: {each}; what waits for longer than {HALF_SECONDS:.0f} s lets its GPUs go and is tried again"
        + (f" ({why})" if why else "")
    )
