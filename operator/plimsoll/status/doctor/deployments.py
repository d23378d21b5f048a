"""What can be wrong with deployments and their pods. What is said of pods and refusals is said in the same words by conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from plimsoll import names
from plimsoll.control.gate import OF_QUERY, QUERY_FAILED
from plimsoll.control.rollout.groups import told as half_scheduled
from plimsoll.facts.examined import Examined, Object
from plimsoll.facts.serving import PodSeen, SetSeen, Stage
from plimsoll.kube.pod_seen import ENGINE, last_end, pod_seen, start_seconds
from plimsoll.kube.refused import refusal_text, refused_pods
from plimsoll.kube.times import seconds
from plimsoll.status.doctor.events import events_of, last_told
from plimsoll.status.doctor.found import (
    Found,
    about,
    conditions,
    in_scope,
    key_of,
    labels,
    metadata,
    name_of,
    owner_key,
)
from plimsoll.status.doctor.volumes import volumes_being_made
from plimsoll.status.pod_words import GONE_FOR_GOOD, is_over, slower_start, words_of
from plimsoll.status.refusals import words_of_refusal

CALM: Final = frozenset({
    "Starting", "RollingOut", "WaitingForNodes", "Stopped", "ScaledToZero",
})  # fmt: skip
"""Reasons not to be Ready that time cures, or that were asked for. Paused is none: what does not serve then does not come to by itself."""
HELD: Final = {
    names.METRICS: "False",
    names.SCALING: "True",
    names.AUTOTUNE_PAUSED: "True",
    names.SLO: "False",
}
"""Conditions under which a deployment serves, and does not follow its traffic or keep its promise; each with the status that says so."""
MOUNTING: Final = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
SETTING_UP: Final = MOUNTING | {"FailedCreatePodSandBox", "FailedPrepareDynamicResources"}
"""Reasons of events by which a kubelet says what it could not do for a pod before it pulled its images. It does one after the other."""
SETTING_UP_SECONDS: Final = 600.0
"""The kubelet says again about every two minutes that it cannot mount a volume, and after 25 events about a pod one in five minutes at most;
what it has not said for twice as long is over."""
IS_SET_UP: Final = "PodReadyToStartContainers"
"""Condition by which the kubelet says that all of that is done."""
BY_PROBE: Final = ("EngineEnded", "HostOutOfMemory", "ProbeTooShort")
"""Reasons that a pod shows where the kubelet ended its engine for a failed probe; then the kubelet's own words say more."""
SPIN_UP_SECONDS: Final = 10.0
"""A pod without a node is not told of before this time, as it may only be new."""
STUCK_SECONDS: Final = 120.0
"""How much longer than it was given a pod may take to be gone."""
_COMES: Final = ("quota", "others")
"""What pods wait for that most often comes by itself; where they have no node after that time it has not come."""


def conditions_told(examined: Examined) -> Iterator[Found]:
    """What the operator itself says in conditions, as far as they are of the present spec."""
    for item in examined.deployments:
        states = conditions(item)
        current = {
            kind: one
            for kind, one in states.items()
            if one.get("observedGeneration") == metadata(item).get("generation")
        }
        stalled, ready = current.get(names.STALLED, {}), current.get(names.READY, {})
        worst = stalled if stalled.get("status") == "True" else ready
        degraded = current.get(names.DEGRADED, {})
        if worst is ready and ready.get("status") == "False" and ready.get("reason") == "Paused":
            yield _said(item, ready, "warning", "set spec.paused to false")
        elif worst.get("status") in ("True", "False") and not (worst is ready and _calm(ready)):
            # It serves, with fewer than are wanted. A pod that fails is an error of its own.
            fewer = degraded.get("status") == "True" and degraded.get("reason") == "FewerReplicas"
            yield _said(item, worst, "warning" if worst is ready and fewer else "error")
        if degraded.get("status") == "True" and worst is ready and ready.get("status") == "True":
            yield _said(item, degraded, "warning")
        for kind, ill in HELD.items():
            said = current.get(kind, {})
            if said.get("status") == ill and (reason := said.get("reason")) != "SetReplicas":
                yield _said(item, said, "warning", _cure(kind, reason, item))
        for one in (item.get("status") or {}).get("sets") or ():
            if one.get("warning"):
                yield Found(
                    severity="warning", about=about(names.KIND, item), reason="EngineWarns", message=str(one["warning"]), remedy="",
                )  # fmt: skip


def _calm(ready: Object) -> bool:
    return ready.get("status") == "True" or ready.get("reason") in CALM


