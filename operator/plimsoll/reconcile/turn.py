"""One turn of one deployment: observe, decide, apply, tell. Level-triggered: it starts from what is there, so that a lost
event, a crash between two writes or a hand-edited child costs one more turn and nothing else.

A user's mistake ends in a condition, and waits for an edit; whatever the API server answers ends in another turn. A mistake of
ours ends in both: a condition, and turns that come ever less often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError, problems_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.control.decision import Told
from plimsoll.control.rollout.failing import steady
from plimsoll.engines.vllm import served_names
from plimsoll.facts.serving import Serving
from plimsoll.kube.applier import Applied
from plimsoll.kube.errors import KubeError
from plimsoll.planning.placing.budgets import Limits
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.books import as_serving
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.lessons.recorded import ramp_told
from plimsoll.reconcile.promises import lacks_nodes
from plimsoll.reconcile.reading_models import clear, read_models
from plimsoll.reconcile.rebuild import restored
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.settled import settled
from plimsoll.reconcile.told_models import ModelReadings
from plimsoll.reconcile.world import World
from plimsoll.render.adapters import list_ref
from plimsoll.render.revision import Revision
from plimsoll.render.sets import owner_of
from plimsoll.render.shared import endpoint, plan_ref
from plimsoll.status.live import timestamp
from plimsoll.status.story import Story, Trouble
from plimsoll.status.told import news, ramp_news, status_after, status_after_failure, unreadable, warning_news

LOG: Final = logging.getLogger(__name__)
RESYNC_SECONDS: Final = 3600.0
"""How long a deployment that needs nothing is left alone: then a better plan is looked for."""
UNREADY_SECONDS: Final = 300.0
"""The same while it does not serve, when the mere passing of time may change what is to be done."""
RETRY_SECONDS: Final = 15.0
MOVED_SECONDS: Final = 1.0
"""Until a turn is taken again during which the fleet has changed: not at once, as some fleets change all the time."""


async def turn(world: World, key: str) -> float | None:
    """In how many seconds to look again, if nothing wakes it before."""
    body = world.resources.get(key)
    if body is None or (body.get("metadata") or {}).get("deletionTimestamp"):
        world.forget(key)
        return None
    try:
        deployment = LLMDeployment.observed(body)
    except ValidationError as error:
        await _tell_unreadable(world, body, error)
        return None
    try:
        return await _turn(world, key, deployment, body)
    except Exception as error:
        # What it was to look at is still to be looked at.
        world.looked_at[key] = 0.0
        if not isinstance(error, KubeError):
            with suppress(KubeError):
                await _tell_failed(world, key, error)
        raise


async def _turn(world: World, key: str, deployment: LLMDeployment, body: Mapping[str, Any]) -> float:
    first = key not in world.looked_at
    # A moment that is still to come was noted before a clock was put back: it counts as now.
    since = world.looked_at[key] = min(world.looked_at.get(key, world.now()), world.now())
    serving, unsteady = steady(world.serving(key), world.now())
    world.measured.look(key, serving)
    ready = get_condition(deployment.status.conditions, names.READY)
    patience = RESYNC_SECONDS if ready is not None and ready.status == "True" else UNREADY_SECONDS
    # Which devices were promised, and who waits for the fleet to change, is not remembered over a restart.
    due = world.now() - since >= patience or (first and lacks_nodes(serving))
    if not due and _needs_nothing(world, key, deployment, serving):
        _still_hungry(world, key, deployment)
        live = _live(world, key)
        world.books.note(deployment, deployment.status, serving, world.config, world.now(), live=live)
        return patience if unsteady is None else min(patience, unsteady)
    world.looked_at[key] = world.now()
    if not deployment.status.conditions and not world.models.knows(deployment.spec):
        # A hub may take seconds, and a kind without conditions counts as done to those who wait for it.
        await _tell(world, deployment, Story(deployment=deployment, plan=None, rollout=None), body)
    seen, decision, read = await _decide(world, key, deployment)
    applied = await _apply(world, deployment, decision)
    nudge_again = await _nudge(world, key, seen, decision)
    world.wrote(key, decision.kept, decision.revisions, applied.written)
    if list_ref(owner_of(deployment)) in applied.written:
        world.measured.reports.again(key)
    await clear(world, key, read)
    _remember(world, key, seen, decision)
    world.measured.learn(key, seen, decision)
    reports = world.measured.reports.of(key)
    ramp = world.ramps.look(key, seen, decision, world.measured)
    story = replace(_story(seen, decision, applied), reports=reports, ramp=ramp_told(ramp, seen.now))
    await _tell(world, deployment, story, body)
    if seen.direction is not None:
        # Not before it is told: what fails on the way is done again.
        world.directed[key] = seen.direction
    unkept = ramp is None and world.ramps.waits(key)
    world.measured.told(key, reports)
    again = [decision.look_again_seconds, world.models.retry_seconds(seen.facts), unsteady, patience]
    again += [read.again_seconds, nudge_again]
    if unkept or not applied.lasts:
        again.append(RETRY_SECONDS)
    elif not applied.complete:
        again.append(UNREADY_SECONDS)
    if key in world.hungry and world.inventory(key) != seen.inventory:
        # The fleet moved while this was decided and written, when nobody knew yet that it waits for that.
        world.looked_at[key] = 0.0
        again.append(MOVED_SECONDS)
    return min(seconds for seconds in again if seconds is not None)


def _needs_nothing(world: World, key: str, deployment: LLMDeployment, serving: Serving) -> bool:
    """Whether the last turn's work stands, and nobody has said anything since that a turn would have to answer."""
    return (
        not world.asks(key)
        and not world.measured.news(key, deployment.status)
        and not (world.facts_pods is not None and world.facts_pods.of(key))
        and settled(deployment, world.cluster.children(key), serving, world.mark)
    )


