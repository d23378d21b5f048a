"""Reads a serving pod's object: how far the pod is, since when, and why it is stuck."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plimsoll import names
from plimsoll.facts.failure import Failure, plain, read_failure
from plimsoll.facts.serving import NODE_LOST, Beside, PodSeen, Stage
from plimsoll.kube.times import seconds

Object = dict[str, Any]

ENGINE: Final = "engine"
RUNTIME_PORT_NAME: Final = "runtime"
_GROUP_LABELS: Final = (names.LABEL_GROUP, "leaderworkerset.sigs.k8s.io/group-index")
_RANK_LABELS: Final = ("leaderworkerset.sigs.k8s.io/worker-index", names.LABEL_RANK)
"""A LeaderWorkerSet's own label comes first: its leaders are pods of one StatefulSet, so there Kubernetes' label has the group's number."""
_ENDED: Final = ("Failed", "Succeeded")
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of a waiting container that are no problem; all others are one."""
_UNTOLD: Final = frozenset({"Error", "Completed", ""})
"""Reasons of an end that say less than CrashLoopBackOff does."""
_STOPPED: Final = (0, 137, 143)
"""Exit codes of an engine that the kubelet stopped: it ended normally, was killed, or ended by the signal."""
_REBOOTED: Final = frozenset({"Unknown", "ContainerStatusUnknown"})
"""Reasons of an end that nobody saw: the node's runtime, or its kubelet, has begun anew and found no process any more."""
_BESIDE: Final = "ContainersNotReady"
"""The kubelet's reason where a container is not ready."""
_GATES: Final = "ReadinessGatesNotReady"
"""The kubelet's reason where all containers are ready and a readiness gate of the pod is closed."""
_MESSAGE_KEPT: Final = 1000
"""Characters that are kept of a message. The kubelet keeps 4 KiB of an engine's last output, which would be much for thousands of pods."""
_USUAL_PERIOD_S: Final = 10
"""The period of a probe that names none, by Kubernetes' default."""


class _At(NamedTuple):
    stage: Stage
    since: float
    reason: str = ""
    message: str = ""
    beside: Beside | None = None


def pod_seen(pod: Object) -> PodSeen:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    engine = _engine(status)
    ended = _last_end(engine)
    left = ended.get("message") or ""
    failure = read_failure(left)
    at = _at(metadata, spec, status, engine)
    labels = metadata.get("labels") or {}
    return PodSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        stage=at.stage,
        group=_number(labels, _GROUP_LABELS),
        rank=_number(labels, _RANK_LABELS) or 0,
        leads=labels.get(names.LABEL_LEADER) == "true",
        node=spec.get("nodeName"),
        scheduled=_scheduled(status),
        address=status.get("podIP") or "",
        created=seconds(metadata.get("creationTimestamp")),
        since=at.since or _changed(status) or seconds(metadata.get("creationTimestamp")),
        unready=None if at.stage is Stage.READY else _changed(status) or None,
        reason=at.reason,
        message=_said(at.message),
        beside=at.beside,
        ended=status.get("phase") in _ENDED,
        restarts=int(engine.get("restartCount") or 0),
        rebooted=ended.get("reason") in _REBOOTED,
        exit_code=ended.get("exitCode"),
        ended_by=ended.get("reason") or "",
        last_words=_in_words(left, failure),
        late_s=_late_s(spec, status, ended),
        failure=failure,
        runtime_port=_runtime_port(spec),
        until_ready=names.ANNOTATION_UNTIL_READY in (metadata.get("annotations") or {}),
    )


def _at(metadata: Object, spec: Object, status: Object, engine: Object) -> _At:
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    leaving = metadata.get("deletionTimestamp")
    if leaving:
        asked = seconds(leaving) - float(metadata.get("deletionGracePeriodSeconds") or 0)
        why = conditions.get("DisruptionTarget") or {}
        return _At(Stage.LEAVING, asked, why.get("reason") or "", why.get("message") or "")
    created = seconds(metadata.get("creationTimestamp"))
    if status.get("phase") in _ENDED:
        return _ended(status, engine)
    if not spec.get("nodeName"):
        return _unscheduled(spec, conditions.get("PodScheduled") or {}, created)
    stuck = _stuck(spec, status, engine)
    if stuck is not None:
        return stuck
    ready = conditions.get("Ready") or {}
    changed = seconds(ready.get("lastTransitionTime"))
    if ready.get("status") == "True":
        return _At(Stage.READY, changed)
    running = (engine.get("state") or {}).get("running")
    if running is None:
        scheduled = conditions.get("PodScheduled") or {}
        return _At(Stage.PULLING, seconds(scheduled.get("lastTransitionTime")) or created)
    why = (ready.get("reason") or _BESIDE) if engine.get("ready") else ""
    if why and why != _GATES and (conditions.get("ContainersReady") or {}).get("status") != "False":
        # The kubelet turns both conditions and says why. Of a node that fell silent the node controller turns Ready alone, without a word.
        return _At(Stage.FAILED, changed, NODE_LOST, f"node {spec['nodeName']} does not answer")
    return _At(Stage.LOADING, seconds(running.get("startedAt")), why, ready.get("message") or "")


def _scheduled(status: Object) -> float | None:
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one.get("status") == "True":
            return seconds(one.get("lastTransitionTime")) or None
    return None


