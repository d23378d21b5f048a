"""The pure middle of a turn: from everything that is seen of a deployment to everything that should be there.

`plimsoll render` asks the same function with a snapshot, so what it prints is what the operator applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.decision import Told
from plimsoll.control.rollout.targets import Wanted
from plimsoll.planning.pinning import Event, spec_digest
from plimsoll.planning.plan import Finding, Outcome, Plan, Severity
from plimsoll.reconcile.as_it_is import as_it_is, standing_still
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.direction import kept_by, wished
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.manifests import manifests_of
from plimsoll.reconcile.observing import better
from plimsoll.reconcile.promises import standing
from plimsoll.reconcile.retry import planned
from plimsoll.reconcile.rolling import promised, revisions_of, rollout_of, rules_for, trial_of
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.render.routing import unserved

LOST_SECONDS: Final = 600.0
"""How long nothing may be able to hold a pinned plan before it is made anew."""


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
        revisions_of(seen, made)
    except SpecError as error:
        return _refused(made, error)
    return made


def _decided(seen: Seen, spec: LLMDeploymentSpec | None) -> Decision:
    deployment = seen.deployment
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
        return replace(standing_still(seen, made), lost=lost)
    if spec is None or any(found.severity is Severity.ERROR for found in made.findings):
        return replace(as_it_is(seen, made, kept, looked_at=spec is not None), lost=lost)
    try:
        revisions = revisions_of(seen, made)
    except SpecError as error:
        return Decision(plan=_refused(made, error), kept=seen.kept, reservations=standing(seen), lost=lost)
    return replace(_rolled_out(seen, spec, made, revisions, asked), lost=lost)


def _rolled_out(
    seen: Seen, spec: LLMDeploymentSpec, made: Plan, revisions: Mapping[str, Revision], asked: str
) -> Decision:
    """The next step from what serves to a plan that can be written down, whose sets these are."""
    trial = trial_of(seen, made, tuple(revisions))
    wanted = [Wanted(name, chosen.replicas) for name, chosen in zip(revisions, made.sets, strict=True)]
    rollout = rollout_of(seen, wanted, rules_for(seen, spec, made, revisions), trial)
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
        reservations=promised(seen, made, revisions, rollout),
        look_again_seconds=rollout.look_again_seconds,
        better=_better(seen, spec, made) if rollout.settled else None,
        spared=frozenset(
            one.name[-names.SET_HASH_LENGTH :]
            for one in seen.serving.sets
            if one.lives and one.name not in existing
        ),
    )


def _forgiven(seen: Seen) -> Seen:
    """A person asked for a new plan, so sets that were given up may be tried again."""
    sets = tuple(replace(one, failed="") for one in seen.serving.sets)
    return replace(seen, serving=replace(seen.serving, sets=sets))


def _better(seen: Seen, spec: LLMDeploymentSpec, made: Plan) -> Told | None:
    return better(seen.deployment, spec, seen.kept.control, made, seen.plan)


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
