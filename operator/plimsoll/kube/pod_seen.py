"""One serving pod as its status tells: how far it is, since when, and in whose words it is stuck.

A function of the object alone. What a stage means for a set is `control`'s, what is told of it is `status`'.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plimsoll import names
from plimsoll.facts.failure import plain, read_failure
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.kube.times import seconds

Object = dict[str, Any]

ENGINE: Final = "engine"
RUNTIME_PORT_NAME: Final = "runtime"
_GROUP_LABELS: Final = (names.LABEL_GROUP, "leaderworkerset.sigs.k8s.io/group-index")
_RANK_LABELS: Final = ("leaderworkerset.sigs.k8s.io/worker-index", names.LABEL_RANK)
"""The set's own word first: its leaders are pods of one StatefulSet, whose index counts groups."""
_ENDED: Final = ("Failed", "Succeeded")
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""All other words of a container that waits say that something is wrong."""
_UNTOLD: Final = frozenset({"Error", "Completed", ""})
"""Words of an end that say less than CrashLoopBackOff does."""
_STOPPED: Final = (0, 137, 143)
"""Exit codes of an engine that the kubelet stopped: it ended in peace, was killed, or ended by the signal."""
NODE_LOST: Final = "NodeLost"
_SAID: Final = 1000
"""Characters kept of a message: the kubelet keeps 4 KiB of an engine's last words, for each of some thousand pods."""


class _At(NamedTuple):
    stage: Stage
    since: float
    reason: str = ""
    message: str = ""


def pod_seen(pod: Object) -> PodSeen:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    engine = _engine(status)
    ended = _last_end(engine)
    at = _at(metadata, spec, status, engine)
    labels = metadata.get("labels") or {}
    return PodSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        stage=at.stage,
        group=_number(labels, _GROUP_LABELS),
        rank=_number(labels, _RANK_LABELS) or 0,
        node=spec.get("nodeName"),
        scheduled=_scheduled(status),
        address=status.get("podIP") or "",
        created=seconds(metadata.get("creationTimestamp")),
        since=at.since or _changed(status) or seconds(metadata.get("creationTimestamp")),
        reason=at.reason,
        message=_said(at.message),
        ended=status.get("phase") in _ENDED,
        restarts=int(engine.get("restartCount") or 0),
        exit_code=ended.get("exitCode"),
        late_s=_late_s(spec, status, ended),
        failure=read_failure(ended.get("message") or ""),
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
        return _ended(status, engine, created)
    if not spec.get("nodeName"):
        return _unscheduled(spec, conditions.get("PodScheduled") or {}, created)
    stuck = _stuck(status)
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
    if engine.get("ready") and not spec.get("readinessGates"):
        # The kubelet last said that it is ready; whoever found the node silent says otherwise.
        return _At(Stage.FAILED, changed, NODE_LOST, f"node {spec['nodeName']} does not answer")
    return _At(Stage.LOADING, seconds(running.get("startedAt")), message=ready.get("message") or "")


def _scheduled(status: Object) -> float | None:
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one.get("status") == "True":
            return seconds(one.get("lastTransitionTime")) or None
    return None


def _changed(status: Object) -> float:
    """When it last became ready or ceased to be."""
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


def _ended(status: Object, engine: Object, created: float) -> _At:
    """The whole pod: by its kubelet's word (Evicted, UnexpectedAdmissionError), else as its engine ended."""
    ended = (engine.get("state") or {}).get("terminated") or _last_end(engine)
    reason = status.get("reason") or ended.get("reason") or status["phase"]
    message = status.get("message") or ended.get("message") or ""
    return _At(Stage.FAILED, seconds(ended.get("finishedAt")) or created, reason, message)


def _stuck(status: Object) -> _At | None:
    """The first container that cannot start, or has ended and is to be started again."""
    beside = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in sorted(beside, key=lambda one: one.get("name") != ENGINE):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        ended = _last_end(container)
        if waiting and (waiting.get("reason") or "ContainerCreating") not in _STARTING:
            word = waiting["reason"]
            said = waiting.get("message") or ""
            if word == "CrashLoopBackOff":
                word = word if (ended.get("reason") or "") in _UNTOLD else ended["reason"]
                said = ended.get("message") or said
            return _At(Stage.FAILED, seconds(ended.get("finishedAt")), word, said)
        if terminated and (container.get("name") == ENGINE or terminated.get("exitCode")):
            reason, said = terminated.get("reason") or "Error", terminated.get("message") or ""
            return _At(Stage.FAILED, seconds(terminated.get("finishedAt")), reason, said)
    return None


def _engine(status: Object) -> Object:
    found: list[Object] = status.get("containerStatuses") or []
    return next((one for one in found if one.get("name") == ENGINE), found[0] if found else {})


def _last_end(container: Object) -> Object:
    ended: Object | None = (container.get("state") or {}).get("terminated") or (
        container.get("lastState") or {}
    ).get("terminated")
    return ended or {}


def start_seconds(spec: Object) -> int:
    """The longest start that its kubelet waits for; 0 where it waits for ever."""
    period, times = _start_probe(spec)
    return period * times


def _start_probe(spec: Object) -> tuple[int, int]:
    containers = spec.get("containers") or ()
    engine: Object = next((one for one in containers if one.get("name") == ENGINE), {})
    probe = engine.get("startupProbe") or {}
    return int(probe.get("periodSeconds") or 10), int(probe.get("failureThreshold") or 0)


def _late_s(spec: Object, status: Object, ended: Object) -> int:
    """Events alone say it in words, and they are gone in an hour. What stays: an engine that was stopped after all that time, of a
    pod that has not been ready since it began."""
    period, times = _start_probe(spec)
    began = seconds(ended.get("startedAt"))
    ran = seconds(ended.get("finishedAt")) - began
    # The first of them is asked at once.
    over = times > 0 and ran >= period * (times - 1)
    late = over and ended.get("exitCode") in _STOPPED and _changed(status) <= began
    return period * times if late else 0


def _said(message: str) -> str:
    """What a supervisor left is told by its sentence, and the rest as it is."""
    left = read_failure(message)
    return plain(message, _SAID) if left is None else left.message


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