def _changed(status: Object) -> float:
    """When the pod last became ready or ceased to be."""
    return next(
        (
            seconds(one.get("lastTransitionTime"))
            for one in status.get("conditions") or ()
            if one["type"] == "Ready"
        ),
        0.0,
    )


def _unscheduled(spec: Object, scheduled: Object, created: float) -> _At:
    message = scheduled.get("message") or ""
    gates = [one["name"] for one in spec.get("schedulingGates") or ()]
    if gates:
        return _At(Stage.GATED, created, scheduled.get("reason") or "SchedulingGated", ", ".join(gates))
    since = seconds(scheduled.get("lastTransitionTime")) or created
    return _At(Stage.UNSCHEDULED, since, scheduled.get("reason") or "", message)


def _ended(status: Object, engine: Object) -> _At:
    """A pod that has ended as a whole: by the kubelet's own reason (Evicted, UnexpectedAdmissionError), else by how its engine ended."""
    ended = (engine.get("state") or {}).get("terminated") or _last_end(engine)
    reason = status.get("reason") or ended.get("reason") or status["phase"]
    message = status.get("message") or ended.get("message") or ""
    return _At(Stage.FAILED, seconds(ended.get("finishedAt")), reason, message)


def _stuck(spec: Object, status: Object, engine: Object) -> _At | None:
    """A container that cannot start, or that has ended and is to be started again; the engine's is looked at first."""
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in sorted(containers, key=lambda one: one is not engine):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        ended = _last_end(container)
        if waiting and (waiting.get("reason") or "ContainerCreating") not in _STARTING:
            word = waiting["reason"]
            said = waiting.get("message") or ""
            if word == "CrashLoopBackOff":
                word = word if (ended.get("reason") or "") in _UNTOLD else ended["reason"]
                said = ended.get("message") or said
            since, beside = seconds(ended.get("finishedAt")), _beside(spec, status, container, engine)
            return _At(Stage.FAILED, since, word, said, beside)
        if terminated and (container.get("name") == ENGINE or terminated.get("exitCode")):
            reason, said = terminated.get("reason") or "Error", terminated.get("message") or ""
            since, beside = seconds(terminated.get("finishedAt")), _beside(spec, status, container, engine)
            return _At(Stage.FAILED, since, reason, said, beside)
    return None


def _beside(spec: Object, status: Object, container: Object, engine: Object) -> Beside | None:
    if container is engine:
        return None
    name = str(container.get("name") or "")
    stays = any(
        one.get("name") == name and one.get("restartPolicy") == "Always"
        for one in spec.get("initContainers") or ()
    )
    return Beside(
        name=name,
        first=container in (status.get("initContainerStatuses") or ()) and not stays,
        restarts=int(container.get("restartCount") or 0),
        exit_code=_last_end(container).get("exitCode"),
    )


def _engine(status: Object) -> Object:
    found: list[Object] = status.get("containerStatuses") or []
    return next((one for one in found if one.get("name") == ENGINE), found[0] if found else {})


def _last_end(container: Object) -> Object:
    ended: Object | None = (container.get("state") or {}).get("terminated") or (
        container.get("lastState") or {}
    ).get("terminated")
    return ended or {}


def last_end(pod: Object) -> Object:
    """How a pod's engine ended last, as the kubelet tells it; empty where it never did."""
    return _last_end(_engine(pod.get("status") or {}))


def start_seconds(spec: Object) -> int:
    """How long the kubelet waits for a start; 0 where it waits for ever."""
    period, times = _start_probe(spec)
    return period * times


def _start_probe(spec: Object) -> tuple[int, int]:
    containers = spec.get("containers") or ()
    engine: Object = next((one for one in containers if one.get("name") == ENGINE), {})
    probe = engine.get("startupProbe") or {}
    return int(probe.get("periodSeconds") or _USUAL_PERIOD_S), int(probe.get("failureThreshold") or 0)


def _late_s(spec: Object, status: Object, ended: Object) -> int:
    """How long the engine was given to start, where the kubelet ended it for taking longer; else 0. Only events say so, and they are gone
    after an hour. So it is told by what stays: an engine that was stopped after all that time, and a pod that was never ready since."""
    period, times = _start_probe(spec)
    began = seconds(ended.get("startedAt"))
    ran = seconds(ended.get("finishedAt")) - began
    # The first probe comes at once, so there is one period less than probes.
    over = times > 0 and ran >= period * (times - 1)
    stopped = ended.get("exitCode") in _STOPPED and ended.get("reason") != "OOMKilled"
    late = over and stopped and _changed(status) <= began
    return period * times if late else 0


def _said(message: str) -> str:
    """The message of a pod. Where a supervisor left a report in it, that report's sentence; else the text as it is."""
    return _in_words(message, read_failure(message))


def _in_words(message: str, failure: Failure | None) -> str:
    return plain(message, _MESSAGE_KEPT) if failure is None else failure.message


def _runtime_port(spec: Object) -> int | None:
    for container in spec.get("containers") or ():
        if container.get("name") == ENGINE:
            for port in container.get("ports") or ():
                if port.get("name") == RUNTIME_PORT_NAME:
                    return int(port["containerPort"])
    return None


def _number(labels: dict[str, str], keys: tuple[str, ...]) -> int | None:
    text = next((labels[key] for key in keys if key in labels), "")
    return int(text) if text.isdecimal() else None
