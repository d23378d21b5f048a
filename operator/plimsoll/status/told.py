"""The whole status of a deployment, and the events that tell of its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll import names
from plimsoll.api.conditions import TYPES, Status, drop_condition, get_condition, set_condition
from plimsoll.api.v1alpha1.status import (
    MOST_SETS,
    Condition,
    Endpoint,
    EngineStatus,
    LLMDeploymentStatus,
    RampStatus,
    ReplicaStatus,
    SetStatus,
)
from plimsoll.facts.serving import Stage
from plimsoll.facts.unplaced import OWN, lack_of
from plimsoll.status.adapters import adapters_of, loaded_names
from plimsoll.status.live import live_status
from plimsoll.status.measured import accuracy_of, progress_of
from plimsoll.status.pod_words import words_of
from plimsoll.status.refusals import refusal_words
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story
from plimsoll.status.summary import cut, plan_status
from plimsoll.status.warned import newly_warned, warning_of

LONGEST_MESSAGE: Final = 2048

RAMP: Final = "RampRecorded"
ENGINE: Final = "Engine"
LIVE: Final = frozenset({names.METRICS, names.AUTOTUNE_PAUSED})
"""Conditions that the control loop decides. Until it has looked they stay as they are."""
TURNS: Final = frozenset(TYPES) - LIVE
"""Conditions that turns decide. A condition of any other type is somebody else's and stays as it is."""


@dataclass(frozen=True, slots=True)
class News:
    """An event that tells of a decision when it happens."""

    type: Literal["Normal", "Warning"]
    about: str
    """The condition that changed, or what was done."""
    reason: str
    message: str


def status_after(story: Story, before: LLMDeploymentStatus, now: str) -> LLMDeploymentStatus:
    """The status after this turn. Fields of which the turn knows nothing stay as they were."""
    generation = story.deployment.metadata.generation
    changes: dict[str, object] = {
        "observed_generation": generation,
        "conditions": _conditions(story, before.conditions, now),
        "sets": _sets(story, before),
        "replicas": sum(seen.replicas for seen in story.serving.sets),
        "ready": f"{story.counted}/{story.wanted}",
        "selector": f"{names.LABEL_DEPLOYMENT}={story.deployment.name},{names.LABEL_LEADER}=true",
        "replica_status": _replicas(story),
    }
    changes["safe_retry"] = True if story.safe_retry else None
    changes["adapters"] = adapters_of(story) or None
    changes["progress"] = progress_of(story.serving, story.reports)
    changes["ramp"] = story.ramp or before.ramp
    if story.plan is not None:
        same = before.plan is not None and before.plan.digest == story.plan.digest
        pinned_at = before.plan.pinned_at if same and before.plan is not None else now
        measured = None if story.lead is None else accuracy_of(*story.lead, story.reports)
        # What was measured stays in the status as long as the plan does, also while no engine reports it.
        changes["accuracy"] = measured or (before.accuracy if same else None)
        changes["plan"] = plan_status(story.plan, config_map=story.config_map, pinned_at=pinned_at)
        changes["engine"] = EngineStatus(
            name=story.plan.engine or None, version=story.plan.engine_version or None, image=story.image
        )
    if story.endpoint is not None:
        asked_for = (*story.model_names, *loaded_names(story))
        changes["endpoint"] = Endpoint(url=story.endpoint, model_names=asked_for)
    if story.control is not None:
        changes |= live_status(story.control, story.declared)
    kept = {name: getattr(before, name) for name in before.model_fields_set if name not in changes}
    return LLMDeploymentStatus.model_validate({**kept, **{k: v for k, v in changes.items() if v is not None}})


def _conditions(story: Story, before: tuple[Condition, ...], now: str) -> tuple[Condition, ...]:
    conditions = before
    said = conditions_of(story)
    decided = TURNS if story.live is None else TURNS | LIVE
    for kind in decided - {one.type for one in said}:
        conditions = drop_condition(conditions, kind)
    for one in said:
        conditions = set_condition(
            conditions,
            one.type,
            status=one.status,
            reason=one.reason,
            message=cut(one.message, LONGEST_MESSAGE),
            now=now,
            generation=story.deployment.metadata.generation,
        )
    return conditions


def unreadable(problems: str, generation: int | None, now: str) -> LLMDeploymentStatus:
    """The status of an object that this release cannot read."""
    conditions: tuple[Condition, ...] = ()
    for kind, status in _UNREADABLE:
        conditions = set_condition(
            conditions,
            kind,
            status=status,
            reason="InvalidSpec",
            message=cut(problems, LONGEST_MESSAGE),
            now=now,
            generation=generation,
        )
    return LLMDeploymentStatus(observed_generation=generation, conditions=conditions)


