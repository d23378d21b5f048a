"""The pods of LeaderWorkerSets, made and taken as their controller would, which is in no registry."""

from __future__ import annotations

from typing import Final

from cluster.api import Object
from common import LONG_SECONDS, eventually
from turns.beside import Beside
from turns.running import Desk

SETS: Final = "leaderworkerset.x-k8s.io/v1/leaderworkersets"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER: Final = "leaderworkerset.sigs.k8s.io/worker-index"
LONG_AGO: Final = "2026-01-01T00:00:00Z"


def group(place: Desk, made: Object, number: int = 0) -> str:
    """The pods of one group; the leader's uid."""
    found = [_create(place, one) for one in group_pods(made, number)]
    return str(found[0]["metadata"]["uid"])


def group_pods(made: Object, number: int) -> list[Object]:
    """The leader first."""
    asked = made["spec"]["leaderWorkerTemplate"]
    name = made["metadata"]["name"]
    leader = asked.get("leaderTemplate") or asked["workerTemplate"]
    found: list[Object] = []
    for rank, template in enumerate([leader, *[asked["workerTemplate"]] * (asked["size"] - 1)]):
        metadata = {
            **(template.get("metadata") or {}),
            "name": f"{name}-{number}" + (f"-{rank}" if rank else ""),
        }
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            LWS_NAME: name,
            LWS_GROUP: str(number),
            LWS_WORKER: str(rank),
        }
        found.append({"metadata": metadata, "spec": template["spec"]})
    return found


def _create(place: Desk, pod: Object) -> Object:
    return place.cluster.api.create(f"/api/v1/namespaces/{place.namespace}/pods", pod)


class Groups(Beside):
    """As many groups as each LeaderWorkerSet of a namespace asks for, the highest numbers gone first; use it with `with`."""

    every_s = 0.3

    def __init__(self, place: Desk) -> None:
        super().__init__()
        self._place = place

    def look(self) -> None:
        asked = {
            pod["metadata"]["name"]: pod
            for made in self._place.items(SETS)
            for number in range(made["spec"]["replicas"])
            for pod in group_pods(made, number)
        }
        there = {
            one["metadata"]["name"]: one
            for one in self._place.items("v1/pods")
            if LWS_NAME in (one["metadata"].get("labels") or {})
        }
        for name in sorted(there.keys() - asked.keys()):
            if "deletionTimestamp" not in there[name]["metadata"]:
                self._place.cluster.api.delete(f"/api/v1/namespaces/{self._place.namespace}/pods/{name}")
        for name in sorted(asked.keys() - there.keys()):
            _create(self._place, asked[name])


def uids(place: Desk) -> set[str]:
    return {one["metadata"]["uid"] for one in place.pods()}


def waits_since_long_ago(place: Desk, least: int = 1) -> None:
    """Those that have no node, at least so many; how long a leader must have been there is counted from its birth, which nobody can set back."""

    def told() -> list[Object]:
        return [
            pod
            for pod in place.pods()
            if not pod["spec"].get("nodeName")
            and any(one["type"] == "PodScheduled" for one in pod["status"].get("conditions") or ())
        ]

    assert eventually(lambda: len(told()) >= least, LONG_SECONDS)
    for pod in told():
        conditions = [{**one, "lastTransitionTime": LONG_AGO} for one in pod["status"]["conditions"]]
        path = f"/api/v1/namespaces/{place.namespace}/pods/{pod['metadata']['name']}/status"
        place.cluster.api.patch(path, {"status": {"conditions": conditions}})
