"""A serving set as it was first made: its entry in the plan and everything that its pods are made from, frozen.

It is kept in a ControllerRevision, whose data the API server lets nobody change. Later turns read it and do not render the set again:
only the number of replicas changes, an object that was edited by hand is put back, and a newer operator disturbs no pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from plimsoll import names
from plimsoll.objects import Body, Manifest, Owner
from plimsoll.planning import codec
from plimsoll.planning.plan import PlanSet
from plimsoll.render.owned import owned
from plimsoll.render.templating import images_of


class Workload(StrEnum):
    """The kind of object that runs a set's replicas."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"


Data = Mapping[str, Any]
RECREATED: Final = "RecreateGroupOnPodRestart"
"""All pods of a group are made anew when one restarts. For sets without supervisors, and those of releases that had no policy of their own."""
IN_PLACE: Final = "None"
"""Pods stay when one restarts: their supervisors end the group together and start it again, on the same nodes and volumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    name: str
    """The name of the set and of its objects: the deployment's name and eight digits of the digest."""
    digest: str
    entry: PlanSet
    workload: Workload
    image: str
    engine_version: str
    leader: Data
    """Template of the pods that answer requests. Where `worker` is None that is every pod of a group."""
    worker: Data | None = None
    """Template of a group's pods that do not answer requests."""
    files: Mapping[str, str] = field(default_factory=dict)
    claim: Data | None = None
    """The claim for devices that each pod makes to a driver."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the workload objects in addition to those that all our objects have."""
    served_names: tuple[str, ...] = ()
    start_seconds: int
    """How long a start is waited for at most."""
    drain_seconds: int
    weight_bytes: int
    """Bytes of weights that a pod reads when it starts."""
    admins_image: str = ""
    """The admin's name of the image, where it is a part of the set's identity: such a set is replaced when the admin names another one.
    It is kept in an annotation and not in the data: an older release does not know it, would write the data without it, and data cannot change."""
    group_restarts: str = RECREATED
    """What a LeaderWorkerSet does when a container of a group restarts. A change of it would replace the pods, so a set keeps its first one.
    It is kept in an annotation for the same reason as the admin's image."""
    unsaid: tuple[str, ...] = ()
    """What was decided but this version of the engine has no flag for, each with the reason."""
    stored: Data | None = field(default=None, compare=False, repr=False)
    """The data that it was read from. A newer release may have written more than is known here, and nobody may change it."""

    @property
    def pods_per_replica(self) -> int:
        return self.entry.pods_per_replica

    def to_data(self) -> dict[str, Any]:
        """The ControllerRevision's data: as it is stored, or of a new one without empty values."""
        if self.stored is not None:
            return dict(self.stored)
        everything = {
            "digest": self.digest,
            "entry": codec.encode(self.entry),
            "workload": self.workload.value,
            "image": self.image,
            "engineVersion": self.engine_version,
            "leader": self.leader,
            "worker": self.worker,
            "files": dict(self.files),
            "claim": self.claim,
            "labels": dict(self.labels),
            "servedNames": list(self.served_names),
            "startSeconds": self.start_seconds,
            "drainSeconds": self.drain_seconds,
            "weightBytes": self.weight_bytes,
            "unsaid": list(self.unsaid),
        }
        return {key: value for key, value in everything.items() if value not in (None, {}, [])}

    def manifest(self, owner: Owner, *, failed: str = "") -> Manifest:
        """The ControllerRevision. `failed` is why the set was given up, written down so that it is not started again."""
        said = {
            names.ANNOTATION_FAILED: failed,
            names.ANNOTATION_ADMINS_IMAGE: self.admins_image,
            names.ANNOTATION_GROUP_RESTARTS: "" if self.group_restarts == RECREATED else self.group_restarts,
        }
        return owned(
            "controllerrevision",
            owner,
            kind="ControllerRevision",
            name=self.name,
            labels=self.set_labels,
            annotations={key: value for key, value in said.items() if value},
            images=tuple(images_of([self.leader, self.worker])),
            data=self.to_data(),
        )

    @property
    def set_labels(self) -> dict[str, str]:
        return {names.LABEL_SET: self.digest[: names.SET_HASH_LENGTH]}

    @classmethod
    def read(cls, body: Body) -> Revision:
        """The set of a ControllerRevision. What a newer release has added to it is passed over: what serves is to be scaled and removed
        after a rollback too. Raises RevisionUnreadable where it is none that this release can read."""
        metadata = body.get("metadata") or {}
        said = metadata.get("annotations") or {}
        name = str(metadata.get("name", ""))
        data: Mapping[str, Any] = body.get("data") or {}
        try:
            return cls(
                name=name,
                digest=_text(data, "digest"),
                entry=codec.decode(PlanSet, data["entry"], newer=True),
                workload=Workload(data["workload"]),
                image=_text(data, "image"),
                engine_version=_text(data, "engineVersion"),
                leader=data["leader"],
                worker=data.get("worker"),
                files=data.get("files", {}),
                claim=data.get("claim"),
                labels=data.get("labels", {}),
                served_names=tuple(data.get("servedNames", ())),
                start_seconds=int(data["startSeconds"]),
                drain_seconds=int(data["drainSeconds"]),
                weight_bytes=int(data["weightBytes"]),
                admins_image=said.get(names.ANNOTATION_ADMINS_IMAGE, ""),
                group_restarts=said.get(names.ANNOTATION_GROUP_RESTARTS, RECREATED),
                unsaid=tuple(data.get("unsaid", ())),
                stored=data,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RevisionUnreadable(
                f"ControllerRevision {name} is no serving set that can be read: {error}"
            ) from error


class RevisionUnreadable(ValueError):
    """A ControllerRevision that is not ours, or that a newer release wrote in another form."""


def _text(data: Data, key: str) -> str:
    value = data[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is {value!r}")
    return value
