"""Which conditions a story has: one small function each, from what is known to a status, a reason and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import FAILURES, REASONS, Status
from plimsoll.api.v1alpha1.status import Accuracy
from plimsoll.control.rollout.groups import told as half_scheduled
from plimsoll.planning.plan import Finding, Outcome, Plan, Severity
from plimsoll.status.adapters import failed as adapters_failed
from plimsoll.status.measured import accuracy_of, progress_of
from plimsoll.status.pod_words import PodWords, words_of
from plimsoll.status.scaler_words import conflict, set_replicas
from plimsoll.status.story import Story

MOVING: Final = frozenset({"RollingOut", "Canary"})
GIVEN_UP: Final = frozenset({"RolledBack", "DeadlineExceeded"})
LACKING: Final = frozenset(
    {"NoGPUs", "NoFreeGPUs", "BudgetExhausted", "Outranked", "NoHostMemory", "HardwareGone"}
)
FACTS_ORIGIN: Final = (
    ("inline", "Inline"),
    ("catalogue", "Catalogue"),
    ("hub", "Hub"),
    ("facts pod", "FactsPod"),
)


PODS_BY: Final = "spec.topology.groups"
"""Without the kind that this asks for there are no pods; without the others there is only no way in."""
_UNREADY: Final = {"Refused": "StartFailed", "NotServed": "StartFailed"}
"""Reasons of Stalled that Ready has another word for; all others are the spec's fault."""


@dataclass(frozen=True, slots=True)
class Said:
    """A condition without its times."""

    type: str
    status: Status
    reason: str
    message: str


def conditions_of(story: Story) -> tuple[Said, ...]:
    return tuple(said for rule in RULES for said in rule(story))


def _ready(story: Story) -> Iterator[Said]:
    kind = names.READY
    serve = f"{story.on_plan} of {story.wanted} replicas serve"
    plan, stalled = story.plan, _why_stalled(story)
    if stalled is not None:
        known = stalled.reason in REASONS[kind]
        reason = stalled.reason if known else _UNREADY.get(stalled.reason, "InvalidSpec")
        also = f"; {story.ready} replicas still serve" if story.ready else ""
        yield Said(kind, "False", reason, stalled.message + also)
    elif plan is None:
        yield Said(kind, "Unknown", "Starting", "there is no plan yet")
    elif (reading := _reading(plan)) is not None:
        also = f"; {story.ready} replicas still serve" if story.ready else ""
        yield Said(kind, "False", "Starting", reading.message + also)
    elif story.wanted == 0:
        stopped = story.deployment.spec.replicas == 0
        done = not story.pods
        reason = "Stopped" if stopped else "ScaledToZero"
        yield Said(
            kind, "True" if done else "False", reason, "no replica is wanted" if done else "replicas end"
        )
    elif story.on_plan >= story.wanted:
        yield Said(kind, "True", "Paused" if story.paused else "Serving", serve)
    else:
        reason, why = _why_not_ready(story)
        yield Said(kind, "False", reason, f"{serve}: {why}" if why else serve)


def _why_not_ready(story: Story) -> tuple[str, str]:
    if story.paused:
        return "Paused", "spec.paused is true"
    troubled = [words for pod in story.pods if (words := words_of(pod)) is not None]
    troubled += story.refused
    failed = next((words for words in troubled if words.waits == "nothing"), None)
    if failed is not None:
        return _reason_of(failed), failed.sentence
    unseen = _finding(story.plan, "NodesUnseen")
    made = _finding(story.plan, "NodeDeclared") if unseen is None else None
    waits = next((words for words in troubled if words.waits != "nothing"), None)
    if waits is not None:
        if waits.waits == "quota":
            return "WaitingForQuota", waits.sentence
        return ("WaitingForNodes", made.message) if made is not None else ("WaitingForGPUs", waits.sentence)
    lacking = _lacking(story.plan)
    if lacking is not None and story.rollout is not None and story.rollout.reason not in MOVING:
        return "WaitingForGPUs", lacking.message
    if story.rollout is not None and story.rollout.reason in MOVING:
        return "RollingOut", story.rollout.message
    return "Starting", "the rest loads the model"


