"""On which nodes pods may go, beside which others, and what their devices are asked for by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll import names
from plimsoll.api.named import brought
from plimsoll.api.quantity import format_quantity
from plimsoll.api.v1alpha1.pods import PodPatch
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.pods import DISK
from plimsoll.planning.plan import Hardware, PlanSet
from plimsoll.render.owned import leaders_of

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
FABRIC: Final = "nvidia.com/gpu.clique"
"""Nodes whose GPUs share one NVLink domain."""
CLAIM: Final = "devices"


def undisturbed(annotations: Mapping[str, str], *, grouped: bool) -> dict[str, str]:
    """A pod's, with what keeps its node. Who takes one pod of a group takes the whole group, so these stay for as long as they
    are; another bears it while it loads, unless the user has said something about it."""
    if grouped:
        return {**annotations, **names.STAY}
    if annotations.keys() & names.STAY.keys():
        return dict(annotations)
    return {**annotations, **names.STAY, names.ANNOTATION_UNTIL_READY: "true"}


def as_patches_say(pod: dict[str, Any], patches: Iterable[PodPatch]) -> None:
    """Of a pod that bears it while it loads: who says something about it by a patch has the last word too, and keeps it."""
    annotations = pod["metadata"].get("annotations") or {}
    said = {path for patch in patches if patch.op != "test" for path, _ in brought(patch)}
    named = {key for key in names.STAY if f"/metadata/annotations/{key}" in said}
    if named and names.ANNOTATION_UNTIL_READY in annotations:
        for key in {names.ANNOTATION_UNTIL_READY, *names.STAY} - named:
            annotations.pop(key, None)


def resources(chosen: PlanSet) -> dict[str, Any]:
    """On CPUs limits equal requests, so that cores can be pinned and the sized memory is the pod's. Beside GPUs host memory
    is an estimate, and a limit on an estimate would kill what it should protect."""
    asked, hardware = chosen.resources, chosen.hardware
    requests = {"cpu": _cores(asked.cpu_millis), "memory": format_quantity(asked.memory_bytes)}
    limits = dict(requests) if hardware.vendor == "cpu" else {}
    if asked.disk_bytes:
        requests[DISK] = format_quantity(asked.disk_bytes)
    if hardware.via_dra:
        return {"requests": requests, "claims": [{"name": CLAIM}]}
    if hardware.vendor != "cpu":
        devices = {asked.resource: str(asked.devices)}
        requests, limits = requests | devices, limits | devices
    return {"requests": requests, "limits": limits}


def _cores(millis: int) -> str:
    """As the API server spells it."""
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


def claim_spec(chosen: PlanSet) -> dict[str, Any]:
    """What a pod's claim asks of the driver (resource.k8s.io/v1)."""
    hardware = chosen.hardware
    exactly: dict[str, Any] = {
        "deviceClassName": hardware.resource,
        "allocationMode": "ExactCount",
        "count": chosen.resources.devices,
    }
    if hardware.claim_selector is not None:
        exactly["selectors"] = [{"cel": {"expression": hardware.claim_selector}}]
    return {"spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}}}


def affinity(chosen: PlanSet, deployment: str, group_label: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chosen.hardware.selector:
        wanted = [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in sorted(chosen.hardware.selector.items())
        ]
        term = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": term}
    if chosen.pods_per_replica > 1:
        found["podAffinity"] = _together(chosen, deployment, group_label)
    return found


def _together(chosen: PlanSet, deployment: str, group_label: str) -> dict[str, Any]:
    """A group's pods near one another: in one NVLink domain where a tensor rank's peers are in other pods, else one zone."""
    term = {
        "labelSelector": {"matchLabels": {names.LABEL_DEPLOYMENT: deployment}},
        "matchLabelKeys": [names.LABEL_SET, group_label],
    }
    if chosen.hardware.vendor == "nvidia" and chosen.layout.tensor > chosen.resources.devices:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": FABRIC}]}
    near = {"weight": 100, "podAffinityTerm": {**term, "topologyKey": ZONE}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [near]}


def spread(chosen: PlanSet, deployment: str) -> list[dict[str, Any]]:
    """Replicas over zones, then over hosts, as far as there is room: one that goes down should not take all."""
    if chosen.pods_per_replica > 1:
        return []
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": leaders_of(deployment)},
        }
        for key in (ZONE, HOST)
    ]


def tolerations(spec: LLMDeploymentSpec, hardware: Hardware) -> list[dict[str, Any]]:
    """The user's, and the taints by which nodes keep pods without devices away."""
    found = [toleration.to_dict() for toleration in spec.topology.tolerations]
    if "/" in hardware.resource or hardware.via_dra:
        domain = hardware.resource.partition("/")[0]
        keys = dict.fromkeys((hardware.resource, f"{domain}/gpu"))
        found += [{"key": key, "operator": "Exists"} for key in keys]
    return found
