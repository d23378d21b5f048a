"""The three conditions that every tool reads: Ready (it serves), Reconciling (work goes on), Stalled (a person has to act)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import FAILURES, REASONS
from plimsoll.control.decision import Told
from plimsoll.control.rollout import Rollout
from plimsoll.facts.gpus import Vendor
from plimsoll.facts.serving import NOWHERE, PodSeen, Stage
from plimsoll.facts.spans import minute
from plimsoll.planning.plan import Outcome, Plan, Severity
from plimsoll.status.findings import finding_of, lacking_of, reading_of, sentence
from plimsoll.status.live import AWAKE, awake_said
from plimsoll.status.pod_words import PodWords, trouble_of
from plimsoll.status.story import Story

MOVING: Final = frozenset({"RollingOut", "Canary"})
GIVEN_UP: Final = frozenset({"RolledBack", "DeadlineExceeded"})
GROUPS_FIELD: Final = "spec.topology.groups"
"""Without the kind that this field asks for there can be no pods. Without any other optional kind there is only no route to them."""
_TRY_AGAIN: Final = (
    f"it is tried again once the spec is edited, or the annotation {names.ANNOTATION_REPLAN} has a new value"
)
_UNREADY: Final = {"Refused": "StartFailed", "NotServed": "StartFailed"}
"""Reasons of Ready for reasons of Stalled that Ready does not have itself. For all further ones it is InvalidSpec."""


def ready(story: Story) -> Iterator[Told]:
    kind = names.READY
    serve = f"{story.on_plan} of {story.wanted} replicas serve"
    plan, stalled = story.plan, _why_stalled(story)
    if stalled is not None:
        known = stalled.reason in REASONS[kind]
        reason = stalled.reason if known else _UNREADY.get(stalled.reason, "InvalidSpec")
        also = f"; {story.ready} replicas still serve" if story.ready else ""
        yield Told(kind, "False", reason, stalled.message + also)
    elif plan is None:
        yield Told(kind, "Unknown", "Starting", "there is no plan yet")
    elif (reading := reading_of(plan)) is not None:
        also = f"; {story.ready} replicas still serve" if story.ready else ""
        yield Told(kind, "False", "Starting", reading.message + also)
    elif story.wanted == 0:
        stopped = story.deployment.spec.replicas == 0
        done = not story.pods
        reason = "Stopped" if stopped else "ScaledToZero"
        yield Told(
            kind, "True" if done else "False", reason, "no replica is wanted" if done else "replicas end"
        )
    elif story.on_plan >= story.wanted:
        paused, awake = story.paused, _awake(story)
        message = f"{serve}{AWAKE}{awake}" if awake and not paused else serve
        yield Told(kind, "True", "Paused" if paused else "Serving", message)
    else:
        reason, why = why_not_ready(story)
        yield Told(kind, "False", reason, f"{serve}: {why}" if why else serve)


def _awake(story: Story) -> str:
    """Why it does not sleep, where it is to. Before control has looked, what was told stands: a program that begins would else write it out and in again."""
    if (never := finding_of(story.plan, "NeverSleeps")) is not None:
        return never.message
    return story.awake if story.live is not None else awake_said(story.deployment.status.conditions)


def why_not_ready(story: Story) -> tuple[str, str]:
    """Reason and message of why fewer replicas serve than are wanted, where nothing is stalled."""
    troubled = [*trouble_of(story.unserving), *story.refused]
    if story.paused:
        return "Paused", "; ".join(["spec.paused is true", *(words.sentence for words in troubled[:1])])
    failed = next((words for words in troubled if words.waits == "nothing"), None)
    if failed is not None:
        return _reason_of(failed), failed.sentence
    unseen = finding_of(story.plan, "NodesUnseen")
    made = finding_of(story.plan, "NodeDeclared") if unseen is None else None
    held = next((words.sentence for words in troubled if words.waits == "others"), "")
    waits = next((words for words in troubled if words.waits not in ("others", "nothing")), None)
    if waits is not None:
        why = waits.sentence + _surges(story)
        if waits.waits == "quota":
            return "WaitingForQuota", why
        return ("WaitingForNodes", made.message) if made is not None else ("WaitingForGPUs", why)
    if story.rollout is not None and story.rollout.reason in MOVING:
        return "RollingOut", f"{story.rollout.message}; {held}" if held else story.rollout.message
    lacking = lacking_of(story.plan)
    if lacking is not None:
        return "WaitingForGPUs", sentence(lacking)
    return "Starting", held or "the rest loads the model"


def _surges(story: Story) -> str:
    """Since when a replica has waited for room, and what would help beside it, where nothing that serves goes for it; empty where it does.

    A moment, and not how long that is: each turn would write another one.
    """
    first = None if story.rollout is None else story.rollout.first
    if first is None:
        return ""
    waiting = {seen.name for seen in story.serving.sets if seen.ready < seen.replicas}
    nowhere = [pod.created for seen in story.serving.sets for pod in seen.pods if pod.stage in NOWHERE]
    since = f" has waited since {minute(min(nowhere))}, and" if nowhere else ""
    entry = next((entry for name, entry in story.entries.items() if name in waiting), None)
    devices = 0 if entry is None or entry.hardware.vendor == Vendor.CPU else entry.devices_per_replica
    more = f"{devices} {'GPU' if devices == 1 else 'GPUs'} more" if devices else "one more"
    return f"; {first.why}: it{since} goes on once there is room for {more}, or with {first.unless}"


def reconciling(story: Story) -> Iterator[Told]:
    """A condition that is only there while it is true: while there is something to do."""
    if _why_stalled(story) is not None or story.paused:
        return
    for trouble in story.troubles:
        yield Told(names.RECONCILING, "True", "Applying", trouble.message)
        return
    if story.plan is None:
        yield Told(names.RECONCILING, "True", "Planning", "a plan is being made")
    elif (reading := reading_of(story.plan)) is not None:
        yield Told(names.RECONCILING, "True", "Planning", sentence(reading))
    elif story.rollout is None and (lacking := lacking_of(story.plan)) is not None:
        yield Told(names.RECONCILING, "True", "Starting", sentence(lacking))
    elif story.rollout is not None and not (story.rollout.settled and story.on_plan >= story.wanted):
        moving = story.rollout.reason in MOVING
        yield Told(names.RECONCILING, "True", "RollingOut" if moving else "Starting", story.rollout.message)


def stalled(story: Story) -> Iterator[Told]:
    """A condition that is only there while it is true: while nothing will change until a person acts."""
    why = _why_stalled(story)
    if why is not None:
        yield Told(names.STALLED, "True", why.reason, why.message)


@dataclass(frozen=True, slots=True)
class _Stalled:
    reason: str
    message: str


def _why_stalled(story: Story) -> _Stalled | None:
    for problem in story.unserved:
        if problem.field == GROUPS_FIELD:
            return _Stalled("NotServed", str(problem))
    for trouble in story.troubles:
        if trouble.stalled:
            return _Stalled(trouble.reason, trouble.message)
    plan, rollout = story.plan, story.rollout
    if plan is not None and plan.outcome in (Outcome.INVALID, Outcome.DOES_NOT_FIT):
        return _unplannable(plan)
    refused = next((words for words in story.refused if words.waits == "nothing"), None)
    if refused is not None:
        return _Stalled("Refused", refused.sentence)
    untrusted = None if plan is None else finding_of(plan, "NotTrusted")
    if untrusted is not None and untrusted.severity is Severity.ERROR:
        return _Stalled("NotTrusted", sentence(untrusted))
    return _given_up(story, rollout) if rollout is not None and rollout.reason in GIVEN_UP else None


def _unplannable(plan: Plan) -> _Stalled | None:
    """Why no plan can be made; None where it only waits for its model to be read."""
    errors = [found for found in plan.findings if found.severity is Severity.ERROR]
    finding = next((found for found in errors if found.reason != "ModelReading"), None)
    if errors and finding is None:
        return None
    reason = "DoesNotFit" if plan.outcome is Outcome.DOES_NOT_FIT else "InvalidSpec"
    if finding is None:
        return _Stalled(reason, plan.choice or "it cannot be planned")
    if finding.reason in ("NotTrusted", "ModelUnreadable"):
        reason = finding.reason
    return _Stalled(reason, sentence(finding))


def _given_up(story: Story, rollout: Rollout) -> _Stalled:
    seen = trouble_of(_failed(story, rollout))
    known = next((one for one in seen if one.reason in FAILURES), next(iter(seen), None))
    reason = "StartFailed" if known is None else _reason_of(known)
    helps = "edit the spec" if known is None or not known.remedy else known.remedy
    tried = f"{story.safe_retry}, and that failed too: " if story.safe_retry else ""
    return _Stalled(reason, f"{tried}{rollout.message}; {helps}; {_TRY_AGAIN}")


def _failed(story: Story, rollout: Rollout) -> Iterator[PodSeen]:
    """Pods of the sets that were given up; what is wrong with other pods is not the cause."""
    failed = {target.name for target in rollout.targets if target.state == "Failed"}
    return (
        pod
        for seen in story.serving.sets
        if seen.name in failed
        for pod in seen.pods
        if pod.stage is not Stage.LEAVING
    )


def _reason_of(failed: PodWords) -> str:
    """The supervisor's own reason for the failure where it is a known one, else StartFailed."""
    return failed.reason if failed.reason in FAILURES else "StartFailed"
