"""What is seen to run of a deployment: its sets, from the children that make pods and from the pods themselves.

Pods are watched whole, since their status matters, and kept as `PodSeen`. A pod wakes its deployment only when that changes, so that probes
and heartbeats which change nothing cost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from plimsoll import names
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.child import Child
from plimsoll.kube.children import Children, Wake
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import CONTROLLER_REVISION, DEPLOYMENT, LEADER_WORKER_SET, POD, STATEFUL_SET
from plimsoll.kube.pace import Pace
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.kube.refusals import Refusals
from plimsoll.kube.scalers import Scalers
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import key_of
from plimsoll.objects import Bearer

SERVING_PODS: Final = f"{names.LABEL_ROLE}={names.SERVING}"
"""Label selector of all pods of serving sets."""

Hears = Callable[[str, Object | None], None]
"""Called with the namespace/name of a serving pod, and the pod, or None where it is gone. The inventory counts what it takes."""


class Pods(Watched):
    """Serving pods by deployment and set."""

    def __init__(
        self,
        door: Door,
        wake: Wake,
        *,
        hears: Hears = lambda key, pod: None,  # noqa: ARG005
        pace: Pace | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._wake = wake
        self._hears = hears
        super().__init__(door, pace, namespaces)
        self._of: dict[str, dict[str, dict[str, PodSeen]]] = {}
        """Pods by deployment (namespace/name), by the set's label, and by their own name."""
        self._places: dict[str, tuple[str, str]] = {}
        """Deployment and set of each pod (namespace/name), which are others once somebody changes its labels."""

    def start(self) -> None:
        for source in self._watchers.sources(POD, selector=SERVING_PODS):
            self._watchers.start(source, _PodsSink(self, source.namespace))

    def of(self, owner: str) -> Mapping[str, tuple[PodSeen, ...]]:
        """The pods of a deployment by their set's label, sorted by name."""
        return {
            digest: tuple(pods[name] for name in sorted(pods))
            for digest, pods in sorted(self._of.get(owner, {}).items())
        }

    def on(self, node: str) -> set[str]:
        """Deployments (namespace/name) that have pods on a node."""
        return {
            owner
            for owner, sets in self._of.items()
            for pods in sets.values()
            if any(pod.node == node for pod in pods.values())
        }

    def put(self, item: Object) -> None:
        place, key = _belongs(item), key_of(item)
        owner, digest = place
        name, seen = item["metadata"]["name"], pod_seen(item)
        if (earlier := self._places.get(key, place)) != place:
            self.forget(*earlier, name)
        self._hears(key, item)
        self._places[key] = place
        pods = self._of.setdefault(owner, {}).setdefault(digest, {})
        before = pods.get(name)
        pods[name] = seen
        if before != seen:
            self._wake(owner)

    def remove(self, item: Object) -> None:
        owner, digest = _belongs(item)
        self.forget(owner, digest, item["metadata"]["name"])

    def forget(self, owner: str, digest: str, name: str) -> None:
        key = f"{owner.partition('/')[0]}/{name}"
        self._hears(key, None)
        self._places.pop(key, None)
        sets = self._of.get(owner, {})
        if sets.get(digest, {}).pop(name, None) is None:
            return
        if not sets[digest]:
            del sets[digest]
        if not sets:
            del self._of[owner]
        self._wake(owner)

    def all(self) -> list[tuple[str, str, str]]:
        """Deployment, set and name of each pod."""
        return [
            (owner, digest, name)
            for owner, sets in self._of.items()
            for digest, pods in sets.items()
            for name in pods
        ]


class _PodsSink:
    """The sink of one watcher."""

    def __init__(self, pods: Pods, namespace: str) -> None:
        self._pods = pods
        self._namespace = namespace

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - a change is told by what is seen
        self._pods.put(item)

    def remove(self, item: Object) -> None:
        self._pods.remove(item)

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for owner, digest, name in self._pods.all():
            namespace = owner.partition("/")[0]
            if self._namespace in ("", namespace) and f"{namespace}/{name}" not in keys:
                self._pods.forget(owner, digest, name)


