"""Replicas of several pods that have only some of their nodes: they hold GPUs that serve nobody, and may lock each other out.

A group is let go when it has waited for too long, and comes again when no other of its set waits. The one that lacks least
is given twice the time, so that of two groups that each hold what the other lacks one gets it. All of it is told from the
pods that are seen; nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.facts.serving import SetSeen, Stage

HALF_SECONDS: Final = 120.0
"""A cluster autoscaler makes a node in one to three minutes, but then a group that waits whole gets it as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """A group some of whose pods have nodes, and others have not."""

    number: int
    placed: int
    pods: int
    since: float
    """When the first of those that wait began to."""
    why: str
    """The scheduler's sentence about it."""


def halves(seen: SetSeen) -> tuple[Half, ...]:
    """Those that lack least first."""
    found = []
    for number in seen.groups:
        mine = [pod for pod in seen.pods if pod.group == number and pod.stage is not Stage.LEAVING]
        waiting = [pod for pod in mine if pod.stage is Stage.UNSCHEDULED]
        placed = sum(pod.node is not None for pod in mine)
        if waiting and placed:
            first = min(waiting, key=lambda pod: (pod.since, pod.name))
            found.append(
                Half(number=number, placed=placed, pods=len(mine), since=first.since, why=first.message)
            )
    return tuple(sorted(found, key=lambda one: (-one.placed, one.number)))


def let_go(seen: SetSeen, now: float) -> tuple[frozenset[int], float | None]:
    """Numbers of the groups whose time is over, and in how many seconds the next one's is."""
    ends = [
        (half.number, half.since + HALF_SECONDS * (2 if best == 0 else 1) - now)
        for best, half in enumerate(halves(seen))
    ]
    over = frozenset(number for number, left in ends if left <= 0)
    return over, min((left for _, left in ends if left > 0), default=None)


def numbers(seen: SetSeen | None, count: int, over: frozenset[int]) -> tuple[int, ...]:
    """Which groups stay or come: those that serve, then those that are there, then the lowest free numbers.

    Where groups are there and one of them waits for nodes, no further one comes to wait beside it.
    """
    there: Sequence[int] = () if seen is None else seen.groups
    whole = {number for number in there if seen is not None and seen.whole(number)}
    kept = sorted(there, key=lambda number: (number not in whole, number))[:count]
    stay = [number for number in kept if number not in over]
    waits = seen is not None and any(pod.stage is Stage.UNSCHEDULED for pod in seen.pods)
    if over or (there and waits):
        return tuple(sorted(stay))
    free = (number for number in range(count + len(there)) if number not in there)
    return tuple(sorted([*stay, *(next(free) for _ in range(count - len(stay)))]))


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
