"""A set that is tried beside the one that serves: some replicas run with a change while the others are left as they are.

Whoever judges the change says how many run with it. None of it is a rollout: the plan's sets neither fail nor move for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.control.rollout.groups import let_go, numbers
from plimsoll.control.rollout.moves import move
from plimsoll.control.rollout.rules import Rules
from plimsoll.control.rollout.targets import Rollout, Target, Wanted
from plimsoll.facts.serving import Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    tried: str
    """The set with the change."""
    serves: str
    """The set without it."""
    replicas: int
    """With the change; 0: its replicas go."""
    surge: bool
    """One with the change comes before one without it goes."""


def move_beside(
    wanted: Sequence[Wanted], beside: Beside, serving: Serving, rules: Rules, now: float
) -> Rollout:
    """`wanted` are the plan's sets as if nothing were tried."""
    seen = serving.set_named(beside.tried)
    others = replace(serving, sets=tuple(one for one in serving.sets if one.name != beside.tried))
    ready = 0 if seen is None else seen.ready
    whole = next(one.replicas for one in wanted if one.name == beside.serves)
    count = min(beside.replicas, whole)
    # The replica that came first stays until all with the change serve, so that never fewer do.
    extra = 1 if beside.surge and count and ready < whole else 0
    left = [
        replace(one, replicas=whole - count + extra) if one.name == beside.serves else one for one in wanted
    ]
    rollout = move(left, others, rules, now)
    gone = count == 0 and (seen is None or not (seen.pods or seen.replicas))
    if gone:
        return rollout
    over = frozenset[int]() if seen is None else let_go(seen, now)[0]
    target = Target(
        name=beside.tried,
        replicas=count,
        state="Canary" if count else "Draining",
        planned=True,
        groups=numbers(seen, count, over),
    )
    return replace(rollout, targets=(*rollout.targets, target))