def _said(item: Object, condition: Object, severity: Any, remedy: str = "") -> Found:
    return Found(
        severity=severity,
        about=about(names.KIND, item),
        reason=str(condition.get("reason")),
        message=str(condition.get("message")),
        remedy=remedy,
    )


def _cure(kind: str, reason: str | None, item: Object) -> str:
    """What to do about a condition whose message tells only what is so."""
    if kind == names.METRICS and reason == QUERY_FAILED:
        return "the Prometheus of prometheusUrl, and how much it is asked; docs/runbooks/MetricsStale.md tells more"
    if kind == names.METRICS and reason in OF_QUERY:
        return "spec.scaling.zero.wake.query, seen at prometheusUrl; docs/runbooks/MetricsStale.md tells more"
    if kind == names.METRICS:
        return "the PodMonitor, a NetworkPolicy, the engine's flags or prometheusUrl; docs/runbooks/MetricsStale.md tells which"
    if kind == names.AUTOTUNE_PAUSED:
        where = f"{name_of(item)} -n {_space(item)}"
        return (
            f"plimsoll history {where} says what was tried; once that is cured, kubectl annotate llm {where} --overwrite "
            f'{names.ANNOTATION_RESET}="$(date +%s)"'
        )
    return ""


def pods(examined: Examined) -> Iterator[Found]:
    """Pods that cannot be scheduled, pulled, configured or kept alive."""
    killed, making = _killed_by_probe(examined), volumes_being_made(examined)
    served = _served(examined)
    for item in in_scope(examined, examined.pods):
        seen = pod_seen(dict(item))
        if seen.stage is Stage.UNSCHEDULED and examined.now - seen.created < SPIN_UP_SECONDS:
            continue
        words = None if is_over(seen, examined.now) else words_of(seen)
        if words is None or (key_of(item) in killed and words.reason in BY_PROBE):
            continue
        if words.reason == "NoScheduler" and (claim := making.get(key_of(item))):
            yield Found(
                severity="warning", about=about("Pod", item), reason="Volume",
                message=f"{seen.name} waits on the node chosen for it until the volume of claim {claim} is made there",
                remedy=f"its provisioner says more: kubectl -n {_space(item)} describe pvc {claim}",
            )  # fmt: skip
            continue
        # Another pod is made in the place of one that its node ended. As long as none serves, each may end in the same way.
        comes = words.waits in _COMES and seen.stage is not Stage.UNSCHEDULED
        comes = comes and not (seen.ended and owner_key(item) not in served)
        yield Found(
            severity="warning" if comes or seen.stage is Stage.READY else "error",
            about=about("Pod", item), reason=words.reason,
            message=words.message, remedy=words.remedy or f"kubectl -n {_space(item)} describe pod {seen.name}",
        )  # fmt: skip


def leaving(examined: Examined) -> Iterator[Found]:
    """Pods that should be gone, of which a node that is away does not say that they are. A StatefulSet makes no others before."""
    served = _served(examined)
    for item in in_scope(examined, examined.pods):
        due = seconds(metadata(item).get("deletionTimestamp"))
        if due and examined.now - due > STUCK_SECONDS:
            node = (item.get("spec") or {}).get("nodeName") or "none"
            yield Found(
                severity="warning" if owner_key(item) in served else "error", about=about("Pod", item), reason="StuckLeaving",
                message=f"{name_of(item)} was to be gone {(examined.now - due) / 60:.0f} minutes ago, and its node ({node}) does not say that it is",
                remedy=f"look at the node; where it is gone for good: {GONE_FOR_GOOD}",
            )  # fmt: skip


def _served(examined: Examined) -> set[str]:
    """Deployments (namespace/name) of which a pod serves."""
    there = in_scope(examined, examined.pods)
    return {owner_key(item) for item in there if pod_seen(dict(item)).stage is Stage.READY}


def setting_up(examined: Examined) -> Iterator[Found]:
    """Volumes, devices and a network that a node cannot give to a pod, which only events tell."""
    told = sorted(
        events_of(examined, in_scope(examined, examined.pods), SETTING_UP), key=lambda one: last_told(one[1])
    )
    last = {key_of(item): (item, event) for item, event in told}
    for item, event in last.values():
        done = conditions(item).get(IS_SET_UP, {}).get("status") == "True"
        over = done or examined.now - last_told(event) > SETTING_UP_SECONDS
        if over or pod_seen(dict(item)).stage is not Stage.PULLING:
            continue
        said = f"{event.get('reason')}: {event.get('message')}"
        if event.get("reason") in MOUNTING:
            yield Found(
                severity="error", about=about("Pod", item), reason="Volume",
                message=f"{name_of(item)} waits for a volume: {said}",
                remedy="check what spec.storage and the Secrets and ConfigMaps of the spec name",
            )  # fmt: skip
        else:
            yield Found(
                severity="error", about=about("Pod", item), reason="Sandbox",
                message=f"{name_of(item)} cannot be set up on its node: {said}",
                remedy="mend what the event names, the node's network plugin, container runtime or DRA driver: "
                f"kubectl -n {_space(item)} describe pod {name_of(item)}",
            )  # fmt: skip


