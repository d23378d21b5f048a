"""One collection of the API, listed and then watched for as long as the task runs, told to a sink object by object.

Whatever goes wrong ends in a new list or a new watch: a version that is too old, a stream that was cut or fell silent, an
answer that cannot be read, a sink that raised. What the objects mean, and what of them is kept, is the sink's; nothing of a
list is kept here but its keys, so that memory does not grow with the size of a page's objects.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.kube.door import PAGE, WHOLE_PAGE, Door, Object
from plimsoll.kube.errors import Gone, KubeError, Refused, Silent, Unreachable
from plimsoll.kube.pace import Pace

LOG: Final = logging.getLogger(__name__)
QUICK_SECONDS: Final = 5.0
"""A stream that ends sooner counts as a failure, so that a server that cuts each one is not asked without pause."""
WHATEVER_IS_KNOWN: Final = sys.maxsize
"""As of which a list is where versions have gone back, as after the server's data were restored from a copy."""
RELIST_SECONDS: Final = 75.0
RELIST_SHARE: Final = 200.0
"""Now and then all is listed again, should a change have been lost on the way: a small collection about once a minute, a
large one so seldom that it costs half a percent of the time; 10,000 objects by their metadata take half a second."""


class Sink(Protocol):
    """What is done with the objects. Calls come one at a time, and must not block."""

    def put(self, item: Object, *, as_of: int | None) -> None:
        """It is new, or changed; or listed once more, in a list that is as of this version."""

    def remove(self, item: Object) -> None:
        """It is gone; the object is as it was last."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        """A list is complete: whatever is in none of these (namespace/name, or the name alone) was gone at this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which objects, and how much of them."""

    path: str
    namespace: str = ""
    """Where only one is looked at."""
    selector: str = ""
    fields: str = ""
    metadata: bool = False
    """Their metadata only."""

    def __str__(self) -> str:
        return self.path + (f"?{self.selector}" if self.selector else "")


class Watcher:
    def __init__(self, door: Door, source: Source, sink: Sink, pace: Pace | None = None) -> None:
        self.source = source
        self.synced = asyncio.Event()
        """The first list is complete."""
        self.problem: KubeError | None = None
        """Why nothing is seen at present."""
        self.lists = 0
        """Begun so far; more than one is a gap that was closed."""
        self.listed = 0
        """The most objects that a list has come to before one was complete: one that begins again shows nothing new at first."""
        self._door = door
        self._sink = sink
        self._pace = pace or Pace()
        self._version = ""
        self._newest = 0
        self._failures = 0
        self._list_at = 0.0
        self.alive_at = self._pace.now()
        """When something happened here last, be it a failure: what hangs is seen by this."""

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
                # Of events the server sends no bookmarks. Where it is gone, the next stream is not answered, which is a problem.
                if self._lasted(began):
                    continue
            except (Refused, Unreachable) as error:
                self._failed(error)
            except Exception as error:
                # A sink that raised, or an object that is not as expected: what it holds may be wrong, so it is told all again.
                LOG.exception("watching %s failed", self.source)
                self._version = ""
                self._failed(Unreachable(f"{type(error).__name__}: {error}"))
            else:
                if self._lasted(began):
                    continue
            await self._pace.sleep(self._pace.backoff(self._failures))

    def _lasted(self, began: float) -> bool:
        """Whether a stream that ended had gone on for so long that its end is nothing unusual."""
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
            size=PAGE if source.metadata else WHOLE_PAGE,
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.version
                as_of = int(version) if int(version) >= self._newest else WHATEVER_IS_KNOWN
                for item in page.items:
                    keys.add(key_of(item))
                    self._sink.put(item, as_of=as_of)
                # Not held while the next page is on its way.
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
