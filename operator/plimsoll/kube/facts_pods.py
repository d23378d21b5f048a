"""The pods that read models for us (facts pods): watches, makes and deletes them. Turns decide when one is wanted.

They have a role of their own as a label and are in no set. What such a pod found stays in its status until it is kept elsewhere, so that an
operator that restarts need not start it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.facts.serving import PodSeen
from plimsoll.kube.child import controller_of
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, KubeError
from plimsoll.kube.kinds import POD
from plimsoll.kube.pace import Pace
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.kube.times import seconds
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import key_of
from plimsoll.objects import Manifest

LOG: Final = logging.getLogger(__name__)
FACTS_PODS: Final = f"{names.LABEL_ROLE}={names.FACTS}"
"""Label selector of all pods that read models."""
MOST_TOLD: Final = 8192
"""Characters that are read of what a pod left; the kubelet keeps 4 KiB."""
_MOST_DIGITS: Final = 9
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading an object that is not as expected. Anybody may make a pod with our label, so one of them must not stop a watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPod:
    seen: PodSeen
    ticket: str
    """The name of its reading."""
    attempt: int
    owner: str
    """Uid of its deployment."""
    told: str | None = None
    """What it found; None as long as it has not ended well."""
    ended: float = 0.0
    """When it ended, well or not, in seconds since the epoch; 0 while it has not. A pod that is being deleted counts as ended since its
    deletion: its node may be dead, and then the pod stays for as long as the node's object does."""
    leaving: bool = False


class FactsPods(Watched):
    """`wake` is called with the deployment (namespace/name) of a facts pod that changed."""

    def __init__(
        self,
        door: Door,
        wake: Callable[[str], None],
        *,
        pace: Pace | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        super().__init__(door, pace, namespaces)
        self._door = door
        self._wake = wake
        self._of: dict[str, dict[str, FactsPod]] = {}
        """Pods by deployment (namespace/name) and by their own name."""
        self._unseen: set[str] = set()
        """Pods (namespace/name) that are being made, as long as nothing is seen of them."""

    def start(self) -> None:
        for source in self._watchers.sources(POD, selector=FACTS_PODS):
            self._watchers.start(source, _FactsPodsSink(self, source.namespace))

    def of(self, owner: str) -> tuple[FactsPod, ...]:
        """The facts pods of a deployment (namespace/name), sorted by name."""
        pods = self._of.get(owner, {})
        return tuple(pods[name] for name in sorted(pods))

    async def make(self, wanted: Manifest) -> KubeError | None:
        """Makes the pod. Returns why that failed; a pod of that name that is there already is as good."""
        key = f"{wanted.ref.namespace}/{wanted.ref.name}"
        self._unseen.add(key)
        try:
            made = await self._door.create(
                POD.collection(wanted.ref.namespace),
                wanted.body,
                manager=names.MANAGER_CHILDREN,
                metadata=False,
            )
        except Conflict as error:
            return None if error.already_exists else error
        except KubeError as error:
            return error
        finally:
            unseen = key in self._unseen
            self._unseen.discard(key)
        if unseen:  # what was seen of it before this answer is newer
            self.put(made, quiet=True)
        return None

    async def remove(self, namespace: str, pod: FactsPod) -> None:
        """Deletes the pod. Where that fails, another turn tries again."""
        try:
            await self._door.delete(POD.path(namespace, pod.seen.name), uid=pod.seen.uid)
        except KubeError:
            return

    def put(self, item: Object, *, quiet: bool = False) -> None:
        owner = _owner(item)
        self._unseen.discard(key_of(item))
        try:
            found = read_facts_pod(item)
        except _UNREADABLE as error:
            name = item["metadata"]["name"]
            LOG.warning("pod %s of %s is none that reads a model: %s", name, owner, type(error).__name__)
            self.forget(owner, name)
            return
        pods = self._of.setdefault(owner, {})
        if pods.get(found.seen.name) != found:
            pods[found.seen.name] = found
            if not quiet:
                self._wake(owner)

    def forget(self, owner: str, name: str) -> None:
        self._unseen.discard(f"{owner.partition('/')[0]}/{name}")
        pods = self._of.get(owner, {})
        if pods.pop(name, None) is None:
            return
        if not pods:
            del self._of[owner]
        self._wake(owner)

    def all(self) -> list[tuple[str, str]]:
        return [(owner, name) for owner, pods in self._of.items() for name in pods]


class _FactsPodsSink:
    """The sink of one watcher."""

    def __init__(self, pods: FactsPods, namespace: str) -> None:
        self._pods = pods
        self._namespace = namespace

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - a change is told by what is seen
        self._pods.put(item)

    def remove(self, item: Object) -> None:
        self._pods.forget(_owner(item), item["metadata"]["name"])

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for owner, name in self._pods.all():
            namespace = owner.partition("/")[0]
            if self._namespace in ("", namespace) and f"{namespace}/{name}" not in keys:
                self._pods.forget(owner, name)


def read_facts_pod(item: Object) -> FactsPod:
    metadata = item["metadata"]
    about = metadata.get("annotations") or {}
    attempt = str(about.get(names.ANNOTATION_ATTEMPT) or "")
    ended = _ended(item.get("status") or {})
    well = ended is not None and ended.get("exitCode") == 0
    seen, leaving = pod_seen(item), "deletionTimestamp" in metadata
    return FactsPod(
        seen=seen,
        ticket=str(about.get(names.ANNOTATION_TICKET) or ""),
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) <= _MOST_DIGITS else 1,
        owner=str((controller_of(metadata) or {}).get("uid") or ""),
        told=str(ended.get("message") or "")[:MOST_TOLD] if ended is not None and well else None,
        ended=(seconds(ended.get("finishedAt")) if ended is not None else 0.0)
        or (seen.since if seen.ended or leaving else 0.0),
        leaving=leaving,
    )


def _ended(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for one in status.get("containerStatuses") or ():
        found: Mapping[str, Any] | None = (one.get("state") or {}).get("terminated")
        if found is not None:
            return found
    return None


def _owner(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{(metadata.get('labels') or {}).get(names.LABEL_DEPLOYMENT, '')}"