def probes(examined: Examined) -> Iterator[Found]:
    """Engines that the kubelet ended before they had loaded."""
    killed = _killed_by_probe(examined)
    for item in in_scope(examined, examined.pods):
        if key_of(item) not in killed or pod_seen(dict(item)).stage in (Stage.READY, Stage.LEAVING):
            continue
        allowed = start_seconds(dict(item.get("spec") or {}))
        within = f" after {allowed} s" if allowed else ""
        yield Found(
            severity="error", about=about("Pod", item), reason="ProbeTooShort",
            message=f"the kubelet ended the engine{within}, before it had loaded its model: {killed[key_of(item)]}",
            remedy=slower_start(allowed),
        )  # fmt: skip


def _killed_by_probe(examined: Examined) -> dict[str, str]:
    """What the kubelet said of pods whose engine it ended, by pod (namespace/name). What a pod has loaded since is no matter of its probe, nor
    is how it has ended since."""
    return {
        key_of(item): str(event.get("message"))
        for item, event in events_of(examined, in_scope(examined, examined.pods), ("Killing",))
        if f"Container {ENGINE} failed startup probe" in str(event.get("message"))
        and last_told(event) >= (pod_seen(dict(item)).unready or 0.0)
        and _may_be_of(event, last_end(dict(item)))
    }


def _may_be_of(event: Object, end: Object) -> bool:
    """Whether an engine that ended so may have been ended by its probe when the event says. One that lost a process for host memory may
    hang until its probe fails, which then is no cause."""
    return last_told(event) >= seconds(end.get("startedAt")) and end.get("reason") != "OOMKilled"


def refusals(examined: Examined) -> Iterator[Found]:
    """Pods that were never made, by the Deployment's own condition, and for StatefulSets by events of their controller."""
    failed = {
        (str(item.get("kind")), key_of(item)): str(event.get("message") or "")
        for item, event in events_of(examined, examined.workloads, ("FailedCreate",))
    }
    for item in in_scope(examined, examined.workloads):
        status, kind = item.get("status") or {}, str(item.get("kind"))
        text = refused_pods(status)
        if not text and _short(item):
            text = refusal_text(failed.get((kind, key_of(item)), ""))
        if not text:
            continue
        set_ = f"{labels(item).get(names.LABEL_DEPLOYMENT, '')}-{labels(item).get(names.LABEL_SET, '')}"
        words = words_of_refusal(set_, text)
        yield Found(
            severity="error", about=about(kind, item), reason=words.reason, message=words.message,
            remedy=words.remedy,
        )  # fmt: skip


def _short(workload: Object) -> bool:
    wanted = (workload.get("spec") or {}).get("replicas")
    there = (workload.get("status") or {}).get("replicas") or 0
    return there < (1 if wanted is None else wanted)


def group_pods(examined: Examined) -> Iterator[Found]:
    """Replicas of several pods of which only some pods have a node."""
    sets: dict[tuple[str, str], list[PodSeen]] = {}
    for item in in_scope(examined, examined.pods):
        seen = pod_seen(dict(item))
        if seen.group is not None and not seen.ended:
            name = names.set_name(owner_key(item).partition("/")[2], labels(item).get(names.LABEL_SET, ""))
            sets.setdefault((owner_key(item), name), []).append(seen)
    for (owner, name), found in sorted(sets.items()):
        groups = sorted({pod.group for pod in found if pod.group is not None})
        said = half_scheduled(
            SetSeen(name=name, replicas=len(groups), pods=tuple(found), groups=tuple(groups))
        )
        if said is not None:
            yield Found(
                severity="error", about=f"{names.KIND} {owner}", reason="GroupHalfScheduled", message=said,
                remedy="free GPUs for the rest, or ask for fewer replicas: spec.replicas",
            )  # fmt: skip


def _space(item: Object) -> str:
    return str(metadata(item).get("namespace", ""))
