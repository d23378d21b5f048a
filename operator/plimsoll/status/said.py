"""The conditions of a deployment: for each of them a small function from the story to a status, a reason and a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import REASONS, Status
from plimsoll.api.v1alpha1.status import Accuracy
from plimsoll.control.decision import Told
from plimsoll.control.rollout.groups import told as half_scheduled
from plimsoll.planning.choice.outcomes import ABOVE_MOST
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.plan import Outcome, Severity
from plimsoll.status.adapters import failed_adapters
from plimsoll.status.findings import finding_of, lacking_of, missed_of, sentence
from plimsoll.status.live import retuning
from plimsoll.status.measured import accuracy_of, progress_of
from plimsoll.status.pod_words import is_over, trouble_of
from plimsoll.status.scaler_words import conflict, set_replicas
from plimsoll.status.standing import GIVEN_UP, ready, reconciling, stalled, why_not_ready
from plimsoll.status.story import Story

FACTS_ORIGIN: Final = (
    ("inline", "Inline"),
    ("catalogue", "Catalogue"),
    ("hub", "Hub"),
    ("facts pod", "FactsPod"),
)


def conditions_of(story: Story) -> tuple[Told, ...]:
    return tuple(said for rule in RULES for said in rule(story))


def _fits(story: Story) -> Iterator[Told]:
    plan, kind = story.plan, names.FITS
    if plan is None:
        yield Told(kind, "Unknown", "NotPlanned", "there is no plan yet")
        return
    error = next((found for found in plan.findings if found.severity is Severity.ERROR), None)
    lead = plan.sets[0] if plan.sets else plan.nearest
    reason_of = "" if lead is None else lead.ledger.reason
    if plan.outcome is Outcome.DOES_NOT_FIT:
        message = sentence(error) if error is not None else reason_of or "no layout fits"
        yield Told(kind, "False", "DoesNotFit", message)
    elif plan.outcome is Outcome.INVALID:
        unknown_gpu = error is not None and error.reason == "UnknownGPU"
        message = sentence(error) if error is not None else "nothing was planned"
        yield Told(kind, "Unknown", "UnknownGPU" if unknown_gpu else "NotPlanned", message)
    elif (measured := story.lead and accuracy_of(*story.lead, story.reports)) is not None:
        yield Told(kind, "True", "Measured", _measured(measured))
    else:
        tight = plan.outcome is Outcome.TIGHT
        yield Told(kind, "True", "Tight" if tight else "Fits", reason_of or plan.choice)


def _measured(found: Accuracy) -> str:
    return (
        f"the engine reports a cache of {found.kv_tokens_measured:,} tokens; {found.kv_tokens_predicted:,} were predicted "
        f"({found.error_percent}%)"
    )


def _placed(story: Story) -> Iterator[Told]:
    plan, kind = story.plan, names.PLACED
    if plan is None or plan.outcome is Outcome.INVALID:
        yield Told(kind, "Unknown", "NotPlanned", "nothing was planned, as Stalled and ModelFacts say")
        return
    lacking, made = lacking_of(plan), finding_of(plan, "NodeDeclared")
    half = next((said for seen in story.serving.sets if (said := half_scheduled(seen)) is not None), None)
    if half is not None:
        yield Told(kind, "False", "GroupHalfScheduled", half)
    elif lacking is not None:
        reason = lacking.reason if lacking.reason in REASONS[kind] else "NoGPUs"
        yield Told(kind, "False", reason, sentence(lacking))
    elif made is not None:
        unseen = finding_of(plan, "NodesUnseen")
        # Where nodes are not seen it is not known whether a node has to be made or is there.
        yield Told(kind, "True", "NodeDeclared", sentence(made if unseen is None else unseen))
    elif plan.sets:
        where = ", ".join(f"{one.replicas} x {one.layout} on {one.hardware}" for one in plan.used)
        yield Told(kind, "True", "Placed", where)
    else:
        yield Told(kind, "False", "NoGPUs", plan.choice or "no layout fits, as Stalled says")


def _progressing(story: Story) -> Iterator[Told]:
    if story.rollout is None:
        return
    stopped = story.rollout.reason in {*GIVEN_UP, "Held"}
    status: Status = "False" if stopped else "True"
    start = None if stopped else progress_of(story.serving, story.reports)
    how = f"; a replica starts: {start.step}" if start is not None and start.step else ""
    yield Told(names.PROGRESSING, status, story.rollout.reason, f"{story.rollout.message}{how}")


def _degraded(story: Story) -> Iterator[Told]:
    again = (pod for pod in story.pods if pod.crashed_last and not pod.held_back and pod.beside is None)
    dying = next(iter(trouble_of(pod for pod in again if not is_over(pod, story.now))), None)
    if story.plan is None or story.rollout is None:
        return
    if story.spared:
        yield Told(names.DEGRADED, "True", "SetUnreadable", _spared(story))
    elif 0 < story.ready < story.wanted:
        answer = f"{story.ready} of {story.wanted} replicas answer"
        why = "Stalled says why" if any(stalled(story)) else why_not_ready(story)[1]
        yield Told(names.DEGRADED, "True", "FewerReplicas", f"{answer}: {why}")
    elif story.ready and dying is not None:
        yield Told(names.DEGRADED, "True", "EngineRestarts", dying.sentence)
    elif story.safe_retry:
        yield Told(names.DEGRADED, "True", "SafeRetry", story.safe_retry)
    elif lacks := failed_adapters(story):
        yield Told(names.DEGRADED, "True", "AdapterFailed", lacks)
    elif story.unserved:
        yield Told(names.DEGRADED, "True", "NotServed", "; ".join(map(str, story.unserved)))
    else:
        serves = bool(story.ready) or not story.wanted
        message = "nothing is missing of what serves" if serves else "no replica serves, as Ready says"
        untold = f"; the engine was not told {', '.join(story.unsaid)}" if story.unsaid else ""
        yield Told(names.DEGRADED, "False", "Healthy", message + untold)


def _spared(story: Story) -> str:
    which = ", ".join(sorted(story.spared))
    kinds, namespace = "deployments,statefulsets", story.deployment.namespace
    if any(one.one_object and one.name.endswith(tuple(story.spared)) for one in story.serving.sets):
        kinds += ",leaderworkersets"  # not served by each cluster, which would refuse the whole command
    return (
        f"{which}: a set that serves is neither scaled nor removed, as its ControllerRevision is gone or of a release that wrote it in another "
        f"form: go back to that release, or end it: kubectl delete {kinds} -n {namespace} -l '{names.LABEL_SET} in ({which})'"
    )


def _model_facts(story: Story) -> Iterator[Told]:
    plan, kind = story.plan, names.MODEL_FACTS
    if plan is None:
        return
    unreadable, reading = finding_of(plan, "ModelUnreadable"), finding_of(plan, "ModelReading")
    version = finding_of(plan, "EngineVersionUnknown")
    if unreadable is not None:
        yield Told(kind, "False", "Unreadable", sentence(unreadable))
    elif reading is not None:
        yield Told(kind, "Unknown", "Reading", sentence(reading))
    elif version is not None:
        yield Told(kind, "True", "EngineVersionUnknown", sentence(version))
    elif plan.model_origin:
        origin = plan.model_origin.casefold()
        reason = next((reason for word, reason in FACTS_ORIGIN if word in origin), "Catalogue")
        yield Told(kind, "True", reason, f"{plan.model}: {plan.model_origin}")


def _better(story: Story) -> Iterator[Told]:
    pinning = story.plan.pinning if story.plan is not None else None
    if pinning is None or not story.plan or not story.plan.sets:
        return
    if story.better is not None:
        yield story.better
        return
    if pinning.better is None:
        yield Told(names.BETTER_PLAN, "False", "None", "the pinned plan is the best one known")
        return
    cheaper, fewer = "would cost" in pinning.better, "GPUs instead" in pinning.better
    reason = "Cheaper" if cheaper else "FewerGPUs" if fewer else "Faster"
    how = f"take it by the annotation {names.ANNOTATION_REPLAN}"
    yield Told(names.BETTER_PLAN, "True", reason, f"{pinning.better}; {how}")


def _slo(story: Story) -> Iterator[Told]:
    plan = story.plan
    if plan is None or not plan.sets:
        return
    if (live := _live(story, names.SLO)) is not None:
        yield live
        return
    missed = missed_of(plan)
    if missed is not None:
        yield Told(names.SLO, "False", missed.reason, sentence(missed))
    elif any(one.meets_slo is False for one in plan.sets):
        yield Told(names.SLO, "False", UNATTAINABLE, "the prediction is above the limits")
    elif all(one.meets_slo is None for one in plan.sets):
        yield Told(names.SLO, "True", "NotDeclared", "spec.slo sets no limits")
    else:
        yield Told(names.SLO, "True", "Attainable", "the prediction is within spec.slo")


def _scaling(story: Story) -> Iterator[Told]:
    spec = story.deployment.spec
    if story.serving.scalers and spec.replicas is None:
        yield Told(names.SCALING, "True", "SetReplicas", set_replicas(story.serving.scalers, story.wanted))
        return
    limited = _live(story, names.SCALING)
    above = finding_of(story.plan, ABOVE_MOST)
    if limited is not None:
        yield limited
    elif above is not None and story.live is None:
        yield Told(names.SCALING, "True", "AtMax", sentence(above))


def _metrics(story: Story) -> Iterator[Told]:
    for kind in (names.METRICS, names.AUTOTUNE_PAUSED):
        if (live := _live(story, kind)) is not None:
            yield live


def _retuning(story: Story) -> Iterator[Told]:
    """From the stored memory, so that it is also told before the control loop has looked for the first time."""
    if story.control is not None and (said := retuning(story.control.retune)) is not None:
        yield said


def _live(story: Story, kind: str) -> Told | None:
    """The condition of this kind as the control loop decided it."""
    return next((one for one in story.live or () if one.type == kind), None)


def _writers(story: Story) -> Iterator[Told]:
    """The condition is absent where nothing else writes the number of replicas."""
    message = conflict(story.serving.scalers, story.serving.scalers_below)
    if message:
        yield Told(names.AUTOSCALER_CONFLICT, "True", "SeveralWriters", message)


RULES: Final[tuple[Callable[[Story], Iterator[Told]], ...]] = (
    ready, reconciling, stalled, _fits, _placed, _progressing, _degraded, _model_facts, _better, _scaling, _writers, _slo, _metrics,
    _retuning,
)  # fmt: skip