def status_after_failure(
    error: Exception, before: LLMDeploymentStatus, generation: int | None, now: str
) -> LLMDeploymentStatus:
    """The status after a turn that raised. Only the type of the error is told, as its text may contain a secret."""
    why = f"the operator failed on this resource ({type(error).__name__})"
    conditions = set_condition(
        drop_condition(before.conditions, names.RECONCILING),
        names.STALLED,
        status="True",
        reason="InternalError",
        message=f"{why}: what serves goes on, and it is tried again, ever less often; the operator's log has the whole of it",
        now=now,
        generation=generation,
    )
    return before.model_copy(update={"observed_generation": generation, "conditions": conditions})


_UNREADABLE: Final[tuple[tuple[str, Status], ...]] = ((names.READY, "False"), (names.STALLED, "True"))


def _sets(story: Story, before: LLMDeploymentStatus) -> tuple[SetStatus, ...]:
    if story.rollout is None:
        return ()
    warned = {one.name: one.warning for one in before.sets}
    found = []
    # More of them fail no turn: those are left out that neither serve nor are to, nor failed.
    ready = {seen.name for seen in story.serving.sets if seen.ready}
    first = sorted(
        story.rollout.targets,
        key=lambda one: (not one.planned, not (one.replicas or one.name in ready), one.state != "Failed"),
    )
    for target in first[:MOST_SETS]:
        seen, entry = story.serving.set_named(target.name), story.entries.get(target.name)
        found.append(
            SetStatus(
                name=target.name,
                pool=None if entry is None else str(entry.hardware),
                layout=None if entry is None else str(entry.layout),
                replicas=target.replicas,
                ready=0 if seen is None else seen.ready,
                state=target.state,
                reason=cut(target.reason) or None,
                warning=warning_of(seen, story.reports, warned.get(target.name)),
            )
        )
    return tuple(sorted(found, key=lambda one: one.name))


def _replicas(story: Story) -> ReplicaStatus:
    leaders = [pod for pod in story.pods if pod.rank == 0]
    waits = [words.waits for pod in leaders if (words := words_of(pod)) is not None]
    made = story.plan is not None and any(found.reason == "NodeDeclared" for found in story.plan.findings)
    asked = 0 if story.rollout is None else sum(target.replicas for target in story.rollout.targets)
    barred = sum(
        seen.missing // seen.pods_per_replica
        for seen in story.serving.sets
        if (words := refusal_words(seen)) is not None and words.waits == "quota"
    )
    lack = waits.count("gpus") + max(0, story.wanted - asked)
    return ReplicaStatus(
        wanted=story.wanted,
        ready=story.counted,
        starting=sum(pod.stage in (Stage.PULLING, Stage.LOADING) or lack_of(pod) in OWN for pod in leaders),
        waiting_for_gpus=0 if made else lack,
        waiting_for_nodes=lack if made else 0,
        waiting_for_quota=waits.count("quota") + barred,
        reason=None if story.plan is None else cut(story.plan.replicas_reason) or None,
    )


def news(before: Sequence[Condition], after: Sequence[Condition]) -> tuple[News, ...]:
    """An event for each condition in _WORTH_TELLING whose status or reason has changed."""
    found = []
    for kind, good in _WORTH_TELLING.items():
        new, old = get_condition(after, kind), get_condition(before, kind)
        if new is None or (old is not None and (old.status, old.reason) == (new.status, new.reason)):
            continue
        if new.status == "Unknown" or (old is None and kind in _ONLY_CHANGES):
            continue
        well = new.status == good
        found.append(News("Normal" if well else "Warning", kind, new.reason, new.message))
    return tuple(found)


def ramp_news(before: RampStatus | None, after: RampStatus | None) -> tuple[News, ...]:
    """An event that tells whoever handed in a ramp what became of it."""
    if after is None or (before is not None and before.record == after.record):
        return ()
    if after.taken:
        return (News("Normal", RAMP, "RampTaken", after.message),)
    return (News("Warning", RAMP, "RampRefused", after.message),)


def warning_news(before: Sequence[SetStatus], after: Sequence[SetStatus]) -> tuple[News, ...]:
    return tuple(News("Warning", ENGINE, "EngineWarns", said) for said in newly_warned(before, after))


_WORTH_TELLING: Final = {
    names.STALLED: "False",
    names.PLACED: "True",
    names.PROGRESSING: "True",
    names.READY: "True",
    names.BETTER_PLAN: "True",
    names.SCALING: "False",
    names.AUTOSCALER_CONFLICT: "False",
    names.METRICS: "True",
    names.AUTOTUNE_PAUSED: "False",
}


_ONLY_CHANGES: Final = frozenset({
    names.BETTER_PLAN, names.PROGRESSING, names.READY, names.METRICS, names.AUTOTUNE_PAUSED,
})  # fmt: skip
"""Conditions whose first state is not told: it is no decision, and the events would make a burst of creations a third longer."""
