"""LLMDeployments of which kopf's watch told nothing: a second watch of our own, by their metadata alone, finds and tells them.

Who reads an event first is chance, so that only what two lists in a row find behind was missed. It is read whole then, and
told as an event would be: for each that is lost, one reader's call; for all others nothing. Where again and again changes are
found so, and kopf's watch says nothing at all in between, that watch is deaf.
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
from plimsoll.kube.watching import key_of

LOG: Final = logging.getLogger(__name__)
GONE: Final = -1
"""In place of the version of one that no list has any more."""

Tell = Callable[[str, str, Mapping[str, Any] | None], None]
"""Is told one by namespace/name and uid: its object, or None where it is gone."""


class Known(Protocol):
    """What was told so far."""

    def versions(self) -> Iterable[tuple[str, str, int]]:
        """namespace/name, uid and version of each."""

    def version(self, key: str) -> int | None: ...


class Missed(Watched):
    def __init__(
        self,
        door: Door,
        known: Known,
        tell: Tell,
        *,
        pace: Pace | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._pace = pace or Pace()
        super().__init__(door, self._pace, namespaces)
        self._door = door
        self.known = known
        self._tell = tell
        self._reading: asyncio.Task[None] | None = None
        self._first: float | None = None
        self._last = 0.0

    def heard(self) -> None:
        """kopf's watch told something, whatever it was."""
        self._first = None

    @property
    def deaf_seconds(self) -> float:
        """Between the first and the last change that were found here since kopf's watch told anything. One alone tells nothing: a single
        event may be lost, and then nothing may happen for long."""
        return 0.0 if self._first is None else self._last - self._first

    def start(self) -> None:
        for source in self._watchers.sources(OWNER, metadata=True):
            self._watchers.start(source, _Sink(self, source.namespace))

    async def stop(self) -> None:
        await super().stop()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def make_good(self, behind: Mapping[str, int], gone: Mapping[str, str]) -> None:
        """Those that are there, with a version that was not told, and those that are not, with their uids."""
        for key, uid in gone.items():
            LOG.warning("that it is gone was never told", extra={"deployment": key})
            self._found()
            self._tell(key, uid, None)
        # What is not read now is behind at the next list as well.
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
        """By a list of one: lists are all that may be read of them."""
        namespace, _, name = key.partition("/")
        pages = self._door.pages(OWNER.collection(namespace), fields=f"metadata.name={name}")
        async with aclosing(pages):
            async for page in pages:
                for item in page.items:
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


class _Sink:
    """Of one watcher: what its last list found behind, by name, and the version that it found."""

    def __init__(self, missed: Missed, namespace: str) -> None:
        self._missed = missed
        self._namespace = namespace
        self._before: dict[str, int] = {}
        self._now: dict[str, int] = {}

    def put(self, item: Object, *, as_of: int | None) -> None:
        """What comes by the watch comes to kopf as well, and is looked at in the next list."""
        key, version = key_of(item), int(item["metadata"]["resourceVersion"])
        if as_of is not None and is_behind(self._missed.known, key, version):
            self._now[key] = version

    def remove(self, item: Object) -> None:
        """The same."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        known = self._missed.known
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
