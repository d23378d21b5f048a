"""A child as the index keeps it, with what is compared and no more. It is read from an object, or from its metadata alone.

A child has changed where its `mark` differs. For kinds with a generation (which counts changes of the spec) the mark is made of that, of
labels, annotations and owners, so that a status that moves all the time is no change. Kinds without one (ConfigMap, Service,
ServiceAccount, ControllerRevision) have little or no status, so there any new version is a change.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll import names
from plimsoll.kube.door import Object
from plimsoll.kube.kinds import DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET, WORKLOADS, Kind
from plimsoll.kube.refused import refused_pods
from plimsoll.kube.times import seconds
from plimsoll.objects import Ref

REVISION: Final = "deployment.kubernetes.io/revision"
_SERVANTS: Final = frozenset({names.MANAGER_CHILDREN, "kube-controller-manager", "kube-scheduler"})
"""Field managers whose writes to a child are expected."""
_EVERYBODYS: Final = frozenset({"labels", "annotations"})


class Workload(NamedTuple):
    """How many replicas and pods an object asks for."""

    replicas: int
    pods: int
    """Pods of each replica."""
    group: int | None = None
    """The replica's number, where each replica has objects of its own. Then `pods` are those of this object alone."""


class Child(NamedTuple):
    ref: Ref
    owner: str
    """namespace/name of the LLMDeployment that it belongs to."""
    uid: str
    version: str
    owner_uid: str
    """Uid of its controller, if that is an LLMDeployment; else empty."""
    holder: str
    """Kind and name of its controller, if that is no LLMDeployment; else empty."""
    hash: str
    mark: int
    clean: bool
    """Whether nobody is known to have edited it since we wrote it last."""
    leaving: bool
    created: float
    set: str
    failed: str
    workload: Workload | None
    turn: str = ""
    """On the pinned plan: the digest of what the last turn left behind."""
    refused: str = ""
    """Why the API server refuses its pods, as long as it does."""

    def belongs_to(self, uid: str) -> bool:
        """Whether it belongs to the deployment of this uid, and not to one that had the name before. A child without an owner does."""
        return self.owner_uid in (uid, "")


def read_child(kind: Kind, item: Object, *, clean: bool | None = None) -> Child | None:
    """The child, or None where the object belongs to no LLMDeployment. Without `clean` that follows from the object's field managers."""
    metadata = item["metadata"]
    labels: dict[str, str] = metadata.get("labels") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    namespace, name = sys.intern(metadata.get("namespace", "")), metadata["name"]
    controller = controller_of(metadata)
    ours = controller is not None and is_ours(controller)
    owner = controller["name"] if controller and ours else labels.get(names.LABEL_DEPLOYMENT)
    if not owner:
        return None
    return Child(
        ref=Ref(kind.api_version, kind.name, namespace, name),
        owner=sys.intern(f"{namespace}/{owner}"),
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        owner_uid=sys.intern(controller["uid"]) if controller and ours else "",
        holder=f"{controller['kind']} {controller['name']}" if controller and not ours else "",
        hash=annotations.get(names.ANNOTATION_HASH, ""),
        mark=_mark(metadata, labels, annotations),
        clean=_untouched(kind, metadata) if clean is None else clean,
        leaving="deletionTimestamp" in metadata,
        created=seconds(metadata.get("creationTimestamp")),
        set=sys.intern(labels.get(names.LABEL_SET, "")),
        failed=annotations.get(names.ANNOTATION_FAILED, ""),
        turn=annotations.get(names.ANNOTATION_TURN, ""),
        workload=_workload(kind, item.get("spec"), labels),
        refused=refused_pods(item.get("status") or {}),
    )


def controller_of(metadata: Object) -> Object | None:
    """The owner reference of an object's controller."""
    found: Object | None = next(
        (one for one in metadata.get("ownerReferences") or () if one.get("controller")), None
    )
    return found


def is_ours(controller: Object) -> bool:
    return bool(
        controller["kind"] == names.KIND and str(controller["apiVersion"]).startswith(f"{names.GROUP}/")
    )


def _mark(metadata: Object, labels: dict[str, str], annotations: dict[str, str]) -> int:
    generation = metadata.get("generation")
    if not generation:
        return hash(metadata["resourceVersion"])
    kept = frozenset(item for item in annotations.items() if item[0] != REVISION)
    owners = tuple(one.get("uid") for one in metadata.get("ownerReferences") or ())
    return hash((generation, frozenset(labels.items()), kept, owners, "deletionTimestamp" in metadata))


def written_by_others(metadata: Object, part: str) -> frozenset[str]:
    """Fields in a part of the object (as its spec) that others than we and Kubernetes' controllers have written."""
    return frozenset(
        field.removeprefix("f:")
        for entry in _others(metadata)
        for field in (entry.get("fieldsV1") or {}).get(f"f:{part}") or ()
        if field.startswith("f:")
    )


def added_by_others(metadata: Object, body: Mapping[str, Any]) -> list[Object]:
    """Merge patches that remove keys which others have added to maps of texts that we wrote, as to a selector, which would then select
    nothing. Labels and annotations may have anybody's keys. Fields that an API defaults or adds to a spec are not removed."""
    parts = {part: value for part, value in body.items() if part != "metadata" and isinstance(value, dict)}
    found = (_added(entry.get("fieldsV1") or {}, parts) for entry in _others(metadata))
    return [one for one in found if one]


def _added(fields: Mapping[str, Any], ours: Mapping[str, Any]) -> Object:
    free = bool(ours) and all(isinstance(value, str) for value in ours.values())
    found: Object = {}
    for field, below in fields.items():
        name = field.removeprefix("f:")
        if name == field or name in _EVERYBODYS:
            continue
        if free and name not in ours:
            found[name] = None
        elif isinstance(mine := ours.get(name), dict) and (inside := _added(below, mine)):
            found[name] = inside
    return found


def _untouched(kind: Kind, metadata: Object) -> bool:
    return not _others(metadata) and not (kind in WORKLOADS and _scaled(metadata))


def _scaled(metadata: Object) -> bool:
    """Whether somebody has changed the number of replicas since we applied it, which is ours no longer then. Who did, as through /scale, need
    not be seen: a scaling to nothing leaves no entry, and an HPA's bears the name of Kubernetes' controllers."""
    return any(
        "f:replicas" not in spec
        for one in metadata.get("managedFields") or ()
        if one.get("manager") == names.MANAGER_CHILDREN and one.get("operation") == "Apply"
        if (spec := (one.get("fieldsV1") or {}).get("f:spec"))
    )


def _others(metadata: Object) -> list[Object]:
    """Entries of managed fields that others than we and Kubernetes' controllers have written, without those of the status."""
    return [
        one
        for one in metadata.get("managedFields") or ()
        if not one.get("subresource") and one.get("manager") not in _SERVANTS
    ]


def _workload(kind: Kind, spec: Any, labels: dict[str, str]) -> Workload | None:
    if not isinstance(spec, dict):
        return None
    replicas = spec.get("replicas")
    count = 1 if replicas is None else int(replicas)
    if kind is DEPLOYMENT:
        return Workload(count, 1)
    if kind is STATEFUL_SET:
        number = labels.get(names.LABEL_GROUP, "")
        return Workload(1, count, int(number) if number.isdecimal() else None)
    if kind is LEADER_WORKER_SET:
        return Workload(count, int((spec.get("leaderWorkerTemplate") or {}).get("size") or 1))
    return None
