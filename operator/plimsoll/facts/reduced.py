"""Kubernetes objects cut down to what an inventory reads of them, in their own form.

It matters as much what is left out: images, environment, annotations and addresses stay in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll import names
from plimsoll.api.problems import Problem, SpecError, show
from plimsoll.facts.labels.dra import DRIVERS, claimed, parse_slice
from plimsoll.facts.pods import DISK, parse_pod

Object = Mapping[str, Any]


def node(item: Object) -> dict[str, Any]:
    metadata, spec, status = (item.get(part) or {} for part in ("metadata", "spec", "status"))
    ready = [
        {"type": "Ready", "status": one.get("status")}
        for one in status.get("conditions") or ()
        if one.get("type") == "Ready"
    ]
    result: dict[str, Any] = {
        "metadata": _some(metadata, ("name", "labels", "deletionTimestamp")),
        "spec": _some(spec, ("unschedulable",)),
        "status": {"allocatable": _sorted(status.get("allocatable") or {})},
    }
    if taints := spec.get("taints"):
        result["spec"]["taints"] = [_some(taint, ("key", "value", "effect")) for taint in taints]
    if status.get("conditions") is not None:
        result["status"]["conditions"] = ready
    return {key: value for key, value in result.items() if value}


def pod(item: Object) -> dict[str, Any] | None:
    """The pod with one container, whose requests are what the scheduler counts for it; None where it takes nothing of a node."""
    use = parse_pod(item)
    if use is None:
        return None
    metadata = item.get("metadata") or {}
    requests = {resource: str(count) for resource, count in use.devices}
    if use.cpu_millis:
        requests["cpu"] = f"{use.cpu_millis}m"
    if use.memory_bytes:
        requests["memory"] = str(use.memory_bytes)
    if use.disk_bytes:
        requests[DISK] = str(use.disk_bytes)
    kept = _some(metadata, ("name", "namespace"))
    owner = (metadata.get("labels") or {}).get(names.LABEL_DEPLOYMENT)
    if owner:
        kept["labels"] = {names.LABEL_DEPLOYMENT: owner}
    container = {"resources": {"requests": _sorted(requests)}} if requests else {}
    return {"metadata": kept, "spec": {"nodeName": use.node, "containers": [container]}}


def resource_slice(item: Object) -> dict[str, Any] | None:
    """A ResourceSlice of GPUs; None for devices of other drivers."""
    spec = item.get("spec") or {}
    if spec.get("driver") not in DRIVERS:
        return None
    return {
        "metadata": _some(item.get("metadata") or {}, ("name",)),
        "spec": _some(spec, ("driver", "nodeName", "pool", "devices")),
    }


def claim(item: Object) -> dict[str, Any] | None:
    """A claim with its allocation; None where nothing was allocated."""
    devices, pods = claimed(item)
    if not devices:
        return None
    results = [{"driver": driver, "pool": pool, "device": device} for driver, pool, device in devices]
    consumers = [{"resource": "pods", "name": name.partition("/")[2]} for name in pods]
    return {
        "metadata": _some(item.get("metadata") or {}, ("name", "namespace")),
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": consumers},
    }


def deployment(item: Object) -> dict[str, Any]:
    """A resource without what the API server keeps for itself."""
    metadata = _some(
        item.get("metadata") or {}, ("name", "namespace", "uid", "labels", "annotations", "generation")
    )
    metadata.get("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return {**_some(item, ("apiVersion", "kind")), "metadata": metadata, **_some(item, ("spec", "status"))}


def revision(item: Object) -> dict[str, Any]:
    """The ControllerRevision of a serving set."""
    about = item.get("metadata") or {}
    metadata = _some(about, ("name", "namespace", "labels"))
    said = _some(
        about.get("annotations") or {}, (names.ANNOTATION_ADMINS_IMAGE, names.ANNOTATION_GROUP_RESTARTS)
    )
    metadata |= {"annotations": said} if said else {}
    return {**_some(item, ("apiVersion", "kind")), "metadata": metadata, **_some(item, ("data",))}


def check(item: Object, where: str) -> None:
    """Raises SpecError where a part that an inventory reads has another type than it expects, which objects of the API server never have."""
    for path, expected in _TYPES.items():
        value: Any = item
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None and not _is(value, expected):
            raise SpecError(Problem(f"{where}.{path}", show(value), f"must be {expected}"))
    name = (item.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not name:
        raise SpecError(Problem(f"{where}.metadata.name", show(name), f"must be {_TEXT}"))
    try:
        parse_pod(item)
        parse_slice(item)
    except (ValueError, TypeError, AttributeError) as error:
        raise SpecError(Problem(f"{where}.spec", "", f"cannot be read: {show(str(error))}")) from None


_OBJECT, _OBJECTS, _TEXT = "an object", "a list of objects", "text"
_TEXTS, _QUANTITIES = "an object of texts", "an object of quantities"
_TAINTS = "a list of objects with texts as key, value and effect"
_TYPES = {
    "metadata": _OBJECT,
    "metadata.labels": _TEXTS,
    "spec": _OBJECT,
    "spec.taints": _TAINTS,
    "spec.containers": _OBJECTS,
    "spec.initContainers": _OBJECTS,
    "spec.overhead": _QUANTITIES,
    "spec.nodeName": _TEXT,
    "spec.driver": _TEXT,
    "spec.pool": _OBJECT,
    "spec.devices": _OBJECTS,
    "status": _OBJECT,
    "status.allocatable": _QUANTITIES,
    "status.conditions": _OBJECTS,
    "status.allocation": _OBJECT,
    "status.allocation.devices": _OBJECT,
    "status.allocation.devices.results": _OBJECTS,
    "status.reservedFor": _OBJECTS,
}


def _is(value: object, expected: str) -> bool:
    if expected == _TEXT:
        return isinstance(value, str)
    if expected == _OBJECTS:
        return isinstance(value, list) and all(isinstance(one, dict) for one in value)
    if expected == _TAINTS:
        return isinstance(value, list) and all(isinstance(one, dict) and _is_taint(one) for one in value)
    if not isinstance(value, dict):
        return False
    if expected == _TEXTS:
        return all(isinstance(one, str) for one in value.values())
    return expected == _OBJECT or all(isinstance(one, str | int) for one in value.values())


def _is_taint(item: Object) -> bool:
    return all(isinstance(item.get(part, ""), str) for part in ("key", "value", "effect"))


def _some(item: Object, keys: Iterable[str]) -> dict[str, Any]:
    return {
        key: _sorted(item[key]) if isinstance(item[key], Mapping) else item[key]
        for key in keys
        if item.get(key) is not None
    }


def _sorted(item: Object) -> dict[str, Any]:
    return {key: item[key] for key in sorted(item)}
