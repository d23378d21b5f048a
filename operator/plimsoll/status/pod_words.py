"""What is wrong with a pod, in words that a person can act on. Conditions and `plimsoll doctor` use the same words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import NODE_LOST, Beside, PodSeen, Stage
from plimsoll.facts.unplaced import Lack, lack_of

Waits = Literal["gpus", "nodes", "quota", "others", "nothing"]
"""What a pod waits for before it can serve; `others` are a container beside the engine, a readiness gate, a volume that is being made, a
scheduler that has not looked yet, or the pod that is made in its place, which most often come by themselves."""
UNEXPLAINED: Final = "EngineEnded"
BROUGHT: Final = "plimsoll"
"""Name of the init container that brings the supervisor."""
_WHENCE: Final = "spec.podPatches, or a webhook of the cluster"
"""Where containers beside the engine come from."""
OVER_SECONDS: Final = 3600.0
"""How long a pod is told of for an engine that ended and serves again, or for having ended itself. Turns of what serves come as often, so that
each condition ends by itself."""
GONE_FOR_GOOD: Final = "kubectl delete node, or its taint node.kubernetes.io/out-of-service"
_HEARSAY: Final = {"MemberLost": 1, "LeaderLost": 1, "GroupEnded": 2, UNEXPLAINED: 3}
"""Reasons of pods that ended because another pod of their replica did. The higher the number, the less such a pod knows of the cause; one
with the highest was killed before it could say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWords:
    reason: str
    """A stable word."""
    message: str
    """Names the pod and what was seen."""
    remedy: str
    waits: Waits = "nothing"

    @property
    def sentence(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def trouble_of(pods: Iterable[PodSeen]) -> list[PodWords]:
    """What is wrong with pods, in their order, but those first that know the cause: the pods of a replica end together, and only one of them
    ended by itself."""
    words = [found for pod in pods if (found := words_of(pod)) is not None]
    return sorted(words, key=lambda found: _HEARSAY.get(found.reason, 0))


def words_of(pod: PodSeen) -> PodWords | None:
    """What is wrong with a pod; None where it serves, loads as it should, or is being deleted."""
    if pod.stage is Stage.UNSCHEDULED:
        return _unscheduled(pod)
    if pod.stage is Stage.GATED:
        return PodWords(
            reason="Gated",
            message=f"{pod.name} is held back by a scheduling gate{_said(pod)}",
            remedy="see the queue that admits it: kubectl get workloads",
            waits="quota",
        )
    if pod.ended:
        return _evicted(pod) if pod.reason == "Evicted" else _ended_by_node(pod)
    if pod.held_back:
        return PodWords(
            reason=pod.reason,
            message=f"{pod.name} is not ready, though its engine is: {pod.message or pod.reason}",
            remedy=f"kubectl describe pod {pod.name} says more",
            waits="others",
        )
    if pod.beside is not None:
        return _FAILURES.get(pod.reason, _gone)(pod)
    if pod.failure is not None and pod.stage is not Stage.LEAVING and pod.reason != NODE_LOST:
        return _told(pod, pod.failure)
    if pod.stage is Stage.FAILED:
        return _FAILURES.get(pod.reason, _died)(pod)
    if pod.crashed_last and pod.stage is not Stage.LEAVING:
        # It runs again; what it says now is not why it ended.
        last = replace(pod, reason=pod.ended_by, message=pod.last_words)
        return _FAILURES.get(last.reason, _died)(last)
    return None


def is_over(pod: PodSeen, now: float) -> bool:
    """Whether its end is told no more: it has served for so long since its engine ended, of which the count of restarts never goes back, or
    another pod has taken its place for as long."""
    return (pod.ended or pod.stage is Stage.READY) and now - pod.since > OVER_SECONDS


def _unscheduled(pod: PodSeen) -> PodWords:
    text, lack = pod.message, lack_of(pod)
    if lack is Lack.SCHEDULER:
        return PodWords(
            reason="NoScheduler",
            message=f"{pod.name} has no node yet: no scheduler has looked at it (spec.scheduling.schedulerName says which should)",
            remedy="",
            waits="others",
        )
    if lack is Lack.VOLUME:
        binds = "unbound immediate" in text
        return PodWords(
            reason="VolumeUnbound" if binds else "NoVolume",
            message=f"{pod.name} has no node: {text}",
            remedy="check spec.storage: the claim"
            + (" is not there" if "not found" in text else ", its class or its volume is not there"),
            waits="others" if binds else "nothing",
        )
    known = _FOR_NODES if lack is Lack.NODES else _FOR_ROOM
    remedy = next((helps for says, helps in known if says.search(text)), "")
    what = "has no node" if remedy else "has no node yet"
    said = f": {text}" if text else ""
    return PodWords(reason="Unschedulable", message=f"{pod.name} {what}{said}", remedy=remedy, waits="gpus")


_FOR_ROOM: Final = (
    (
        re.compile(r"Insufficient \S+/\S+|cannot allocate all claims"),
        "free GPUs, add nodes, or ask for fewer replicas",
    ),
    (
        re.compile("Insufficient memory"),
        "nodes with more host memory, or smaller memory.kvOffload and memory.cpuOffload",
    ),
    (re.compile("Insufficient cpu"), "nodes with more free cores"),
    (re.compile("Insufficient"), "free GPUs, add nodes, or ask for fewer replicas"),
)
"""What a scheduler's sentence has, and what helps, by how much it tells. Other nodes, of the control plane or without GPUs, are in nearly each
such sentence and matter to no pod that lacks room: labels and taints would be of them."""
_TOLERATE: Final = "tolerate the taint in topology.tolerations, or choose other nodes"
_FOR_NODES: Final = (
    (re.compile(r"had untolerated taint(?! \{node(-role)?\.kubernetes\.io/)"), _TOLERATE),
    *_FOR_ROOM,
    (
        re.compile("didn't match Pod's node affinity"),
        "check the labels of the GPU nodes: kubectl get nodes --show-labels",
    ),
    (re.compile(r"had untolerated taint \{node-role\."), _TOLERATE),
)
"""Nodes that are too small have passed the selector, so their labels are right. The taint of a control plane matters where there is nothing
else, and what Kubernetes taints by itself, as a node that does not answer, is to be mended and not tolerated."""


def _pull(pod: PodSeen) -> PodWords:
    if pod.beside is None:
        remedy = "check engine.image and engine.imagePullSecrets, and registry.mirror and registry.runtimeImage of the admin's file"
    elif pod.beside.name == BROUGHT:
        remedy = (
            "check registry.runtimeImage and registry.mirror of the admin's file, and engine.imagePullSecrets"
        )
    else:
        remedy = f"check its image where it comes from ({_WHENCE}), and engine.imagePullSecrets"
    return PodWords(
        reason="ImagePull",
        message=f"{_who(pod)} cannot pull its image ({pod.reason}){_said(pod)}",
        remedy=remedy,
    )


def _config_error(pod: PodSeen) -> PodWords:
    return PodWords(
        reason="ConfigError",
        message=f"{_who(pod)} cannot be made ({pod.reason}){_said(pod)}",
        remedy="check that the Secrets and ConfigMaps that the spec names are there, with those keys",
    )


def _cannot_run(pod: PodSeen) -> PodWords:
    return PodWords(
        reason="CannotRun",
        message=f"{_who(pod)} cannot be started by its node ({pod.reason}){_times(pod)}{_said(pod)}",
        remedy="check the node's GPU driver and container runtime, and the command where spec.podPatches set one; it left no log",
    )


def _oom(pod: PodSeen) -> PodWords:
    remedy = (
        "smaller memory.kvOffload or memory.cpuOffload, on CPUs a smaller topology.cpu.kvCacheSize or more topology.cpu.memory; "
        "else patch a larger memory limit by podPatches"
    )
    if pod.beside is not None:
        remedy = f"a larger memory limit for it where it comes from: {_WHENCE}"
    return PodWords(
        reason="HostOutOfMemory",
        message=f"{_who(pod)} was killed for host memory (exit code {_last(pod).exit_code or 137}){_times(pod)}",
        remedy=remedy,
    )


def _evicted(pod: PodSeen) -> PodWords:
    return PodWords(
        reason="Evicted",
        message=f"{pod.name} was evicted{_said(pod)}",
        remedy="look for pressure on its node: kubectl describe node",
        waits="others",
    )


def _ended_by_node(pod: PodSeen) -> PodWords:
    return PodWords(
        reason="EndedByNode",
        message=f"{pod.name} was refused or stopped by its node ({pod.reason}){_said(pod)}",
        remedy=f"kubectl describe pod {pod.name} says more",
        waits="others",
    )


def _lost(pod: PodSeen) -> PodWords:
    then = "some minutes after it lost a node the cluster deletes its pods, and others are made"
    if pod.group is not None:
        then = f"no other pod is made in its place before the node is back, or it is said to be gone for good: {GONE_FOR_GOOD}"
    return PodWords(
        reason=NODE_LOST,
        message=f"{pod.name} is lost{_said(pod)}",
        remedy=f"look why: kubectl describe node; {then}",
    )


def slower_start(given_s: int) -> str:
    return (
        f"set spec.rollout.deadlineSeconds above the {given_s or 'few'} seconds that it was given, or make the weights quicker to "
        "read: spec.storage.weights"
    )


def _told(pod: PodSeen, failure: Failure) -> PodWords:
    return PodWords(
        reason=failure.word,
        message=f"the engine of {pod.name} ended{_times(pod)}: {failure.message}",
        remedy=failure.remedy,
    )


def _died(pod: PodSeen) -> PodWords:
    if pod.late_s:
        return PodWords(
            reason="ProbeTooShort",
            message=f"the kubelet ended the engine of {pod.name} after {pod.late_s} s, before it had loaded its model{_times(pod)}",
            remedy=slower_start(pod.late_s),
        )
    return _gone(pod)


def _gone(pod: PodSeen) -> PodWords:
    """Of a container that ended by itself, the engine's or another one."""
    who, unknown, log = f"the engine of {pod.name}", UNEXPLAINED, pod.name
    if pod.beside is not None:
        who, unknown, log = _who(pod), "ContainerEnded", f"{pod.name} -c {pod.beside.name}"
    # What runs beside the engine asks no hub and fills no volume of the spec; what runs before it may be there to fetch the model.
    fetches = pod.beside is None or pod.beside.first
    known = ((why, helps) for said, why, helps in _LAST_WORDS if fetches and said.search(pod.message))
    reason, remedy = next(known, (unknown, f"kubectl logs {log} --previous says why"))
    code = f" with exit code {_last(pod).exit_code}" if _last(pod).exit_code is not None else ""
    return PodWords(reason=reason, message=f"{who} ended{code}{_times(pod)}{_said(pod)}", remedy=remedy)


_LAST_WORDS: Final = (
    (
        re.compile(
            r"(?<!private or )gated repo|GatedRepo|401 Client Error|403 Client Error|Access to model .* is restricted",
            re.IGNORECASE,
        ),
        "HubRefused",
        "accept the model's terms, and name a token that may read it in spec.model.tokenSecret",
    ),
    (
        re.compile(r"Repository Not Found|Revision Not Found|is not a valid model identifier", re.IGNORECASE),
        "ModelNotFound",
        "correct spec.model.source and spec.model.revision; a private one also needs spec.model.tokenSecret",
    ),
    (
        re.compile(
            r"name resolution|Name or service not known|Failed to resolve|Max retries exceeded|couldn't connect to"
            r"|Network is unreachable|LocalEntryNotFound",
            re.IGNORECASE,
        ),
        "HubUnreachable",
        "let the pods reach the hub (proxy, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights",
    ),
    (
        re.compile(r"No space left on device", re.IGNORECASE),
        "DiskFull",
        "a larger spec.storage.weights or spec.storage.cache",
    ),
    (
        re.compile(
            r"driver on your system is too old|driver version is insufficient|no CUDA-capable device|no NVIDIA driver"
            r"|libcuda\.so|Failed to infer device type",
            re.IGNORECASE,
        ),
        "Driver",
        "the node's GPU driver is missing or too old for the engine: update it, or choose others by topology.nodeSelector",
    ),
)
"""Pattern of an engine's last output, reason, and remedy, for ends whose cause is outside the engine."""


_FAILURES: Final[dict[str, Callable[[PodSeen], PodWords]]] = {
    "ErrImagePull": _pull,
    "ImagePullBackOff": _pull,
    "InvalidImageName": _pull,
    "ErrImageNeverPull": _pull,
    "ImageInspectError": _pull,
    "RegistryUnavailable": _pull,
    "SignatureValidationFailed": _pull,
    "CreateContainerConfigError": _config_error,
    "CreateContainerError": _config_error,
    "RunContainerError": _cannot_run,
    "StartError": _cannot_run,
    "ContainerCannotRun": _cannot_run,
    "OOMKilled": _oom,
    NODE_LOST: _lost,
}


def _who(pod: PodSeen) -> str:
    return pod.name if pod.beside is None else f"container {pod.beside.name} of {pod.name}"


def _last(pod: PodSeen) -> PodSeen | Beside:
    """Whose restarts and exit code are told."""
    return pod.beside or pod


def _times(pod: PodSeen) -> str:
    return f", {times} times" if (times := _last(pod).restarts) > 1 else ""


def _said(pod: PodSeen) -> str:
    return f": {pod.message}" if pod.message else ""