def _reconciling(story: Story) -> Iterator[Said]:
    """Abnormal-true: absent when there is nothing to do."""
    if _why_stalled(story) is not None or story.paused:
        return
    for trouble in story.troubles:
        yield Said(names.RECONCILING, "True", "Applying", trouble.message)
        return
    if story.plan is None:
        yield Said(names.RECONCILING, "True", "Planning", "a plan is being made")
    elif (reading := _reading(story.plan)) is not None:
        yield Said(names.RECONCILING, "True", "Planning", reading.message)
    elif story.rollout is not None and not (story.rollout.settled and story.on_plan >= story.wanted):
        moving = story.rollout.reason in MOVING
        yield Said(names.RECONCILING, "True", "RollingOut" if moving else "Starting", story.rollout.message)


def _stalled(story: Story) -> Iterator[Said]:
    """Abnormal-true as well: nothing will change until a person acts."""
    why = _why_stalled(story)
    if why is not None:
        yield Said(names.STALLED, "True", why.reason, why.message)


@dataclass(frozen=True, slots=True)
class _Stalled:
    reason: str
    message: str


def _why_stalled(story: Story) -> _Stalled | None:
    for problem in story.unserved:
        if problem.field == PODS_BY:
            return _Stalled("NotServed", str(problem))
    for trouble in story.troubles:
        if trouble.stalled:
            return _Stalled(trouble.reason, trouble.message)
    plan, rollout = story.plan, story.rollout
    if plan is not None and plan.outcome in (Outcome.INVALID, Outcome.DOES_NOT_FIT):
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
    refused = next((words for words in story.refused if words.waits == "nothing"), None)
    if refused is not None:
        return _Stalled("Refused", refused.sentence)
    untrusted = None if plan is None else _finding(plan, "NotTrusted")
    if untrusted is not None and untrusted.severity is Severity.ERROR:
        return _Stalled("NotTrusted", sentence(untrusted))
    if rollout is not None and rollout.reason in GIVEN_UP:
        words = [words_of(pod) for pod in story.pods]
        known = next((one for one in words if one is not None and one.reason in FAILURES), None)
        helps = known.remedy if known is not None else "edit the spec"
        reason = known.reason if known is not None else "StartFailed"
        tried = f"{story.safe_retry}, and that failed too: " if story.safe_retry else ""
        message = f"{tried}{rollout.message}; {helps}, or ask for a new plan by annotation"
        return _Stalled(reason, message)
    return None


def _reason_of(failed: PodWords) -> str:
    """The supervisor's own word for it, where it has one that is known."""
    return failed.reason if failed.reason in FAILURES else "StartFailed"


def _fits(story: Story) -> Iterator[Said]:
    plan, kind = story.plan, names.FITS
    if plan is None:
        yield Said(kind, "Unknown", "NotPlanned", "there is no plan yet")
        return
    error = next((found for found in plan.findings if found.severity is Severity.ERROR), None)
    lead = plan.sets[0] if plan.sets else plan.nearest
    reason_of = "" if lead is None else lead.ledger.reason
    if plan.outcome is Outcome.DOES_NOT_FIT:
        message = sentence(error) if error is not None else reason_of or "no layout fits"
        yield Said(kind, "False", "DoesNotFit", message)
    elif plan.outcome is Outcome.INVALID:
        unknown_gpu = error is not None and error.reason == "UnknownGPU"
        message = sentence(error) if error is not None else "nothing was planned"
        yield Said(kind, "Unknown", "UnknownGPU" if unknown_gpu else "NotPlanned", message)
    elif (measured := story.lead and accuracy_of(*story.lead, story.reports)) is not None:
        yield Said(kind, "True", "Measured", _measured(measured))
    else:
        tight = plan.outcome is Outcome.TIGHT
        yield Said(kind, "True", "Tight" if tight else "Fits", reason_of or plan.choice)


