"""A serving set as it was born: its entry in the plan and all that its pods are made from, frozen.

It is kept in a ControllerRevision, whose data the API server lets nobody change. Later turns read it and render nothing
anew: only numbers of replicas change, a hand-edited child is put back to it, and a newer operator disturbs no pod.
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
    """What carries a set's replicas."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"


Data = Mapping[str, Any]
RECREATED: Final = "RecreateGroupOnPodRestart"
"""All pods of a group are made anew: of sets made before the supervisors brought groups up again, and where there are none."""
IN_PLACE: Final = "None"
"""Pods stay: their supervisors end the group as one and start it again, with what is on their volumes and without a scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    name: str
    """Of the set and of its objects: the deployment's name and eight digits of the digest."""
    digest: str
    entry: PlanSet
    workload: Workload
    image: str
    engine_version: str
    leader: Data
    """Pod template of the pods that answer requests; of a group's every pod where a Service balances over them."""
    worker: Data | None = None
    """Of a group's others."""
    files: Mapping[str, str] = field(default_factory=dict)
    claim: Data | None = None
    """What each pod asks a device driver for."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the workload objects, beside ours."""
    served_names: tuple[str, ...] = ()
    start_seconds: int
    """The longest start that is waited for."""
    drain_seconds: int
    weight_bytes: int
    """That a pod reads when it starts."""
    admins_image: str = ""
    """As the admin names it, where that made the set what it is: such a set is replaced when the admin names another. It stands
    beside the data, since a release that does not know it could not write the data without it."""
    group_restarts: str = RECREATED
    """What a LeaderWorkerSet does when a container of a group starts again. It counts among what makes its pods new, so that a set
    keeps what it was born with; it stands beside the data for the same reason."""
    unsaid: tuple[str, ...] = ()
    """What was decided but could not be told to this version of the engine, with the reason."""

    @property
    def pods_per_replica(self) -> int:
        return self.entry.pods_per_replica

    def to_data(self) -> dict[str, Any]:
        """The body's data; what is empty is left out."""
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
        """`failed` is why the set was given up, written down so that it is not started again."""
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
        """From a ControllerRevision as the API gives it. Raises RevisionUnreadable where it is none of ours."""
        metadata = body.get("metadata") or {}
        said = metadata.get("annotations") or {}
        name = str(metadata.get("name", ""))
        data: Mapping[str, Any] = body.get("data") or {}
        try:
            return cls(
                name=name,
                digest=_text(data, "digest"),
                entry=codec.decode(PlanSet, data["entry"]),
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
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RevisionUnreadable(
                f"ControllerRevision {name} is no serving set that can be read: {error}"
            ) from error


class RevisionUnreadable(ValueError):
    """A ControllerRevision that nobody of ours wrote, or that a newer version wrote in another form."""


def _text(data: Data, key: str) -> str:
    value = data[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is {value!r}")
    return value
