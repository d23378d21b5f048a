"""The cluster as turns use it: what is seen of it, and what writes children, status and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.serving import PodSeen, Serving
from plimsoll.handlers.ending import ended
from plimsoll.kube.applier import Applied, Applier
from plimsoll.kube.child import Child
from plimsoll.kube.door import Door
from plimsoll.kube.errors import KubeError, NotFound, Refused, is_another
from plimsoll.kube.events import Event, Events
from plimsoll.kube.kinds import path_of
from plimsoll.kube.nudging import set_free, take_away
from plimsoll.kube.sight import Sight
from plimsoll.kube.status import StatusWriter
from plimsoll.objects import Bearer, Manifest, Owner, Ref
from plimsoll.status.told import News

SYNC_SECONDS: Final = 120.0
"""How long the first lists may bring no further object. Turns need them, as they would otherwise write what is there already."""


class Connected:
    """`wake` is called with a deployment whose children or pods changed, `moved` when the fleet did."""

    def __init__(
        self,
        door: Door,
        config: OperatorConfig,
        *,
        wake: Callable[[str], None],
        moved: Callable[[], None],
        identity: str = "",
        namespaces: Iterable[str] = (),
    ) -> None:
        self.door = door
        self.sight = Sight(door, config, wake, moved, namespaces=namespaces)
        self.events = Events(door, identity or "plimsoll")
        self._applier = Applier(door, self.sight.children)
        self._status = StatusWriter(door)
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once everything has been seen. Raises TimeoutError, which names what could not be seen, when nothing more comes.

        As long as something comes it goes on waiting: with a large cluster and little CPU this takes long, and a process that was restarted
        meanwhile would get no further.
        """
        seeing, before = asyncio.create_task(self.sight.start()), -1
        try:
            while not seeing.done():
                if self.sight.listed == before:
                    unseen = "; ".join(f"{path}: {problem}" for path, problem in self.sight.problems.items())
                    raise TimeoutError(
                        f"nothing more of the cluster was seen for {SYNC_SECONDS:.0f} s: {unseen}"
                    )
                before = self.sight.listed
                await asyncio.wait({seeing}, timeout=SYNC_SECONDS)
            seeing.result()
        finally:
            await ended(seeing)
        self._telling = asyncio.create_task(self.events.run(), name="tell events")

    async def stop(self) -> None:
        await ended(self._telling)
        await self.sight.stop()

    def children(self, key: str) -> Mapping[Ref, Child]:
        return self.sight.children.of(key)

    def serving(self, key: str, bearer: Bearer | None) -> Serving:
        return self.sight.serving(key, bearer)

    def inventory(self, own: str = "") -> Inventory:
        return self.sight.fleet.fleet.inventory(own=own)

    def divided(self, selector: Mapping[str, str]) -> AbstractContextManager[None]:
        """Divides the fleet's pools by a node selector within the context, for a question about a resource that does not exist yet."""
        return self.sight.fleet.fleet.divided(selector)

    def promise(self, key: str, reservations: tuple[Reservation, ...]) -> None:
        self.sight.fleet.promise(key, reservations)

    def capabilities(self) -> Capabilities:
        return self.sight.capabilities

    async def read(self, ref: Ref) -> Mapping[str, Any]:
        return await self.door.get(path_of(ref))

    async def apply(
        self, owner: Owner, manifests: Iterable[Manifest], *, prune: bool, spared: frozenset[str]
    ) -> Applied:
        return await self._applier.apply(owner, tuple(manifests), prune=prune, spared=spared)

    async def nudge(
        self, namespace: str, *, gone: Iterable[PodSeen], loaded: Iterable[PodSeen]
    ) -> tuple[KubeError, ...]:
        """Deletes the pods of `gone`, and lets autoscalers take the nodes of those of `loaded`. Returns the errors."""
        return (
            *await take_away(self.door, namespace, gone),
            *await set_free(self.door, namespace, loaded),
        )

    def select(self, selectors: Iterable[Mapping[str, str]]) -> None:
        """Takes the node selectors that resources name: pools are divided by the labels in them."""
        self.sight.fleet.select(selectors)

    async def tell(
        self, about: ObjectMeta, status: LLMDeploymentStatus, seen: Mapping[str, Any]
    ) -> int | None:
        """Writes a status. Returns the version that has it; None where the resource is gone, or another one has its name by now."""
        try:
            version = await self._status.write(_owner(about), status.to_dict(), dict(seen))
        except Refused as error:
            if not (isinstance(error, NotFound) or is_another(error)):
                raise
            self.forget(about.uid or "")
            return None
        return version or int(seen["metadata"]["resourceVersion"])

    def restored(self, uid: str) -> None:
        """The server's data were restored, so nobody knows which status the resource has."""
        self._status.restored(uid)

    def forget(self, uid: str) -> None:
        """The resource is gone."""
        self._status.forget(uid)

    def announce(self, about: ObjectMeta, news: Iterable[News]) -> None:
        for one in news:
            self.events.tell(
                Event(_owner(about), reason=one.reason, note=one.message, action=one.about, type=one.type)
            )


def _owner(about: ObjectMeta) -> Owner:
    return Owner(about.namespace or "default", about.name, about.uid or "")
