"""The fleet as the cluster shows it: nodes, what all pods take of them, and devices that pods get by claims.

Objects are handed to `facts.Fleet` as they come, which keeps the few numbers that planning reads. Serving pods are watched elsewhere
(`serving`), which passes them on to here. Where only some namespaces may be read, nodes and others' pods are not seen. Planning then goes by
the node classes that the admin declares, and `notes` says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Inventory
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import CLAIM, NODE, POD, SLICE, Kind
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import Sink, key_of

OTHERS: Final = f"{names.LABEL_ROLE}!={names.SERVING}"
TAKING: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_NAMESPACED: Final = (
    "nodes and other namespaces' pods may not be read here; planned on the node classes of the admin's config alone, "
    "whose nodes are taken as free"
)
SETTLE_SECONDS: Final = 0.3
"""Changes come in groups (a node brings its pods), so after a change it is waited this long before the inventory is compared."""


class FleetSeen(Watched):
    """`moved` is called when the inventory has changed; `version` counts these changes. `turned` is called with a node that pods are to
    leave from now on, or need not leave any more."""

    def __init__(
        self,
        door: Door,
        config: OperatorConfig,
        moved: Callable[[], None],
        *,
        turned: Callable[[str], None] = lambda name: None,  # noqa: ARG005
        pace: Pace | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        super().__init__(door, pace)
        self._sees_nodes = not tuple(namespaces)
        self.fleet = Fleet(config, sees_nodes=self._sees_nodes)
        self.version = 0
        self.unread: dict[str, str] = {}
        """Why objects are not counted that cannot be read, by their key."""
        self.others = _FleetSink(self, self.fleet.add_pod, self._other_is_gone)
        """Takes pods that do not serve."""
        self._serves: set[str] = set()
        """Serving pods. When somebody changes a pod's label, one watch tells that it is there and another that it is gone, in any order."""
        self._moved = moved
        self._turned = turned
        self._settling: asyncio.TimerHandle | None = None
        self._last: Inventory | None = None

    def start(self, served: Collection[Kind] = ()) -> None:
        """Watches what may be read, devices that are had by claims where these kinds are served."""
        if not self._sees_nodes:
            return
        fleet = self.fleet
        self._watch(NODE, _FleetSink(self, self._add_node, fleet.remove_node))
        self._watch(POD, self.others, selector=OTHERS, fields=TAKING)
        if SLICE in served:
            self._watch(SLICE, _FleetSink(self, fleet.add_slice, fleet.remove_slice))
        if CLAIM in served:
            self._watch(CLAIM, _FleetSink(self, fleet.add_claim, fleet.remove_claim))

    async def synced(self) -> None:
        await super().synced()
        if self._sees_nodes:
            self.fleet.pods_are_known()
        self._settle()

    async def stop(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        await super().stop()

    @property
    def notes(self) -> tuple[str, ...]:
        """What cannot be seen, and what that means for plans."""
        if not self._sees_nodes:
            return (_NAMESPACED,)
        unseen = [f"{path} cannot be read: {error}" for path, error in self.problems.items()]
        return (*unseen, *(self.unread[key] for key in sorted(self.unread)))

    def _add_node(self, node: Object) -> None:
        name = node["metadata"]["name"]
        before = self.fleet.leaving(name)
        self.fleet.add_node(node)
        if self.fleet.leaving(name) != before:
            self._turned(name)

    def serving_pod(self, key: str, pod: Object | None) -> None:
        """A serving pod that is new or changed; None when it is gone."""
        if not self._sees_nodes:
            return
        if pod is not None:
            self._serves.add(key)
            self.fleet.add_pod(pod)
        else:
            self._serves.discard(key)
            if not self.others.knows(key):
                self.fleet.remove_pod(key)
        self.changed()

    def _other_is_gone(self, key: str) -> None:
        if key not in self._serves:
            self.fleet.remove_pod(key)

    def promise(self, key: str, reservations: Collection[Reservation]) -> None:
        """Promises devices to pods of a deployment (namespace/name) that are not there yet, in place of what it was promised before. That some
        were given back may be seen nowhere else: the pods may never have come."""
        if self.fleet.promise(key, reservations):
            self.changed()

    def select(self, selectors: Iterable[Mapping[str, str]]) -> None:
        """Divides pools by these node selectors from now on. Those who wait for GPUs may find them in pools that come of it."""
        if self.fleet.select(selectors):
            self.changed()

    def changed(self) -> None:
        if self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)

    def _watch(self, kind: Kind, sink: Sink, *, selector: str = "", fields: str = "") -> None:
        for source in self._watchers.sources(kind, selector=selector, fields=fields):
            self._watchers.start(source, sink)

    def _settle(self) -> None:
        self._settling = None
        inventory = self.fleet.inventory()
        if inventory != self._last:
            self._last = inventory
            self.version += 1
            self._moved()


class _FleetSink:
    """The sink of one kind. It remembers only the keys of its objects."""

    def __init__(self, seen: FleetSeen, add: Callable[[Object], None], remove: Callable[[str], None]) -> None:
        self._seen = seen
        self._add = add
        self._remove = remove
        self._keys: set[str] = set()

    def knows(self, key: str) -> bool:
        return key in self._keys

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002 - the fleet compares for itself
        key = key_of(item)
        self._keys.add(key)
        try:
            self._add(item)
        except (ValueError, TypeError, KeyError) as error:
            # An object that cannot be read must not keep all others from being seen.
            self._remove(key)
            self._seen.unread[key] = f"{item.get('kind') or 'object'} {key} is not counted: {error}"
        else:
            self._seen.unread.pop(key, None)
        self._seen.changed()

    def remove(self, item: Object) -> None:
        key = key_of(item)
        self._forget(key)

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        for key in self._keys - keys:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._keys.discard(key)
        self._seen.unread.pop(key, None)
        self._remove(key)
        self._seen.changed()
