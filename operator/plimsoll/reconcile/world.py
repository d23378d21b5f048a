"""What turns look at and act through: caches that watches keep, and the few things that are remembered between turns.

All of it can be lost at any time: caches fill again, and what is remembered only saves work or waits a little longer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.facts.serving import Serving
from plimsoll.kube.applier import Applied, Owner
from plimsoll.kube.child import Child
from plimsoll.objects import Manifest, Ref
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.render.revision import Revision, RevisionUnreadable
from plimsoll.status.told import News

MOST_REVISIONS: Final = 1024


class Cluster(Protocol):
    """The doors that a turn uses; `handlers` puts the real ones together."""

    def children(self, key: str) -> Mapping[Ref, Child]: ...
    def serving(self, key: str) -> Serving: ...
    def inventory(self) -> Inventory: ...
    def reserve(self, reservations: Iterable[Reservation]) -> None: ...
    def capabilities(self) -> Capabilities: ...
    async def read(self, ref: Ref) -> Mapping[str, Any]: ...
    async def apply(self, owner: Owner, manifests: Iterable[Manifest]) -> Applied: ...
    async def tell(self, about: ObjectMeta, status: LLMDeploymentStatus, seen: Mapping[str, Any]) -> None: ...
    def announce(self, about: ObjectMeta, news: Iterable[News]) -> None: ...


@dataclass(slots=True, kw_only=True)
class World:
    cluster: Cluster
    resources: Resources
    models: Models
    now: Callable[[], float]
    """Seconds since the epoch."""
    config: OperatorConfig | None = None
    mark: str = ""
    """Names the release and the admin's config."""
    learned: Learned = NOTHING
    gone_since: dict[str, float] = field(default_factory=dict)
    """Since when nothing could hold a deployment's pinned plan."""
    looked_at: dict[str, float] = field(default_factory=dict)
    """When a deployment was last looked at in full, or seen first."""
    hungry: set[str] = field(default_factory=set)
    """Deployments that a change of the fleet may help."""
    _promised: dict[str, tuple[Reservation, ...]] = field(default_factory=dict)
    _revisions: OrderedDict[str, Revision] = field(default_factory=OrderedDict)
    """By uid: what they hold never changes."""

    def capabilities(self) -> Capabilities:
        return self.cluster.capabilities() or NONE

    def promise(self, key: str, reservations: tuple[Reservation, ...]) -> None:
        """What other turns must leave for pods that are not on a node yet."""
        if self._promised.get(key, ()) != reservations:
            if reservations:
                self._promised[key] = reservations
            else:
                self._promised.pop(key, None)
            self.cluster.reserve(one for each in self._promised.values() for one in each)

    def forget(self, key: str) -> None:
        """The deployment is gone; its children go by their owner reference."""
        self.promise(key, ())
        self.gone_since.pop(key, None)
        self.looked_at.pop(key, None)
        self.hungry.discard(key)

    async def kept(self, key: str) -> Kept:
        namespace, _, name = key.partition("/")
        ref = plan_ref(namespace, name)
        if ref not in self.cluster.children(key):
            return Kept()
        data = (await self.cluster.read(ref)).get("data")
        return Kept.from_data(data if isinstance(data, Mapping) else {})

    async def revisions(self, key: str) -> dict[str, Revision]:
        """Of all sets that were made and are not gone, by name; those that cannot be read count as absent."""
        found = {}
        for ref, child in tuple(self.cluster.children(key).items()):
            if ref.kind != "ControllerRevision":
                continue
            known = self._revisions.get(child.uid)
            if known is None:
                try:
                    known = Revision.read(await self.cluster.read(ref))
                except RevisionUnreadable:
                    continue
                self._revisions[child.uid] = known
                while len(self._revisions) > MOST_REVISIONS:
                    self._revisions.popitem(last=False)
            found[ref.name] = known
        return found


def plan_ref(namespace: str, name: str) -> Ref:
    return Ref("v1", "ConfigMap", namespace, names.child_name(name, "plan"))