def _measured(found: Accuracy) -> str:
    return (
        f"the engine reports a cache of {found.kv_tokens_measured:,} tokens; {found.kv_tokens_predicted:,} were predicted "
        f"({found.error_percent}%)"
    )


def _placed(story: Story) -> Iterator[Said]:
    plan, kind = story.plan, names.PLACED
    if plan is None or plan.outcome is Outcome.INVALID:
        yield Said(kind, "Unknown", "NotPlanned", "nothing was planned")
        return
    lacking, made = _lacking(plan), _finding(plan, "NodeDeclared")
    half = next((said for seen in story.serving.sets if (said := half_scheduled(seen)) is not None), None)
    if half is not None:
        yield Said(kind, "False", "GroupHalfScheduled", half)
    elif lacking is not None:
        reason = lacking.reason if lacking.reason in REASONS[kind] else "NoGPUs"
        yield Said(kind, "False", reason, sentence(lacking))
    elif made is not None:
        unseen = _finding(plan, "NodesUnseen")
        # Whether a node is to be made, or is there, is not known where none is seen.
        yield Said(kind, "True", "NodeDeclared", sentence(made if unseen is None else unseen))
    elif plan.sets:
        where = ", ".join(f"{one.replicas} x {one.layout} on {one.hardware}" for one in plan.sets)
        yield Said(kind, "True", "Placed", where)
    else:
        yield Said(kind, "False", "NoGPUs", plan.choice or "nothing can be placed")


def _progressing(story: Story) -> Iterator[Said]:
    if story.rollout is None:
        return
    stopped = story.rollout.reason in {*GIVEN_UP, "Held"}
    status: Status = "False" if stopped else "True"
    start = None if stopped else progress_of(story.serving, story.reports)
    how = f"; a replica starts: {start.step}" if start is not None and start.step else ""
    yield Said(names.PROGRESSING, status, story.rollout.reason, f"{story.rollout.message}{how}")


def _degraded(story: Story) -> Iterator[Said]:
    dying = next((words for pod in story.pods if pod.restarts and (words := words_of(pod)) is not None), None)
    if story.plan is None or story.rollout is None:
        return
    if 0 < story.ready < story.wanted:
        message = f"{story.ready} of {story.wanted} replicas answer"
        yield Said(names.DEGRADED, "True", "FewerReplicas", message)
    elif story.ready and dying is not None:
        yield Said(names.DEGRADED, "True", "EngineRestarts", dying.sentence)
    elif story.safe_retry:
        yield Said(names.DEGRADED, "True", "SafeRetry", story.safe_retry)
    elif lacks := adapters_failed(story):
        yield Said(names.DEGRADED, "True", "AdapterFailed", lacks)
    elif story.unserved:
        yield Said(names.DEGRADED, "True", "NotServed", "; ".join(map(str, story.unserved)))
    else:
        yield Said(names.DEGRADED, "False", "Healthy", "nothing is missing of what serves")


def _model_facts(story: Story) -> Iterator[Said]:
    plan, kind = story.plan, names.MODEL_FACTS
    if plan is None:
        return
    unreadable, reading = _finding(plan, "ModelUnreadable"), _finding(plan, "ModelReading")
    version = _finding(plan, "EngineVersionUnknown")
    if unreadable is not None:
        yield Said(kind, "False", "Unreadable", sentence(unreadable))
    elif reading is not None:
        yield Said(kind, "Unknown", "Reading", sentence(reading))
    elif version is not None:
        yield Said(kind, "True", "EngineVersionUnknown", sentence(version))
    elif plan.model_origin:
        origin = plan.model_origin.casefold()
        reason = next((reason for word, reason in FACTS_ORIGIN if word in origin), "Catalogue")
        yield Said(kind, "True", reason, f"{plan.model}: {plan.model_origin}")