def serving(
    owner: str,
    children: Children,
    pods: Pods,
    scalers: Scalers,
    refusals: Refusals,
    *,
    bearer: Bearer | None = None,
) -> Serving:
    """Everything that is seen of a deployment (namespace/name). With the present bearer of the name, only what belongs to that one, and not
    what the garbage collector has yet to delete of a deployment that had the name before."""
    made: dict[str, list[Child]] = {}
    for child in children.of(owner).values():
        if bearer is not None and not child.belongs_to(bearer.uid):
            continue
        if child.set and (child.workload is not None or child.ref.kind == CONTROLLER_REVISION.name):
            made.setdefault(child.set, []).append(child)
    running = {
        digest: own
        for digest, found in pods.of(owner).items()
        if (own := _own_pods(found, bearer, made.get(digest, ())))
    }
    name = owner.partition("/")[2]
    sets = [
        _set_seen(names.set_name(name, digest), made.get(digest, []), running.get(digest, ()), refusals)
        for digest in sorted({*made, *running})
    ]
    workloads = {child.ref.name for found in made.values() for child in found if child.workload is not None}
    return Serving(
        sets=tuple(sorted(sets, key=lambda one: (one.created, one.name))),
        scalers=scalers.of(owner),
        scalers_below=scalers.on_children(owner, workloads),
    )


def leaving(seen: Serving, fleet: Fleet) -> Serving:
    """What is seen, with a mark on each pod that is to leave its node."""

    def shown(pod: PodSeen) -> PodSeen:
        name = pod.node or ""
        why = fleet.leaving(name)
        if not why:
            return pod
        since = fleet.cordoned_at(name) if why == "cordoned" else None
        return replace(pod, leaves=f"node {name}, which is {_STATES[why]}", leaves_since=since)

    if not any(fleet.leaving(pod.node or "") for one in seen.sets for pod in one.pods):
        return seen
    return replace(seen, sets=tuple(replace(one, pods=tuple(map(shown, one.pods))) for one in seen.sets))


_STATES: Final = {"cordoned": "cordoned", "deleting": "being taken away"}


def _own_pods(pods: tuple[PodSeen, ...], bearer: Bearer | None, made: Iterable[Child]) -> tuple[PodSeen, ...]:
    """The pods that belong to the present bearer of the name. A pod's owner is its workload and not the deployment, so they are told by
    age: a pod of ours is younger than the deployment or than its workload (which may be older than the deployment where it had lost its
    owner). Times are in whole seconds, and within one second a deployment can be deleted and made again; so a pod of the same second counts
    only where a workload is seen."""
    if bearer is None:
        return pods
    workloads = [child.created for child in made if child.workload is not None]
    since = min([bearer.born, *workloads])
    return tuple(pod for pod in pods if pod.created > since or (workloads and pod.created == since))


def _set_seen(name: str, made: list[Child], pods: tuple[PodSeen, ...], refusals: Refusals) -> SetSeen:
    groups: dict[int, int] = {}
    # While its Deployment is not seen, as when somebody took its labels off, the pods that serve are counted, so that they are kept.
    replicas, each = sum(pod.group is None and pod.stage is Stage.READY for pod in pods), 1
    for child in made:
        if child.workload is None:
            continue
        if child.ref.kind == STATEFUL_SET.name and child.workload.group is not None:
            groups[child.workload.group] = groups.get(child.workload.group, 0) + child.workload.pods
        else:
            replicas, each = child.workload.replicas, child.workload.pods
    if groups:
        # A group may lack one of its objects for a moment, so the largest one tells the size of all.
        replicas, each = len(groups), max(groups.values())
    born = [child.created for child in made if child.workload is None] or [child.created for child in made]
    return SetSeen(
        name=name,
        replicas=replicas,
        pods_per_replica=each,
        created=min(born, default=0.0),
        failed=next((child.failed for child in made if child.failed), ""),
        refused=next(filter(None, (_refused(child, refusals) for child in made)), ""),
        pods=tuple(pod for pod in pods if not pod.ended),
        ended=tuple(pod for pod in pods if pod.ended),
        groups=tuple(sorted(groups)),
        one_object=any(child.ref.kind == LEADER_WORKER_SET.name for child in made),
    )


def _refused(child: Child, refusals: Refusals) -> str:
    """Why a workload's pods are refused. A LeaderWorkerSet's leaders are made by a StatefulSet of its name, and the workers of each by one of the
    leader's."""
    if child.workload is None or child.ref.kind == DEPLOYMENT.name:
        return child.refused
    about = f"{child.ref.namespace}/{child.ref.name}"
    groups = range(child.workload.replicas) if child.ref.kind == LEADER_WORKER_SET.name else ()
    said = (refusals.of(each, child.created) for each in (about, *(f"{about}-{group}" for group in groups)))
    return next(filter(None, said), "")


def _belongs(item: Object) -> tuple[str, str]:
    metadata = item["metadata"]
    labels = metadata.get("labels") or {}
    owner = f"{metadata['namespace']}/{labels.get(names.LABEL_DEPLOYMENT, '')}"
    return sys.intern(owner), sys.intern(labels.get(names.LABEL_SET, ""))
