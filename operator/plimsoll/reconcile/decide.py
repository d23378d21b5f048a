"""The pure middle of a turn: from everything that is seen of a deployment to everything that should be there.

`plimsoll render` asks the same function with a snapshot, so what it prints is what the operator applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import Problem, SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.decision import Told
from plimsoll.control.rollout import Rollout, Rules, move, rules_of
from plimsoll.control.rollout.beside import Beside, move_beside
from plimsoll.control.rollout.leaving import leave
from plimsoll.control.rollout.targets import Target, Wanted
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.objects import Manifest
from plimsoll.planning.pinning import Event, spec_digest
from plimsoll.planning.placing.placement import room
from plimsoll.planning.plan import Finding, Outcome, Plan, PlanSet, Severity
from plimsoll.reconcile.budget import budget
from plimsoll.reconcile.changing import Changed, change_of
from plimsoll.reconcile.direction import kept_by, wished
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.manifests import manifests_of, workloads
from plimsoll.reconcile.observing import better
from plimsoll.reconcile.promises import promises, standing
from plimsoll.reconcile.retry import planned
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.render.routing import unserved
from plimsoll.render.sets import freeze, owner_of, set_name
from plimsoll.render.shared import plan_object

LOST_SECONDS: Final = 600.0
"""How long nothing may be able to hold a pinned plan before it is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    plan: Plan
    kept: Kept
    rollout: Rollout | None = None
    """None where nothing runs and nothing should."""
    revisions: Mapping[str, Revision] = field(default_factory=dict)
    """Of the sets that should exist."""
    manifests: tuple[Manifest, ...] = ()
    """All objects that should be there, the pinned plan last."""
    reservations: tuple[Reservation, ...] = ()
    """Devices that pods will take that are not on a node yet."""
    look_again_seconds: float | None = None
    lost: bool = False
    """Nothing could hold the pinned plan."""
    better: Told | None = None
    """What to declare, where the traffic that is seen would make another plan."""
    prune: bool = True
    """Whether what is not among the manifests is to go."""
    spared: frozenset[str] = frozenset()
    """Labels of sets that serve but whose revision cannot be read: nobody knows what they are, so nobody ends them."""
    unserved: tuple[Problem, ...] = ()
    """What the user asked for and cannot be made: mostly the cluster does not serve its kind."""
    frozen: bool = False
    """spec.paused: only status is written, and the PodDisruptionBudget."""


def decide(seen: Seen) -> Decision:
    spec = _effective(seen.deployment, seen.config)
    found = _decided(seen, spec)
    if spec is None or not found.revisions:
        return found
    return replace(found, unserved=unserved(spec, tuple(found.revisions.values()), seen.capabilities))


def foreseen(seen: Seen) -> Plan:
    """The plan that decide() would make at a first look, without the objects: for those who only ask whether a resource may be let
    in. Pods that cannot be written down are errors here too."""
    made = seen.plan(seen.deployment)
    if not made.sets or any(found.severity is Severity.ERROR for found in made.findings):
        return made
    try:
        _revisions(seen, made, seen.config)
    except SpecError as error:
        return _refused(made, error)
    return made


def _decided(seen: Seen, spec: LLMDeploymentSpec | None) -> Decision:
    deployment, admin = seen.deployment, seen.config
    asked = deployment.metadata.annotations.get(names.ANNOTATION_REPLAN, "")
    kept = seen.kept if spec is None else seen.kept.of(spec)
    seen = replace(seen, kept=kept_by(kept, seen.direction))
    pinned = _standing(seen, spec)
    event = _event(seen, asked)
    if event is Event.REQUESTED:
        seen = _forgiven(seen)
    made, seen = planned(seen, spec, pinned, event, wished(spec, seen.kept, seen.direction))
    if seen.direction is not None and seen.direction.reason and made.sets:
        made = replace(made, replicas_reason=seen.direction.reason)
    lost = any(found.reason == "HardwareGone" for found in made.findings)
    if not made.sets:
        kept = _kept(seen, made, asked, settled=False)
        return Decision(plan=made, kept=kept, reservations=standing(seen), lost=lost)
    if deployment.spec.paused is True:
        return replace(_standing_still(seen, made), lost=lost)
    if spec is None or any(found.severity is Severity.ERROR for found in made.findings):
        return replace(_as_it_is(seen, made, kept, looked_at=spec is not None), lost=lost)
    try:
        revisions = _revisions(seen, made, admin)
    except SpecError as error:
        return Decision(plan=_refused(made, error), kept=seen.kept, reservations=standing(seen), lost=lost)
    return replace(_rolled_out(seen, spec, made, revisions, asked), lost=lost)


