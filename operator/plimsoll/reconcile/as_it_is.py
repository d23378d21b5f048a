"""What serves goes on as it is: the spec is wrong, not allowed, or says that everything is to stand still.

Nothing of such a spec reaches a pod. Yet numbers of replicas, drains and what control remembers go on where they may.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.control.rollout import Rollout, rules_of
from plimsoll.control.rollout.leaving import leave
from plimsoll.control.rollout.targets import Target, Wanted
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.reconcile.budget import budget
from plimsoll.reconcile.changing import change_of
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.manifests import workloads
from plimsoll.reconcile.promises import standing
from plimsoll.reconcile.rolling import longest_start, promised, rollout_of, rules_for, trial_there
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.render.sets import owner_of
from plimsoll.render.shared import plan_object


def as_it_is(seen: Seen, made: Plan, stored: Kept, *, looked_at: bool) -> Decision:
    """The spec is wrong or not allowed, so nothing of it reaches a pod: the sets that serve go on as they are.

    All that is written is their numbers of replicas, which a person may lower and live traffic may change, how many pods a drain may
    take, and what control remembers where that is not `stored` yet. A retune goes on only where it is `looked_at`.
    """
    deployment = seen.deployment
    there: dict[str, Revision] = {}
    serves, wanted = [], []
    change = None if seen.kept.control is None else change_of(made, seen.kept.control.retune)
    tries = not looked_at and change is not None and change.effect.replicas > 0
    for chosen in made.sets:
        if (name := _made_of(seen, chosen, serves=tries)) is not None:
            there[name] = seen.revisions[name]
            serves.append(chosen)
            wanted.append(Wanted(name, chosen.replicas))
    if not wanted:
        return Decision(plan=made, kept=seen.kept, reservations=standing(seen))
    rules = rules_for(seen, deployment.spec, made, there)
    trial = trial_there(seen, made, [one.name for one in wanted]) if looked_at else None
    rollout = rollout_of(seen, wanted, rules, trial)
    known_sets = {
        target.name: seen.revisions[target.name]
        for target in rollout.targets
        if target.name in seen.revisions
    }
    held = budget(deployment, made, rollout, known_sets, blind=seen.inventory.nodes_unseen)
    manifests = (held, *workloads(deployment, rollout, known_sets))
    kept = seen.kept.numbered(made)
    if kept.plan is not None and (kept.plan, kept.control) != (stored.plan, stored.control):
        manifests = (*manifests, plan_object(owner_of(deployment), kept.plan, kept.beside()))
    return Decision(
        plan=made,
        kept=kept,
        rollout=replace(rollout, failed=()),
        revisions=known_sets,
        manifests=manifests,
        reservations=promised(seen, replace(made, sets=tuple(serves)), there, rollout),
        look_again_seconds=rollout.look_again_seconds,
        prune=False,
    )


def standing_still(seen: Seen, made: Plan) -> Decision:
    """Paused: everything stays as it is, and the status tells so. Only how many pods a drain may take is kept up to date."""
    planned = {chosen.digest for chosen in made.sets}
    targets = tuple(
        Target(
            name=one.name,
            replicas=one.replicas,
            state="Serving" if one.ready >= one.replicas else "Starting",
            planned=one.name in seen.revisions and seen.revisions[one.name].entry.digest in planned,
        )
        for one in seen.serving.sets
    )
    rollout = Rollout(targets=targets, reason="Held", message="spec.paused is true")
    there = {one.name: seen.revisions[one.name] for one in targets if one.name in seen.revisions}
    manifests: tuple[Manifest, ...] = ()
    if there:
        # No replica comes first, but a node can be drained.
        rules = rules_of(seen.deployment.spec, room=0, deadline_seconds=longest_start(there))
        rollout = leave(rollout, seen.serving, replace(rules, surge=0), seen.now)
        manifests = (
            budget(
                seen.deployment, seen.kept.plan or made, rollout, there, blind=seen.inventory.nodes_unseen
            ),
        )
    return Decision(
        plan=made,
        kept=seen.kept,
        rollout=rollout,
        revisions=there,
        manifests=manifests,
        reservations=standing(seen),
        look_again_seconds=rollout.look_again_seconds,
        prune=False,
        frozen=True,
    )


def _made_of(seen: Seen, chosen: PlanSet, *, serves: bool) -> str | None:
    """Name of the set that was made of the plan's entry: one that serves; and where it need not, one without replicas, as of what sleeps.
    None where there is none, or it was given up."""
    there = [
        known
        for name, revision in sorted(seen.revisions.items())
        if revision.entry.digest == chosen.digest
        and (known := seen.serving.set_named(name)) is not None
        and not known.failed
        and (known.replicas or not serves)
    ]
    return next((one.name for one in sorted(there, key=lambda one: not one.replicas)), None)