async def _decide(world: World, key: str, deployment: LLMDeployment) -> tuple[Seen, Decision, ModelReadings]:
    """Everything that a decision starts from, and the decision itself.

    What takes an answer of somebody else is read first, so that all the rest is of one moment; and only one decision is made at a
    time, as each starts from what the others were promised.
    """
    kept, revisions = await world.left(key)
    read = await read_models(world, key, deployment, kept.models)
    kept = replace(kept, models=read.kept, asked="" if read.anew else kept.asked)
    await world.read_budget(key)
    async with world.deciding:
        limits = world.limits(key)
        seen = _seen(world, key, deployment, facts=read.facts, kept=kept, revisions=revisions, limits=limits)
        decision = await asyncio.get_running_loop().run_in_executor(world.thinking, decide, seen)
        world.promise(key, decision.kept, decision.reservations)
    world.books.planned(decision.plan)
    return seen, decision, read


def _seen(
    world: World,
    key: str,
    deployment: LLMDeployment,
    *,
    facts: PlanFacts,
    kept: Kept,
    revisions: Mapping[str, Revision],
    limits: Limits | None,
) -> Seen:
    now = world.now()
    serving, _ = steady(world.serving(key), now)
    if kept.plan is None:
        kept = restored(kept, deployment, _merged(deployment, world.config), serving, revisions)
    return Seen(
        deployment=deployment,
        inventory=world.inventory(key),
        limits=limits,
        facts=facts,
        now=now,
        serving=serving,
        revisions=revisions,
        kept=kept,
        learned=world.learned,
        config=world.config,
        capabilities=world.capabilities(),
        mark=world.mark,
        gone_since=world.gone_since.get(key),
        direction=world.direction(key),
    )


async def _apply(world: World, deployment: LLMDeployment, decision: Decision) -> Applied:
    """A deployment for which nothing was decided keeps what it has."""
    if decision.rollout is None:
        return Applied()
    owner = owner_of(deployment)
    applied = await world.cluster.apply(
        owner, decision.manifests, prune=decision.prune, spared=decision.spared
    )
    if applied.written or applied.deleted:
        LOG.info(
            "wrote %s, deleted %s",
            ", ".join(map(str, applied.written)) or "nothing",
            ", ".join(map(str, applied.deleted)) or "nothing",
            extra={"deployment": owner.key},
        )
    return applied


async def _nudge(world: World, key: str, seen: Seen, decision: Decision) -> float | None:
    """Do to pods directly what no object that makes them can say: delete those of groups that are let go, and tell node autoscalers
    that they need not stay any longer once they have loaded.

    Returns in how many seconds to try again what could not be done. That is logged once and tried ever less often, since a policy of
    the cluster may refuse it for ever.
    """
    deployment, tried = seen.deployment, world.unmoved.pop(key, 0)
    if deployment.spec.paused:
        return None
    targets = () if decision.rollout is None else decision.rollout.targets
    gone = [pod for target in targets for pod in target.let_go]
    problems = await world.cluster.nudge(deployment.namespace, gone=gone, loaded=seen.serving.loaded)
    if not problems:
        return None
    world.unmoved[key] = tried + 1
    if not tried:
        for problem in problems:
            LOG.warning("a pod is as it was: %s", problem, extra={"deployment": owner_of(deployment).key})
    return min(UNREADY_SECONDS, RETRY_SECONDS * 2.0 ** min(tried, 8))


def _remember(world: World, key: str, seen: Seen, decision: Decision) -> None:
    if decision.lost:
        world.gone_since[key] = min(world.gone_since.get(key, world.now()), world.now())
    else:
        world.gone_since.pop(key, None)
    short = decision.plan.outcome in (Outcome.SHORT, Outcome.DOES_NOT_FIT, Outcome.INVALID)
    short = short or (seen.direction is not None and seen.direction.full)
    leaves = any(pod.leaves for there in seen.serving.sets for pod in there.pods)
    if short or leaves or decision.lost or decision.reservations or lacks_nodes(world.serving(key)):
        world.hungry.add(key)
    else:
        world.hungry.discard(key)


