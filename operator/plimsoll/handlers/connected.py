"""The cluster as turns use it: the doors and caches of `kube`, put together once and started in their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.serving import Serving
from plimsoll.kube.applier import Applied, Applier, Owner
from plimsoll.kube.capabilities import Served
from plimsoll.kube.child import Child
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door
from plimsoll.kube.fleet import FleetSeen
from plimsoll.kube.kinds import CLAIMS, OWNER, SLICES, path_of
from plimsoll.kube.serving import Pods, serving
from plimsoll.objects import Manifest, Ref
from plimsoll.status.told import News

LOG: Final = logging.getLogger(__name__)
SYNC_SECONDS: Final = 120.0
"""How long the first lists are waited for; without them a turn would write what is there already."""


class Connected:
    """`wake` is told a deployment whose children or pods changed, `moved` that the fleet did."""

    def __init__(
        self,
        door: Door,
        config: OperatorConfig,
        *,
        wake: Callable[[str], None],
        moved: Callable[[], None],
        namespaces: Iterable[str] = (),
    ) -> None:
        spaces = tuple(namespaces)
        self.door = door
        self.served = Served(door, self._served_changed, crds=not spaces)
        self._children = Children(door, wake, namespaces=spaces)
        self.fleet = FleetSeen(door, config, moved, namespaces=spaces)
        self._pods = Pods(door, wake, hears=self.fleet.serving_pod, namespaces=spaces)
        self._applier = Applier(door, self._children)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when all that there is has been seen once, or raises TimeoutError."""
        await self.served.start()
        self._children.start(self.served.kinds)
        self._pods.start()
        self.fleet.start(self.served.first(SLICES), self.served.first(CLAIMS))
        async with asyncio.timeout(SYNC_SECONDS):
            await asyncio.gather(self._children.synced(), self._pods.synced(), self.fleet.synced())

    async def stop(self) -> None:
        for part in (self.served, self._children, self._pods, self.fleet):
            await part.stop()

    def alive_at(self) -> float:
        """When the watch that is silent for longest last heard anything."""
        parts = (self.served, self._children, self._pods, self.fleet)
        return min(part.alive_at() for part in parts)

    @property
    def problems(self) -> dict[str, str]:
        """What cannot be seen at present, and why."""
        parts = (self._children, self._pods, self.fleet)
        return {path: str(problem) for part in parts for path, problem in part.problems.items()}

    def children(self, key: str) -> Mapping[Ref, Child]:
        return self._children.of(key)

    def serving(self, key: str) -> Serving:
        return serving(key, self._children, self._pods)

    def inventory(self) -> Inventory:
        return self.fleet.fleet.inventory()

    def reserve(self, reservations: Iterable[Reservation]) -> None:
        self.fleet.fleet.reserve(reservations)

    def capabilities(self) -> Capabilities:
        return self.served.capabilities

    async def read(self, ref: Ref) -> Mapping[str, object]:
        return await self.door.get(path_of(ref))

    async def apply(self, owner: Owner, manifests: Iterable[Manifest]) -> Applied:
        return await self._applier.apply(owner, tuple(manifests))

    async def tell(self, about: ObjectMeta, status: LLMDeploymentStatus) -> None:
        namespace = about.namespace or "default"
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": about.name, "namespace": namespace},
            "status": status.to_dict(),
        }
        await self.door.apply(
            f"{OWNER.path(namespace, about.name)}/status", body, manager=names.MANAGER_STATUS
        )

    async def announce(self, about: ObjectMeta, news: Iterable[News]) -> None:
        for one in news:
            LOG.info(
                "%s: %s", one.reason, one.message, extra={"deployment": f"{about.namespace}/{about.name}"}
            )

    def _served_changed(self) -> None:
        self._serving = asyncio.create_task(self._children.serve(self.served.kinds))
