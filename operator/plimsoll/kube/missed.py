"""Finds changes of LLMDeployments that kopf's watch has missed, by a second watch of our own that reads metadata alone.

Either of the two watches may be the first to see a change, so a change counts as missed only when two lists in a row have it and kopf has
not told of it. Then the resource is read whole and told as if its event had come. If such changes are found again and again while kopf's
watch tells nothing at all, that watch is taken for deaf.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import KubeError
from plimsoll.kube.kinds import OWNER
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import WHATEVER_IS_KNOWN, key_of

LOG: Final = logging.getLogger(__name__)
GONE: Final = -1
"""Stands for the version of a resource that is gone."""

Tell = Callable[[str, str, Mapping[str, Any] | None], None]
"""Called with namespace/name and uid of a resource, and its object, or None where it is gone."""
Restored = Callable[[str, str], None]
"""Called with namespace/name and uid of each known resource once versions have gone back, as after the server's data were restored."""


class Known(Protocol):
    """The resources that were told of so far."""

    def versions(self) -> Iterable[tuple[str, str, int]]:
        """namespace/name, uid and version of each resource."""

    def version(self, key: str) -> int | None: ...

    def restored(self, key: str, version: int) -> None:
        """Versions have gone back; now it has this one, 0 where it is gone."""


class Missed(Watched):
    def __init__(
        self,
        door: Door,
        known: Known,
        tell: Tell,
        restored: Restored = lambda key, uid: None,  # noqa: ARG005
        *,
        pace: Pace | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._pace = pace or Pace()
        super().__init__(door, self._pace, namespaces)
        self._door = door
        self.known = known
        self._tell = tell
        self.restored = restored
        self._reading: asyncio.Task[None] | None = None
        self._first: float | None = None
        self._last = 0.0

    def heard(self) -> None:
        """kopf's watch has told something, of whichever resource."""
        self._first = None

    @property
    def deaf_seconds(self) -> float:
        """The time between the first and the last missed change since kopf's watch last told anything. It is 0 after one change, as a single
        event may get lost before a long time in which nothing happens."""
        return 0.0 if self._first is None else self._last - self._first

    def start(self) -> None:
        for source in self._watchers.sources(OWNER, metadata=True):
            self._watchers.start(source, _MissedSink(self, source.namespace))

    async def stop(self) -> None:
        await super().stop()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def make_good(self, behind: Mapping[str, int], gone: Mapping[str, str]) -> None:
        """Tells what was missed. `behind` has resources with a version that was never told, `gone` the uids of those that were deleted."""
        for key, uid in gone.items():
            LOG.warning("that it is gone was never told", extra={"deployment": key})
            self._found()
            self._tell(key, uid, None)
        # What is not read now is found again by the next list.
        if behind and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read(behind), name="read what was missed")

    async def _read(self, behind: Mapping[str, int]) -> None:
        for key, version in behind.items():
            if not is_behind(self.known, key, version):
                continue
            try:
                await self._read_one(key)
            except KubeError as error:
                LOG.warning(
                    "a change was never told, nor can it be read: %s", error, extra={"deployment": key}
                )

    async def _read_one(self, key: str) -> None:
        """Reads a resource by listing it alone, as the operator has no right to get one."""
        namespace, _, name = key.partition("/")
        before = self.known.version(key)
        pages = self._door.pages(OWNER.collection(namespace), fields=f"metadata.name={name}")
        async with aclosing(pages):
            async for page in pages:
                for item in page.items:
                    if before is not None and self.known.version(key) is None:
                        continue  # that it is gone was told meanwhile, and this answer is from before that
                    if is_behind(self.known, key, int(item["metadata"]["resourceVersion"])):
                        LOG.warning("a change was never told", extra={"deployment": key})
                        self._found()
                        whole = {"apiVersion": OWNER.api_version, "kind": OWNER.name, **item}
                        self._tell(key, item["metadata"]["uid"], whole)

    def _found(self) -> None:
        self._last = self._pace.now()
        if self._first is None:
            self._first = self._last


def is_behind(known: Known, key: str, version: int) -> bool:
    told = known.version(key)
    return told is None or told < version


class _MissedSink:
    """The sink of one watcher. It keeps what its last list found to be missed: the versions by namespace/name."""

    def __init__(self, missed: Missed, namespace: str) -> None:
        self._missed = missed
        self._namespace = namespace
        self._before: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._back: dict[str, int] = {}
        """Versions by namespace/name, of a list in which they have gone back."""

    def put(self, item: Object, *, as_of: int | None) -> None:
        """Only listed resources are looked at: an event may reach kopf a moment later, and the next list shows whether it did."""
        key, version = key_of(item), int(item["metadata"]["resourceVersion"])
        if as_of == WHATEVER_IS_KNOWN:
            self._back[key] = version
        if as_of is not None and is_behind(self._missed.known, key, version):
            self._now[key] = version

    def remove(self, item: Object) -> None:
        """Does nothing, as in `put`: whether kopf told of the deletion shows at the next list."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        known = self._missed.known
        if as_of == WHATEVER_IS_KNOWN:
            for key, uid, _ in list(known.versions()):
                if self._namespace in ("", key.partition("/")[0]):
                    known.restored(key, self._back.get(key, 0))
                    self._missed.restored(key, uid)
        self._back = {}
        uids = {
            key: uid
            for key, uid, version in known.versions()
            if self._namespace in ("", key.partition("/")[0]) and key not in keys and version <= as_of
        }
        before, self._before = self._before, {**self._now, **dict.fromkeys(uids, GONE)}
        self._now = {}
        self._missed.make_good(
            {
                key: version
                for key, version in before.items()
                if key in keys and is_behind(known, key, version)
            },
            {key: uid for key, uid in uids.items() if before.get(key) == GONE},
        )
