"""On which nodes pods may run, near which other pods, and how they ask for devices."""

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
"""Label whose value is the same on all nodes of one NVLink domain."""
CLAIM: Final = "devices"


def undisturbed(annotations: Mapping[str, str], *, grouped: bool) -> dict[str, str]:
    """A pod's annotations, with those that keep autoscalers from taking its node away. The end of one pod of a group ends the whole
    group, so its pods keep them for life. Any other pod has them only while it loads, unless the user set one of them."""
    if grouped:
        return {**annotations, **names.STAY}
    if annotations.keys() & names.STAY.keys():
        return dict(annotations)
    return {**annotations, **names.STAY, names.ANNOTATION_UNTIL_READY: "true"}


def leave_to_patches(pod: dict[str, Any], patches: Iterable[PodPatch]) -> None:
    """Where a patch of the user's sets one of the annotations that keep the node: takes back those that we set for the time of loading,
    so that the user's own stay, also once the pod is ready."""
    annotations = pod["metadata"].get("annotations") or {}
    said = {path for patch in patches if patch.op != "test" for path, _ in brought(patch)}
    named = {key for key in names.STAY if f"/metadata/annotations/{key}" in said}
    if named and names.ANNOTATION_UNTIL_READY in annotations:
        for key in {names.ANNOTATION_UNTIL_READY, *names.STAY} - named:
            annotations.pop(key, None)


def resources(chosen: PlanSet) -> dict[str, Any]:
    """What the engine's container asks of its node. On CPUs limits equal requests, so that cores can be pinned and the pod surely has the
    memory that it was sized for. On GPUs host memory is only an estimate, and a limit might kill a pod that does nothing wrong."""
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
    """Cores in the API server's own spelling, so that what it returns equals what was sent."""
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


def claim_spec(chosen: PlanSet) -> dict[str, Any]:
    """The devices that a pod claims of a driver (resource.k8s.io/v1)."""
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
    """Keeps a group's pods near one another: in one NVLink domain where tensor parallelism spans pods, else in one zone if possible."""
    term = {
        "labelSelector": {"matchLabels": {names.LABEL_DEPLOYMENT: deployment}},
        "matchLabelKeys": [names.LABEL_SET, group_label],
    }
    if chosen.hardware.vendor == "nvidia" and chosen.layout.tensor > chosen.resources.devices:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": FABRIC}]}
    near = {"weight": 100, "podAffinityTerm": {**term, "topologyKey": ZONE}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [near]}


def spread(chosen: PlanSet, deployment: str) -> list[dict[str, Any]]:
    """Spreads replicas over zones and hosts as far as there is room, so that the loss of one does not take all replicas."""
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
    """The user's tolerations, and those of the taints by which nodes keep pods away that ask for no devices."""
    found = [toleration.to_dict() for toleration in spec.topology.tolerations]
    if "/" in hardware.resource or hardware.via_dra:
        domain = hardware.resource.partition("/")[0]
        keys = dict.fromkeys((hardware.resource, f"{domain}/gpu"))
        found += [{"key": key, "operator": "Exists"} for key in keys]
    return found
