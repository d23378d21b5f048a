"""What the doctor is shown, object by object, as small as each can be."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from plimsoll import names
from plimsoll.api.crd import custom_resource_definition
from plimsoll.facts.examined import Examined

Object = dict[str, Any]
NOW = 1_800_000_000.0
RENEWED = "2027-01-15T08:00:00Z"
"""The same moment."""
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
}


def node(labels: Object | None = None, gpus: int = 8, **spec: Any) -> Object:
    allocatable = {"cpu": "64", "memory": "512Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    conditions = [{"type": "Ready", "status": "True"}, *spec.pop("conditions", ())]
    return {
        "metadata": {"name": "n1", "labels": LABELS if labels is None else labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def deployment(*conditions: Object, **spec: Any) -> Object:
    return {
        "metadata": {"name": "chat", "namespace": "team", "generation": 2},
        "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}} | spec,
        "status": {
            "observedGeneration": 2,
            "replicas": 1,
            "conditions": [{"observedGeneration": 2, "message": "words"} | one for one in conditions],
        },
    }


def serving_pod(name: str = "chat-1a2b3c4d-x", labels: Object | None = None, **status: Any) -> Object:
    """Ready where the status says nothing else."""
    ready = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "engine", "ready": True, "state": {"running": {}}}],
    }
    bound = {} if status.get("phase") == "Pending" else {"nodeName": "n1"}
    probe = {"startupProbe": {"periodSeconds": 10, "failureThreshold": 60}}
    asks = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": name,
            "labels": {names.LABEL_DEPLOYMENT: "chat", names.LABEL_SET: "1a2b3c4d"} | (labels or {}),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "engine"} | probe | asks]} | bound,
        "status": status or ready,
    }


def waiting(word: str, message: str = "") -> Object:
    engine: Object = {"name": "engine", "state": {"waiting": {"reason": word, "message": message}}}
    return serving_pod(phase="Running", containerStatuses=[engine])


def dies(message: str = "", code: int = 1) -> Object:
    ended = {"terminated": {"reason": "Error", "exitCode": code, "message": message}}
    back_off = {"waiting": {"reason": "CrashLoopBackOff"}}
    engine: Object = {"name": "engine", "state": back_off, "restartCount": 4, "lastState": ended}
    return serving_pod(phase="Running", containerStatuses=[engine])


def unscheduled(message: str, name: str = "chat-1a2b3c4d-x", labels: Object | None = None) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return serving_pod(name, labels, phase="Pending", conditions=[condition])


def held_back() -> Object:
    """Its engine is ready and a container beside it is not."""
    found = serving_pod()
    why = {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [istio-proxy]",
    }
    conditions = [{"type": kind} | why for kind in ("Ready", "ContainersReady")]
    return found | {"status": found["status"] | {"conditions": conditions}}


def overdue() -> Object:
    """It was to be gone ten minutes ago."""
    found = serving_pod()
    return found | {"metadata": found["metadata"] | {"deletionTimestamp": "2027-01-15T07:50:00Z"}}


def workload(kind: str = "Deployment", replicas: int = 0, *conditions: Object) -> Object:
    return {
        "kind": kind,
        "metadata": {
            "name": "chat-1a2b3c4d",
            "namespace": "team",
            "labels": {names.LABEL_DEPLOYMENT: "chat", names.LABEL_SET: "1a2b3c4d"},
        },
        "spec": {"replicas": 1},
        "status": {"replicas": replicas, "conditions": list(conditions)},
    }


def event(reason: str, message: str, kind: str, name: str, uid: str | None = None, **times: Any) -> Object:
    """Of this very moment where no time is given."""
    involved = {"kind": kind, "namespace": "team", "name": name} | ({"uid": uid} if uid else {})
    return {
        "reason": reason,
        "message": message,
        "involvedObject": involved,
        "metadata": {"creationTimestamp": "2027-01-15T07:00:00Z"},
    } | (times or {"lastTimestamp": RENEWED})


def scaler(name: str = "load", target: tuple[str, str] = (names.KIND, "chat"), *conditions: Object) -> Object:
    version = names.API_VERSION if target[0] == names.KIND else "apps/v1"
    return {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"scaleTargetRef": {"apiVersion": version, "kind": target[0], "name": target[1]}},
        "status": {"conditions": list(conditions)},
    }


def scaled_object(*conditions: Object) -> Object:
    return {**scaler("load", (names.KIND, "chat"), *conditions), "kind": "ScaledObject"}


def claim(class_: str | None = None, name: str = "weights", phase: str = "Pending") -> Object:
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"storageClassName": class_} if class_ else {},
        "status": {"phase": phase},
    }


def storage_class(name: str = "fast", mode: str = "Immediate", *, default: bool = False) -> Object:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "annotations": notes}, "volumeBindingMode": mode}


def lease(holder: str = "pod-a", renewed: str = RENEWED, watches: str = "") -> Object:
    notes = {names.ANNOTATION_WATCHES: watches} if watches else {}
    return {
        "metadata": {"name": names.LEASE, "namespace": "plimsoll", "annotations": notes},
        "spec": {"holderIdentity": holder, "renewTime": renewed},
    }


def old_crd(*lacks: str) -> Object:
    """One that lacks a field; without its names two of the spec."""
    found = deepcopy(custom_resource_definition())
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for *way, last in [lacks] if lacks else [("spec", "slo"), ("spec", "model", "revision")]:
        at = schema["properties"]
        for name in way:
            at = at[name]["properties"]
        del at[last]
    return found


HEALTHY: Object = {
    "nodes": (node(),),
    "crds": (custom_resource_definition(),),
    "leases": (lease(),),
    "deployments": (deployment({"type": "Ready", "status": "True", "reason": "Serving"}),),
    "workloads": (workload("Deployment", 1),),
    "pods": (serving_pod(),),
    "classes": (storage_class(default=True),),
}


def look(**others: Any) -> Examined:
    return Examined(now=NOW, **{**HEALTHY, **others})