def _rolled_out(
    seen: Seen, spec: LLMDeploymentSpec, made: Plan, revisions: Mapping[str, Revision], asked: str
) -> Decision:
    """The next step from what serves to a plan that can be written down, whose sets these are."""
    admin = seen.config
    trial = _trial(seen, made, tuple(revisions), admin)
    wanted = [Wanted(name, chosen.replicas) for name, chosen in zip(revisions, made.sets, strict=True)]
    rollout = _rollout(seen, wanted, _rules(seen, spec, made.sets[0], revisions), trial)
    kept = _kept(seen, made, asked, settled=rollout.settled)
    existing = {**seen.revisions, **revisions}
    if trial is not None:
        existing[trial[0].name] = trial[0]
    there = {target.name: existing[target.name] for target in rollout.targets if target.name in existing}
    return Decision(
        plan=made,
        kept=kept,
        rollout=rollout,
        revisions=there,
        manifests=manifests_of(seen, rollout, kept, there),
        reservations=_promised(seen, made, revisions, rollout),
        look_again_seconds=rollout.look_again_seconds,
        better=_better(seen, spec, made) if rollout.settled else None,
        spared=frozenset(
            one.name[-names.SET_HASH_LENGTH :]
            for one in seen.serving.sets
            if (one.replicas or one.pods) and one.name not in existing
        ),
    )


