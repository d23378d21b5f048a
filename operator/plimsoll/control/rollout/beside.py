"""A set that is tried beside the one that serves: some replicas run with a change while the others are left as they are.

Whoever judges the change says how many run with it. None of it is a rollout: the plan's sets neither fail nor move for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.control.rollout.groups import keeping, leaders, let_go, numbers
from plimsoll.control.rollout.moves import move
from plimsoll.control.rollout.rules import Rules
from plimsoll.control.rollout.targets import First, Rollout, Target, Wanted
from plimsoll.facts.serving import Serving

ONLY: Final = First(
    why="spec.tuning.allowDisruption is not true, so the only replica that serves does not go for it",
    unless="spec.tuning.allowDisruption: true",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    tried: str
    """The set with the change."""
    serves: str
    """The set without it."""
    replicas: int
    """With the change; 0: its replicas go."""
    surge: bool
    """One with the change comes before one without it goes; so there is one replica more until all of them serve and are judged."""
    first: bool = False
    """None without the change goes before one with it serves, though there is not one more any longer."""


def move_beside(
    wanted: Sequence[Wanted], beside: Beside, serving: Serving, rules: Rules, now: float
) -> Rollout:
    """The rollout with some replicas of one set in the tried set. `wanted` are the plan's sets as if nothing were tried."""
    if not beside.replicas:
        return _back(wanted, beside, serving, rules, now)
    seen = serving.set_named(beside.tried)
    others = replace(serving, sets=tuple(one for one in serving.sets if one.name != beside.tried))
    whole = next(one.replicas for one in wanted if one.name == beside.serves)
    count = min(beside.replicas, whole)
    extra = 1 if beside.surge and count else 0
    # The tried set may have been lost on the way. Then those without the change that are still there go one by one too, as others come.
    ready = 0 if seen is None else seen.ready
    serves = serving.set_named(beside.serves)
    there = 0 if serves is None else serves.replicas
    # Their number may have been lowered to one since the others could carry what this one has.
    missing = 0 if beside.surge or beside.first or (_is_one(wanted) and not rules.alone) else 1
    stay = max(whole - count + extra, min(there, whole - missing - ready))
    left = [replace(one, replicas=stay) if one.name == beside.serves else one for one in wanted]
    rollout = move(left, others, rules, now)
    over = frozenset[int]() if seen is None else let_go(seen, now)[0]
    target = Target(
        name=beside.tried,
        replicas=count,
        state="Canary" if count else "Draining",
        planned=True,
        groups=numbers(seen, count, over),
        let_go=leaders(seen, over),
    )
    return replace(rollout, targets=(*rollout.targets, target))


def _back(wanted: Sequence[Wanted], beside: Beside, serving: Serving, rules: Rules, now: float) -> Rollout:
    """Back from the tried set, as from an old set to the plan's: its replicas that serve stay until others serve in their place.

    No rollback goes to the tried set meanwhile, and the user's canary steps do not apply: they are meant for changes of the spec. Nor
    is room waited for without an end where the user asks for a surge: all replicas would keep a setting that was found bad, which is
    worse than one replica fewer. But it is better than none, so the only one waits, unless it may be missing.
    """
    only = _is_one(wanted) and not (rules.alone or rules.replaces)
    surge = max(only, rules.surge if beside.surge else 0)
    rules = replace(
        rules, surge=surge, by_room=not (only or rules.replaces), percents=(), hold=False, automatic=False
    )
    sets = tuple(
        replace(one, replicas=keeping(one, min(one.replicas, one.ready))) if one.name == beside.tried else one
        for one in serving.sets
    )
    rollout = move(wanted, replace(serving, sets=sets), rules, now)
    if rollout.reason != "RollingOut":
        return rollout
    message = f"the change that was tried goes back: {rollout.message}"
    return replace(rollout, message=message, first=ONLY if only else None)


def _is_one(wanted: Sequence[Wanted]) -> bool:
    return sum(one.replicas for one in wanted) == 1
