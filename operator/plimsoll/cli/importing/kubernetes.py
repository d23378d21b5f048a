"""Deployments, StatefulSets, pods and LeaderWorkerSets that run an engine, with the Service and autoscaler beside them."""

from __future__ import annotations

from typing import Any

from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.metadata import (
    leave_metadata,
    opened,
    write_metadata,
    write_name,
    write_pod_labels,
    write_service_labels,
)
from plimsoll.cli.importing.pods import write_pod
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.volumes import told_by_kserve

WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "Pod", "LeaderWorkerSet")
BESIDE = ("Service", "HorizontalPodAutoscaler")
_WHO_REACHES = ("loadBalancerSourceRanges", "loadBalancerClass", "loadBalancerIP")
"""What says of a Service of type LoadBalancer who reaches it, beside its annotations."""


def write_workload(draft: Draft, document: dict[str, Any]) -> None:
    """One workload."""
    kind = document.get("kind")
    metadata, spec = opened(draft, document)
    if kind == "Pod":
        write_name(draft, metadata)
        downloaded = told_by_kserve(metadata)
        write_pod_labels(draft, metadata)
        write_pod(draft, spec, downloaded=downloaded)
        return
    write_metadata(draft, metadata)
    spec.put("replicas", "replicas")
    template = _leader(draft, spec) if kind == "LeaderWorkerSet" else spec.below("template")
    of_pods = template.below("metadata")
    downloaded = told_by_kserve(of_pods)
    write_pod_labels(draft, of_pods)
    write_pod(draft, template.below("spec"), downloaded=downloaded)
    spec.take("selector")
    spec.leave(
        "Plimsoll writes the workload by itself", {"volumeClaimTemplates": "spec.storage has claimTemplate"}
    )


def _leader(draft: Draft, spec: Reader) -> Reader:
    group = spec.below("leaderWorkerTemplate")
    draft.put("topology.groups", "LeaderWorkerSet", "kind LeaderWorkerSet")
    template = group.below("leaderTemplate") if "leaderTemplate" in group else group.below("workerTemplate")
    group.leave("Plimsoll writes the pods of a group from the layout")
    return template


def write_beside(draft: Draft, document: dict[str, Any]) -> None:
    """A Service or an autoscaler that stands beside the workload."""
    metadata, spec = opened(draft, document)
    name, namespace = metadata.text("name"), metadata.text("namespace")
    if namespace and namespace != draft.metadata.get("namespace"):
        draft.lose(f"metadata.namespace: {namespace}", "it is beside the workload, in the same namespace")
    if document.get("kind") == "Service":
        write_service_labels(draft, metadata)
        _service(draft, spec, name)
        return
    leave_metadata(metadata, metadata.below("labels"), "Plimsoll scales by itself")
    spec.put_least_replicas()
    spec.put("maxReplicas", "scaling.max")
    draft.leave_replicas_to(f"HorizontalPodAutoscaler {name}")
    spec.leave("Plimsoll scales by queue, KV and latency")


def _service(draft: Draft, spec: Reader, name: str | None) -> None:
    ports = spec.each("ports")
    if name == "vllm":
        draft.lose(
            "Service vllm",
            "a Service of this name breaks the engine's start; it is named after the deployment",
        )
    elif name and name != draft.metadata.get("name"):
        draft.put("networking.service.name", name, f"Service {name}")
    if len(ports) == 1:
        ports[0].put("port", "networking.service.port")
        ports[0].take("name")
        ports[0].take("targetPort")
        ports[0].take("protocol")
        ports[0].leave("Plimsoll writes the Service by itself")
    else:
        for port in ports:
            port.leave("a deployment has one port")
    kind = spec.text("type")
    if kind:
        draft.put("networking.service.type", kind, f"Service {name}: type {kind}")
    gone = [key for key in _WHO_REACHES if key in spec]
    if kind == "LoadBalancer" and gone:
        draft.warn(
            f"Service {name} stays a LoadBalancer without its {', '.join(gone)}, which has no field: more may reach it "
            "than do today; say who may in networking.service.annotations, or type ClusterIP"
        )
    spec.take("selector")
    spec.leave("Plimsoll writes the Service by itself")
