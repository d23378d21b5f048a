"""Lists one collection of the API and then watches it for as long as the task runs. A sink is told of each object.

Whatever goes wrong leads to a new list or a new watch: a version that is too old, a stream that was cut or fell silent, an answer that cannot
be read, an error of the sink. Of a list only the keys are kept here; what else is kept is up to the sink.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.kube.door import METADATA_PAGE, WHOLE_PAGE, Door, Object
from plimsoll.kube.errors import Gone, KubeError, Refused, Silent, Unreachable
from plimsoll.kube.pace import Pace

LOG: Final = logging.getLogger(__name__)
QUICK_SECONDS: Final = 5.0
"""A stream that ends sooner counts as a failure, so that a server that cuts every stream is not asked without pause."""
WHATEVER_IS_KNOWN: Final = sys.maxsize
"""The version that a list counts as where versions have gone back, as after the server's data were restored from a backup. So it is newer
than everything that is known."""
RELIST_SECONDS: Final = 75.0
RELIST_SHARE: Final = 200.0
"""Everything is listed again now and then, in case a change was lost: a small collection about once a minute, a large one after this many
times as long as its list took, which is half a percent of the time. 10,000 objects by their metadata take half a second."""


class Sink(Protocol):
    """Takes the objects that a watcher sees. It is called for one at a time, and must not block."""

    def put(self, item: Object, *, as_of: int | None) -> None:
        """The object is new or has changed where `as_of` is None. Else it was listed, in a list of that version."""

    def remove(self, item: Object) -> None:
        """The object is gone. It is given as it was last."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        """A list is complete. Objects whose key (namespace/name, or the name alone) is not among these were gone at this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which objects to watch, and how much of them."""

    path: str
    namespace: str = ""
    """The namespace, where only one is watched."""
    selector: str = ""
    fields: str = ""
    metadata: bool = False
    """Whether their metadata alone is read."""

    def __str__(self) -> str:
        return self.path + (f"?{self.selector}" if self.selector else "")


class Watcher:
    def __init__(self, door: Door, source: Source, sink: Sink, pace: Pace | None = None) -> None:
        self.source = source
        self.synced = asyncio.Event()
        """Set once the first list is complete."""
        self.problem: KubeError | None = None
        """Why nothing is seen at present."""
        self.lists = 0
        """How many lists were begun."""
        self.listed = 0
        """The most objects that a list has brought before the first one was complete. A list that begins again does not lower it."""
        self._door = door
        self._sink = sink
        self._pace = pace or Pace()
        self._version = ""
        self._newest = 0
        self._failures = 0
        self._list_at = 0.0
        self.alive_at = self._pace.now()
        """When anything last happened here, be it a failure, so that a watcher that hangs can be told."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began = self._pace.now()
            try:
                if not self._version or began >= self._list_at:
                    await self._list()
                async with asyncio.timeout(max(0.0, self._list_at - self._pace.now())):
                    await self._watch()
            except TimeoutError:
                continue
            except Gone:
                self._version = ""
                if self._lasted(began):
                    continue
            except Silent:
                # The server sends no bookmarks for events, so silence need be no problem. If the server is gone, opening the next stream
                # will show it.
                if self._lasted(began):
                    continue
            except (Refused, Unreachable) as error:
                self._failed(error)
            except Exception as error:
                # The sink raised, perhaps at an object that is not as expected. What it has may be wrong, so it is told everything again.
                LOG.exception("watching %s failed", self.source)
                self._version = ""
                self._failed(Unreachable(f"{type(error).__name__}: {error}"))
            else:
                if self._lasted(began):
                    continue
            await self._pace.sleep(self._pace.backoff(self._failures))

    def _lasted(self, began: float) -> bool:
        """Whether a stream lasted so long that its end is nothing unusual."""
        self.alive_at = self._pace.now()
        if self.alive_at - began >= QUICK_SECONDS:
            return True
        self._failures += 1
        return False

    async def _list(self) -> None:
        self.lists += 1
        began = self._pace.now()
        keys: set[str] = set()
        version, as_of = "", 0
        source = self.source
        pages = self._door.pages(
            source.path,
            selector=source.selector,
            fields=source.fields,
            metadata=source.metadata,
            size=METADATA_PAGE if source.metadata else WHOLE_PAGE,
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.version
                as_of = int(version) if int(version) >= self._newest else WHATEVER_IS_KNOWN
                for item in page.items:
                    keys.add(key_of(item))
                    self._sink.put(item, as_of=as_of)
                # So that the objects are not kept in memory while the next page is awaited.
                page.items.clear()
                self.alive_at = self._pace.now()
                if not self.synced.is_set():
                    self.listed = max(self.listed, len(keys))
                await asyncio.sleep(0)
        self._sink.keep_only(keys, as_of=as_of)
        self._newest = int(version)
        self._seen()
        pause = max(RELIST_SECONDS, (self.alive_at - began) * RELIST_SHARE)
        self._version, self._list_at = version, self.alive_at + pause * (0.9 + self._pace.chance() / 10)
        self.synced.set()

    async def _watch(self) -> None:
        source = self.source
        stream = self._door.watch(
            source.path,
            self._version,
            selector=source.selector,
            fields=source.fields,
            metadata=source.metadata,
        )
        async with aclosing(stream):
            async for kind, item in stream:
                if kind == "OPENED":
                    self.problem = None
                    continue
                if kind == "DELETED":
                    self._sink.remove(item)
                elif kind != "BOOKMARK":
                    self._sink.put(item, as_of=None)
                self._version = item["metadata"]["resourceVersion"]
                self._newest = int(self._version)
                self._seen()

    def _seen(self) -> None:
        self.alive_at = self._pace.now()
        self.problem, self._failures = None, 0

    def _failed(self, error: KubeError) -> None:
        self.alive_at = self._pace.now()
        self._failures += 1
        if type(error) is not type(self.problem):
            LOG.warning("watching %s: %s", self.source, error)
        self.problem = error


def key_of(item: Object) -> str:
    """namespace/name, or the name alone."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