def _still_hungry(world: World, key: str, deployment: LLMDeployment) -> None:
    """What the status says it waits for is waited for after a restart too."""
    counted = deployment.status.replica_status
    if counted is not None and (counted.waiting_for_gpus or counted.waiting_for_nodes):
        world.hungry.add(key)


def _story(seen: Seen, decision: Decision, applied: Applied) -> Story:
    deployment = seen.deployment
    spec = _merged(deployment, seen.config)
    lead = next(iter(decision.revisions.values()), None)
    return Story(
        deployment=deployment,
        unserved=decision.unserved,
        spared=decision.spared,
        plan=decision.plan,
        rollout=decision.rollout,
        serving=seen.serving,
        now=seen.now,
        entries={name: revision.entry for name, revision in decision.revisions.items()},
        troubles=tuple(_troubles(applied)),
        endpoint=endpoint(spec, owner_of(deployment)) if decision.rollout is not None else None,
        model_names=served_names(spec.model),
        adapters=spec.adapters,
        config_map=plan_ref(deployment.namespace, deployment.name).name if decision.kept.plan else None,
        control=decision.kept.control,
        declared=spec.workload,
        safe_retry="" if decision.kept.retry is None else decision.kept.retry.sentence,
        live=None if seen.direction is None else seen.direction.told,
        awake="" if seen.direction is None else seen.direction.awake,
        better=decision.better,
        image=None if lead is None else lead.image,
        unsaid=() if lead is None else lead.unsaid,
    )


def _merged(deployment: LLMDeployment, config: OperatorConfig) -> LLMDeploymentSpec:
    """The spec with presets and defaults; as it is where it names a preset that nobody knows, which its plan says."""
    try:
        return effective(deployment.spec, deployment.namespace, config).spec
    except SpecError:
        return deployment.spec


def _troubles(applied: Applied) -> list[Trouble]:
    found = [
        Trouble(
            reason="NameConflict",
            message=f"{taken}; rename this resource, or delete that object if nobody needs it",
            stalled=True,
        )
        for taken in applied.taken
    ]
    found += [
        Trouble(
            reason="Applying" if refusal.error.passes else "Refused",
            message=str(refusal),
            stalled=not refusal.error.passes,
        )
        for refusal in applied.refused
    ]
    return found


def _live(world: World, key: str) -> tuple[Told, ...]:
    said = world.direction(key)
    return () if said is None else said.told


async def _tell(world: World, deployment: LLMDeployment, story: Story, body: Mapping[str, Any]) -> None:
    after = status_after(story, deployment.status, timestamp(world.now()))
    live, now = story.live or (), world.now()
    world.books.note(deployment, after, story.serving, world.config, now, live=live)
    await _write(world, deployment, after, body)


async def _tell_failed(world: World, key: str, error: Exception) -> None:
    """Tells of the failure, and leaves the rest of the status as it was."""
    body = world.resources.get(key)
    if body is not None:
        deployment = LLMDeployment.observed(body)
        generation, now = deployment.metadata.generation, world.now()
        after = status_after_failure(error, deployment.status, generation, timestamp(now))
        try:
            serving, _ = steady(world.serving(key), now)
            known, live = as_serving(after, serving), _live(world, key)
            world.books.note(deployment, known, serving, world.config, now, live=live)
        finally:
            # What is seen of it may be what the turn failed on.
            await _write(world, deployment, after, body)


async def _write(
    world: World, deployment: LLMDeployment, after: LLMDeploymentStatus, body: Mapping[str, Any]
) -> None:
    """The status, where it says something new, and the events that this is worth."""
    before, key = deployment.status, f"{deployment.namespace}/{deployment.name}"
    if after == before and key not in world.untold:
        return
    about = deployment.metadata
    world.untold.add(key)
    version = await world.cluster.tell(about, after, body)
    world.untold.discard(key)
    if version is None:
        # It is gone, whatever the watch has told so far; another of its name gets turns of its own.
        world.resources.remove(key, uid=about.uid)
        world.forget(key)
        return
    world.resources.put_status(key, after.to_dict(), uid=about.uid, version=version)
    found = (
        *news(before.conditions, after.conditions),
        *ramp_news(before.ramp, after.ramp),
        *warning_news(before.sets, after.sets),
    )
    world.books.decided(found)
    world.cluster.announce(about, found)


async def _tell_unreadable(world: World, body: Mapping[str, Any], error: ValidationError) -> None:
    """An object that the CRD let through, or one of an older CRD: what of it cannot be read."""
    metadata = ObjectMeta.model_validate(body["metadata"])
    problems = "; ".join(map(str, problems_of(error, LLMDeployment)))
    before = [
        one for one in (body.get("status") or {}).get("conditions") or () if one["type"] == names.STALLED
    ]
    status = unreadable(problems, metadata.generation, timestamp(world.now()))
    world.books.note_unreadable(metadata, status)
    if [(one["message"], one.get("observedGeneration")) for one in before] != [
        (one.message, one.observed_generation) for one in status.conditions if one.type == names.STALLED
    ]:
        await world.cluster.tell(metadata, status, body)