def _better(story: Story) -> Iterator[Said]:
    pinning = story.plan.pinning if story.plan is not None else None
    if pinning is None or not story.plan or not story.plan.sets:
        return
    if (declare := story.better) is not None:
        yield Said(declare.type, declare.status, declare.reason, declare.message)
        return
    if pinning.better is None:
        yield Said(names.BETTER_PLAN, "False", "None", "the pinned plan is the best one known")
        return
    cheaper, fewer = "would cost" in pinning.better, "GPUs instead" in pinning.better
    reason = "Cheaper" if cheaper else "FewerGPUs" if fewer else "Faster"
    how = f"take it by the annotation {names.ANNOTATION_REPLAN}"
    yield Said(names.BETTER_PLAN, "True", reason, f"{pinning.better}; {how}")


def _slo(story: Story) -> Iterator[Said]:
    plan = story.plan
    if plan is None or not plan.sets:
        return
    if (live := _live(story, names.SLO)) is not None:
        yield live
        return
    missed = _finding(plan, "Unattainable")
    if missed is not None or any(one.meets_slo is False for one in plan.sets):
        message = sentence(missed) if missed is not None else "the prediction is above the limits"
        yield Said(names.SLO, "False", "Unattainable", message)
    elif all(one.meets_slo is None for one in plan.sets):
        yield Said(names.SLO, "True", "NotDeclared", "spec.slo sets no limits")
    else:
        yield Said(names.SLO, "True", "Attainable", "the prediction is within spec.slo")


def _scaling(story: Story) -> Iterator[Said]:
    spec = story.deployment.spec
    if story.serving.scalers and spec.replicas is None:
        yield Said(names.SCALING, "True", "SetReplicas", set_replicas(story.serving.scalers, story.wanted))
        return
    limited = _live(story, names.SCALING)
    above = _finding(story.plan, "LoadAboveMax")
    if limited is not None:
        yield limited
    elif above is not None and story.live is None:
        yield Said(names.SCALING, "True", "AtMax", sentence(above))


def _metrics(story: Story) -> Iterator[Said]:
    for kind in (names.METRICS, names.AUTOTUNE_PAUSED):
        if (live := _live(story, kind)) is not None:
            yield live


def _live(story: Story, kind: str) -> Said | None:
    """What live metrics say."""
    found = next((one for one in story.live or () if one.type == kind), None)
    return None if found is None else Said(found.type, found.status, found.reason, found.message)


def _writers(story: Story) -> Iterator[Said]:
    """Absent where nobody else writes."""
    message = conflict(story.serving.scalers, story.serving.scalers_below)
    if message:
        yield Said(names.AUTOSCALER_CONFLICT, "True", "SeveralWriters", message)


def sentence(finding: Finding) -> str:
    """A finding as one message of a condition."""
    where = f"{finding.field}: " if finding.field and not finding.message.startswith(finding.field) else ""
    return f"{where}{finding.message}" + (f". What helps: {finding.remedy}" if finding.remedy else "")


def _finding(plan: Plan | None, reason: str) -> Finding | None:
    return None if plan is None else next((found for found in plan.findings if found.reason == reason), None)


def _reading(plan: Plan) -> Finding | None:
    """What a plan still waits for that is not the spec's fault."""
    return _finding(plan, "ModelReading") if plan.outcome is Outcome.INVALID else None


def _lacking(plan: Plan | None) -> Finding | None:
    if plan is None or plan.outcome is not Outcome.SHORT:
        return None
    return next((found for found in plan.findings if found.reason in LACKING), None)


RULES: Final[tuple[Callable[[Story], Iterator[Said]], ...]] = (
    _ready, _reconciling, _stalled, _fits, _placed, _progressing, _degraded, _model_facts, _better, _scaling, _writers, _slo, _metrics,
)  # fmt: skip

__all__ = ["PodWords", "Said", "conditions_of", "sentence"]
