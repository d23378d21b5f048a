"""What turns look at and act through: caches that watches keep, and the few things that are remembered between turns.

All of it can be lost at any time: caches fill again, and what is remembered only saves work or waits a little longer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import Learned
from plimsoll.facts.serving import PodSeen, Serving
from plimsoll.kube.applier import Applied
from plimsoll.kube.child import Child
from plimsoll.kube.errors import KubeError, NotFound
from plimsoll.kube.facts_pods import FactsPod
from plimsoll.objects import Bearer, Manifest, Owner, Ref
from plimsoll.planning.placing.budgets import UNLIMITED, Claim, Limits, claim_of, limits_of
from plimsoll.reconcile.books import Books
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.lessons.measured import Measured
from plimsoll.reconcile.lessons.recorded import Ramps
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.render.revision import Revision, RevisionUnreadable
from plimsoll.render.shared import plan_ref
from plimsoll.status.told import News

LOG: Final = logging.getLogger(__name__)
MOST_REVISIONS: Final = 256
MOST_KEPT: Final = 256
"""Plans and revisions are large; those of deployments that move are asked for again and again, the others hardly ever."""


class Cluster(Protocol):
    """What a turn asks of the cluster; `handlers` puts the real one together."""

    def children(self, key: str) -> Mapping[Ref, Child]: ...
    def serving(self, key: str, bearer: Bearer | None) -> Serving: ...
    def inventory(self, own: str = "") -> Inventory: ...
    def promise(self, key: str, reservations: tuple[Reservation, ...]) -> None: ...
    def capabilities(self) -> Capabilities: ...
    async def read(self, ref: Ref) -> Mapping[str, Any]: ...
    async def apply(
        self, owner: Owner, manifests: Iterable[Manifest], *, prune: bool, spared: frozenset[str]
    ) -> Applied: ...
    async def nudge(
        self, namespace: str, *, gone: Iterable[PodSeen], loaded: Iterable[PodSeen]
    ) -> tuple[KubeError, ...]: ...
    async def tell(
        self, about: ObjectMeta, status: LLMDeploymentStatus, seen: Mapping[str, Any]
    ) -> int | None: ...
    def announce(self, about: ObjectMeta, news: Iterable[News]) -> None: ...


class FactsPods(Protocol):
    """Pods that read models for us."""

    def of(self, owner: str) -> tuple[FactsPod, ...]: ...
    async def make(self, wanted: Manifest) -> KubeError | None: ...
    async def remove(self, namespace: str, pod: FactsPod) -> None: ...


@dataclass(slots=True, kw_only=True)
class World:
    cluster: Cluster
    resources: Resources
    models: Models
    now: Callable[[], float]
    """Seconds since the epoch."""
    config: OperatorConfig
    mark: str = ""
    """Names the release and the admin's config."""
    facts_pods: FactsPods | None = None
    """None where no pods are made that read models."""
    measured: Measured = field(default_factory=Measured)
    """What engines reported, and what was learned from it."""
    ramps: Ramps = field(default_factory=Ramps)
    thinking: Executor = field(default_factory=lambda: ThreadPoolExecutor(1, "plan"))
    """The thread in which decisions are made. They only compute, so more threads would only wait for each other."""
    deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from the look at the fleet until the decision's devices are promised, so that two turns never give the same ones away."""
    gone_since: dict[str, float] = field(default_factory=dict)
    """Since when nothing could hold a deployment's pinned plan."""
    looked_at: dict[str, float] = field(default_factory=dict)
    """When a deployment was last looked at in full, or seen first."""
    hungry: set[str] = field(default_factory=set)
    """Deployments that a change of the fleet may help."""
    unmoved: dict[str, int] = field(default_factory=dict)
    """By deployment: how many turns in a row could not do what has to be done to pods directly."""
    untold: set[str] = field(default_factory=set)
    """Deployments of which nobody knows what status they have, as the answer to a write was lost."""
    books: Books = field(default_factory=Books)
    """What the operator's own metrics tell of deployments."""
    directions: dict[str, Direction] = field(default_factory=dict)
    """What the control loop says of each deployment now."""
    directed: dict[str, Direction] = field(default_factory=dict)
    """Which of it the last turn has done."""
    _spends: dict[str, tuple[tuple[Claim, int], ...]] = field(default_factory=dict)
    """Of deployments in namespaces with a budget, by their last decision: what a replica of each set takes of it, and how many there are."""
    _read_in_full: set[str] = field(default_factory=set)
    """Namespaces with a budget of which all deployments are in that: before, what is left of it is not known."""
    _revisions: OrderedDict[str, Revision] = field(default_factory=OrderedDict)
    """By uid. They are never read again, as what they hold never changes."""
    _kept: OrderedDict[str, tuple[str, Kept]] = field(default_factory=OrderedDict)
    """By deployment, with the version of the ConfigMap that it was read from."""

    def capabilities(self) -> Capabilities:
        return self.cluster.capabilities() or NONE

    @property
    def learned(self) -> Learned:
        return self.measured.known

    def serving(self, key: str) -> Serving:
        """What is seen of the deployment that bears the name now."""
        return self.cluster.serving(key, self.resources.bearer(key))

    def children(self, key: str) -> dict[Ref, Child]:
        """Its own children, without those that an earlier resource of its name left behind."""
        bearer, there = self.resources.bearer(key), self.cluster.children(key)
        return {ref: child for ref, child in there.items() if bearer is None or child.belongs_to(bearer.uid)}

    def promise(self, key: str, decision: Kept, reservations: tuple[Reservation, ...]) -> None:
        """Note what other turns must leave to it: devices for pods that are not on a node yet, and its share of the namespace's budget."""
        self.cluster.promise(key, reservations)
        if self._has_budget(key):
            self._spends[key] = _spent(decision)

    def inventory(self, key: str) -> Inventory:
        """The fleet without what others were promised; what the deployment itself was promised is still its own."""
        return self.cluster.inventory(key)

    def note_spent(self, key: str, kept: Kept) -> None:
        """Note what it takes of its namespace's budget as it is kept, where this process has not decided that itself."""
        if key not in self._spends and self._has_budget(key):
            self._spends[key] = _spent_if_told(key, kept)

    async def read_budget(self, key: str) -> None:
        """Read what the deployments of its namespace take of the budget, where nobody has noted that yet. Those of one namespace come to be
        known together, as what one of them may have is told by all; what was read before one that cannot be is not read again."""
        if self._has_budget(key):
            for one in (key, *self._neighbours(key)):
                if one not in self._spends:
                    self.note_spent(one, await self.kept(one))
            self._read_in_full.add(key.partition("/")[0])

    def knows_budget(self, key: str) -> bool:
        """Whether it is known what its namespace's deployments take of the budget; true where that has none."""
        return self._told_in_full(key) or not self._has_budget(key)

    def limits(self, key: str) -> Limits | None:
        """What the others leave of its namespace's budget; None where that has none."""
        if not self._has_budget(key):
            return None
        left = limits_of(key.partition("/")[0], self.config)
        for other in self._neighbours(key):
            for claim, replicas in self._spends.get(other, ()):
                left = replace(left.less(claim, replicas), replicas=left.replicas)
        return left

    def spends(self) -> Mapping[str, tuple[tuple[Claim, int], ...]]:
        """What deployments take of their namespaces' budgets by their last decisions; nothing of a namespace of which that is not known of all."""
        there = self.resources
        return {key: spent for key, spent in self._spends.items() if key in there and self._told_in_full(key)}

    def _told_in_full(self, key: str) -> bool:
        return key in self._spends and key.partition("/")[0] in self._read_in_full

    def _has_budget(self, key: str) -> bool:
        return limits_of(key.partition("/")[0], self.config) != UNLIMITED

    def _neighbours(self, key: str) -> list[str]:
        namespace = key.partition("/")[0]
        return [other for other in self.resources if other != key and other.startswith(f"{namespace}/")]

    def asks(self, key: str) -> bool:
        """Whether control asks for something that no turn has done yet."""
        said = self.direction(key)
        return said is not None and said is not self.directed.get(key)

    def direction(self, key: str) -> Direction | None:
        """What control says of the deployment that bears the name now."""
        said, bearer = self.directions.get(key), self.resources.bearer(key)
        of_another = said is not None and bearer is not None and said.uid not in ("", bearer.uid)
        return None if of_another else said

    def forget(self, key: str) -> None:
        """The deployment is gone; its children go by their owner reference."""
        self.cluster.promise(key, ())
        self._spends.pop(key, None)
        self.measured.forget(key)
        self.ramps.forget(key)
        self.gone_since.pop(key, None)
        self.looked_at.pop(key, None)
        self.hungry.discard(key)
        self.unmoved.pop(key, None)
        self.untold.discard(key)
        self.books.forget(key)
        self.directions.pop(key, None)
        self.directed.pop(key, None)
        self._kept.pop(key, None)

    async def kept(self, key: str) -> Kept:
        namespace, _, name = key.partition("/")
        ref = plan_ref(namespace, name)
        child = self.children(key).get(ref)
        if child is None:
            return Kept()
        known = self._kept.get(key)
        if known is not None and known[0] == f"{child.uid} {child.version}":
            return known[1]
        body = await self._read(ref)
        if body is None:
            return Kept()
        data = body.get("data")
        found = Kept.from_data(data if isinstance(data, Mapping) else {})
        metadata = body["metadata"]
        self._keep(key, f"{metadata['uid']} {metadata['resourceVersion']}", found)
        return found

    def wrote(self, key: str, kept: Kept, revisions: Mapping[str, Revision], written: Iterable[Ref]) -> None:
        """Keep what a turn has just written, so that the next need not read it back."""
        children = self.cluster.children(key)
        for ref in written:
            child = children.get(ref)
            if child is None or not child.clean:
                continue
            if ref == plan_ref(*key.split("/", 1)):
                self._keep(key, f"{child.uid} {child.version}", kept)
            elif ref.kind == "ControllerRevision" and ref.name in revisions:
                self._remember(child.uid, revisions[ref.name])

    def _keep(self, key: str, version: str, kept: Kept) -> None:
        self._kept[key] = version, kept
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _remember(self, uid: str, revision: Revision) -> None:
        self._revisions[uid] = revision
        while len(self._revisions) > MOST_REVISIONS:
            self._revisions.popitem(last=False)

    async def revisions(self, key: str) -> dict[str, Revision]:
        """Revisions of all sets that exist, by name. One that cannot be read counts as absent."""
        made = [(ref, child) for ref, child in self.children(key).items() if ref.kind == "ControllerRevision"]
        found = await asyncio.gather(*(self._revision(ref, child) for ref, child in made))
        return {ref.name: one for (ref, _), one in zip(made, found, strict=True) if one is not None}

    async def _revision(self, ref: Ref, child: Child) -> Revision | None:
        known = self._revisions.get(child.uid)
        if known is not None:
            return known
        body = await self._read(ref)
        if body is None:
            return None
        try:
            known = Revision.read(body)
        except RevisionUnreadable:
            return None
        self._remember(child.uid, known)
        return known

    async def _read(self, ref: Ref) -> Mapping[str, Any] | None:
        """None where it is gone already. The watch will tell of that, which takes another turn."""
        try:
            return await self.cluster.read(ref)
        except NotFound:
            return None

    async def left(self, key: str) -> tuple[Kept, dict[str, Revision]]:
        """What earlier turns have left in the cluster: the kept plan and the revisions, both read at once."""
        return await asyncio.gather(self.kept(key), self.revisions(key))


def _spent(kept: Kept) -> tuple[tuple[Claim, int], ...]:
    return () if kept.plan is None else tuple((claim_of(one), one.replicas) for one in kept.plan.sets)


def _spent_if_told(key: str, kept: Kept) -> tuple[tuple[Claim, int], ...]:
    """Nothing where that cannot be told, as where the plan cannot be read: what is odd about one deployment, as a plan that somebody has
    edited, harms no other of its namespace."""
    try:
        return _spent(kept)
    except Exception:
        LOG.exception("nobody can tell what a plan takes of its budget", extra={"deployment": key})
        return ()