def _rollout(
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


def _as_it_is(seen: Seen, made: Plan, stored: Kept, *, looked_at: bool) -> Decision:
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
    room_now = _room(made.sets[0], seen.inventory)
    rules = rules_of(deployment.spec, room=room_now, deadline_seconds=_longest_start(there))
    trial = _trial_there(seen, made, [one.name for one in wanted]) if looked_at else None
    rollout = _rollout(seen, wanted, rules, trial)
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
        reservations=_promised(seen, replace(made, sets=tuple(serves)), there, rollout),
        look_again_seconds=rollout.look_again_seconds,
        prune=False,
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


def _promised(seen: Seen, made: Plan, sets: Iterable[str], rollout: Rollout) -> tuple[Reservation, ...]:
    if rollout.reason == "RolledBack":
        return standing(seen)
    return promises(seen, made, sets)


def _standing_still(seen: Seen, made: Plan) -> Decision:
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
        rules = rules_of(seen.deployment.spec, room=0, deadline_seconds=_longest_start(there))
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


def _forgiven(seen: Seen) -> Seen:
    """A person asked for a new plan, so sets that were given up may be tried again."""
    sets = tuple(replace(one, failed="") for one in seen.serving.sets)
    return replace(seen, serving=replace(seen.serving, sets=sets))


def _better(seen: Seen, spec: LLMDeploymentSpec, made: Plan) -> Told | None:
    return better(seen.deployment, spec, seen.kept.control, made, seen.plan)


def _trial(
    seen: Seen, made: Plan, named: Sequence[str], admin: OperatorConfig
) -> tuple[Revision, Changed] | None:
    """The set that a retune tries beside the plan's own, which are `named`; None where there is none.

    Nor is there one where an edit makes the plan's set another one: the retune's next look drops it, and the set with its change
    goes as any old set does.
    """
    if seen.kept.control is None:
        return None
    change = change_of(made, seen.kept.control.retune)
    if change is None or change.effect.adopt or change.serves not in ("", named[change.place]):
        return None
    (revision,) = _revisions(seen, replace(made, sets=(change.entry,)), admin).values()
    return revision, change


def _trial_there(seen: Seen, made: Plan, named: Sequence[str]) -> tuple[Revision, Changed] | None:
    """The same while the spec cannot be planned: a set that is not there yet is not made then."""
    try:
        trial = _trial(seen, made, named, seen.config) if len(named) == len(made.sets) else None
    except SpecError:
        return None
    return trial if trial is not None and trial[0].name in seen.revisions else None


def _effective(deployment: LLMDeployment, admin: OperatorConfig) -> LLMDeploymentSpec | None:
    """None where the spec names a preset that does not exist, which the plan says."""
    try:
        return effective(deployment.spec, deployment.namespace, admin).spec
    except SpecError:
        return None


def _standing(seen: Seen, spec: LLMDeploymentSpec | None) -> Plan | None:
    """The plan that counts as pinned: the last one, or the one before where the user has gone back to its spec while its sets are
    still there."""
    current, previous = seen.kept.plan, seen.kept.previous
    if spec is None or previous is None or current is None:
        return current
    digest = spec_digest(spec)
    return previous if current.spec_digest != digest == previous.spec_digest else current


def _event(seen: Seen, asked: str) -> Event | None:
    if asked and asked != seen.kept.asked:
        return Event.REQUESTED
    if seen.gone_since is not None and seen.now - seen.gone_since >= LOST_SECONDS:
        return Event.LOST_HARDWARE
    return None


def _kept(seen: Seen, made: Plan, asked: str, *, settled: bool) -> Kept:
    """What is kept from now on. A plan without sets is told, but never takes the place of one that serves."""
    if not made.sets:
        return replace(seen.kept, asked=asked)
    left = seen.kept.plan
    previous = left if left is not None and left.spec_digest != made.spec_digest else seen.kept.previous
    # Why it was made or kept is this turn's to tell; kept with it, each plan would be written twice.
    return Kept(
        plan=replace(made, pinning=None),
        previous=None if settled else previous,
        asked=asked,
        control=seen.kept.control,
        retry=seen.kept.retry,
        served=seen.kept.served,
        models=seen.kept.models,
    )


def _revisions(seen: Seen, made: Plan, admin: OperatorConfig) -> dict[str, Revision]:
    """Of the plan's sets in its order: those that are there as they were made, the others made now."""
    facts = seen.facts.engine or engine_facts(made.engine, made.engine_version)
    found = {}
    for chosen in made.sets:
        name = set_name(seen.deployment, chosen, facts=facts, config=admin, there=seen.revisions)
        found[name] = seen.revisions.get(name) or freeze(
            seen.deployment, chosen, facts=facts, config=admin, model=seen.facts.model
        )
    return found


def _rules(seen: Seen, spec: LLMDeploymentSpec, lead: PlanSet, revisions: Mapping[str, Revision]) -> Rules:
    room_now = _room(lead, seen.inventory)
    return rules_of(spec, room=room_now, deadline_seconds=_longest_start(revisions))


def _longest_start(revisions: Mapping[str, Revision]) -> int:
    return max(revision.start_seconds for revision in revisions.values())


def _room(chosen: PlanSet, inventory: Inventory) -> int:
    """How many further replicas of the set would find free devices, where it is placed."""
    return sum(
        room(pool, chosen.shape, chosen.layout)
        for pool in inventory.pools
        if pool.key in {placement.pool for placement in chosen.placements}
    )


def _refused(made: Plan, error: SpecError) -> Plan:
    """A plan whose pods cannot be written down: told as any other contradiction of the spec."""
    findings = tuple(
        Finding(
            severity=Severity.ERROR,
            reason="InvalidSpec",
            message=problem.message,
            field=problem.field.removeprefix("spec."),
            value=problem.value,
        )
        for problem in error.problems
    )
    return replace(made, outcome=Outcome.INVALID, sets=(), findings=(*findings, *made.findings))
