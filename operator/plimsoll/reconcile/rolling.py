"""How replicas move to the sets of a plan: which these are, by which rules, and with the set that a retune tries beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.rollout import Rollout, Rules, move, rules_of
from plimsoll.control.rollout.beside import Beside, move_beside
from plimsoll.control.rollout.leaving import leave
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.groups import Reservation
from plimsoll.planning.placing.budgets import claim_of
from plimsoll.planning.placing.placement import room
from plimsoll.planning.plan import Plan
from plimsoll.reconcile.changing import Changed, change_of
from plimsoll.reconcile.promises import promises, standing
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.render.sets import freeze, set_name


def revisions_of(seen: Seen, made: Plan) -> dict[str, Revision]:
    """Of the plan's sets in its order: those that are there as they were made, the others made now."""
    facts = seen.facts.engine or engine_facts(made.engine, made.engine_version)
    found = {}
    for chosen in made.sets:
        name = set_name(seen.deployment, chosen, facts=facts, config=seen.config, there=seen.revisions)
        found[name] = seen.revisions.get(name) or freeze(
            seen.deployment, chosen, facts=facts, config=seen.config, model=seen.facts.model
        )
    return found


def rules_for(seen: Seen, spec: LLMDeploymentSpec, made: Plan, revisions: Mapping[str, Revision]) -> Rules:
    room_now = _room(seen, made)
    return rules_of(spec, room=room_now, deadline_seconds=longest_start(revisions))


def longest_start(revisions: Mapping[str, Revision]) -> int:
    return max(revision.start_seconds for revision in revisions.values())


def rollout_of(
    seen: Seen, wanted: Sequence[Wanted], rules: Rules, trial: tuple[Revision, Changed] | None
) -> Rollout:
    """With the set that a retune tries beside the plan's, where it does."""
    if trial is None:
        return move(wanted, seen.serving, rules, seen.now)
    tried, change = trial
    beside = Beside(
        tried=tried.name,
        serves=wanted[change.place].name,
        replicas=change.effect.replicas,
        surge=change.effect.surge,
        first=change.effect.first,
    )
    rollout = move_beside(wanted, beside, seen.serving, rules, seen.now)
    return leave(rollout, seen.serving, rules, seen.now)


def trial_of(seen: Seen, made: Plan, named: Sequence[str]) -> tuple[Revision, Changed] | None:
    """The set that a retune tries beside the plan's own, which are `named`; None where there is none.

    Nor is there one where an edit makes the plan's set another one: the retune's next look drops it, and the set with its change
    goes as any old set does.
    """
    if seen.kept.control is None:
        return None
    change = change_of(made, seen.kept.control.retune)
    if change is None or change.effect.adopt or change.serves not in ("", named[change.place]):
        return None
    (revision,) = revisions_of(seen, replace(made, sets=(change.entry,))).values()
    return revision, change


def trial_there(seen: Seen, made: Plan, named: Sequence[str]) -> tuple[Revision, Changed] | None:
    """The same while the spec cannot be planned: a set that is not there yet is not made then."""
    try:
        trial = trial_of(seen, made, named) if len(named) == len(made.sets) else None
    except SpecError:
        return None
    return trial if trial is not None and trial[0].name in seen.revisions else None


def promised(seen: Seen, made: Plan, sets: Iterable[str], rollout: Rollout) -> tuple[Reservation, ...]:
    if rollout.reason == "RolledBack":
        return standing(seen)
    return promises(seen, made, sets)


def _room(seen: Seen, made: Plan) -> int:
    """How many further replicas of the plan's first set would find free devices where it is placed, and are allowed by what is left of the
    namespace's budget beside all that are there and those that are still missing."""
    chosen = made.sets[0]
    free = sum(
        room(pool, chosen.shape, chosen.layout)
        for pool in seen.inventory.pools
        if pool.key in {placement.pool for placement in chosen.placements}
    )
    if seen.limits is None:
        return free
    # The most replicas of one deployment are those that stay.
    left, missing = replace(seen.limits, replicas=None), sum(one.replicas for one in made.sets)
    for one in seen.serving.sets:
        if one.name in seen.revisions:
            there = max(one.replicas, math.ceil(len(one.pods) / one.pods_per_replica))
            left, missing = left.less(claim_of(seen.revisions[one.name].entry), there), missing - there
    allowed = left.allows(claim_of(chosen))
    return free if allowed is None else max(0, min(free, allowed - max(0, missing)))
