"""Several watchers that belong together: started, stopped and waited for together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.kube.door import Door
from plimsoll.kube.errors import KubeError
from plimsoll.kube.kinds import Kind
from plimsoll.kube.pace import Pace
from plimsoll.kube.watching import Sink, Source, Watcher

EVERYWHERE: Final = ("",)


class Watchers:
    """`namespaces` are those that may be watched; where empty, all are."""

    def __init__(self, door: Door, pace: Pace, namespaces: Iterable[str] = ()) -> None:
        self._door = door
        self._pace = pace
        self._namespaces = tuple(sorted(namespaces)) or EVERYWHERE
        self._running: dict[tuple[str, str], tuple[Watcher, asyncio.Task[None]]] = {}

    def sources(
        self, kind: Kind, *, selector: str = "", fields: str = "", metadata: bool = False
    ) -> list[Source]:
        """A source for each namespace that is watched."""
        spaces = self._namespaces if kind.namespaced else EVERYWHERE
        return [
            Source(
                path=kind.collection(space),
                namespace=space,
                selector=selector,
                fields=fields,
                metadata=metadata,
            )
            for space in spaces
        ]

    def start(self, source: Source, sink: Sink) -> None:
        """Starts a watcher, unless it runs already."""
        key = source.path, source.selector
        if key not in self._running:
            watcher = Watcher(self._door, source, sink, self._pace)
            self._running[key] = watcher, asyncio.create_task(watcher.run(), name=f"watch {source}")

    async def stop(self, sources: Iterable[Source] | None = None) -> None:
        """Stops the watchers of these sources, or all."""
        keys = list(self._running) if sources is None else [(one.path, one.selector) for one in sources]
        ended = [self._running.pop(key)[1] for key in keys if key in self._running]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    async def synced(self) -> None:
        """Waits until the first list of each watcher is complete. One that cannot be listed (`problems` says why) holds this up."""
        for watcher, _ in list(self._running.values()):
            await watcher.synced.wait()

    @property
    def listed(self) -> int:
        """How many objects the first lists have brought so far."""
        return sum(watcher.listed for watcher, _ in self._running.values())

    @property
    def problems(self) -> Mapping[str, KubeError]:
        """Why something cannot be seen at present, by its path."""
        found = {watcher.source.path: watcher.problem for watcher, _ in self._running.values()}
        return {path: problem for path, problem in sorted(found.items()) if problem is not None}

    def alive_at(self) -> float:
        """When the watcher that has been silent for longest last did something; 0 where one has ended."""
        times = [0.0 if task.done() else watcher.alive_at for watcher, task in self._running.values()]
        return min(times, default=self._pace.now())


class Watched:
    """Base of classes that keep what their watchers see."""

    def __init__(self, door: Door, pace: Pace | None, namespaces: Iterable[str] = ()) -> None:
        self._watchers = Watchers(door, pace or Pace(), namespaces)

    async def synced(self) -> None:
        """Waits until everything has been listed once. Before that, what is not seen may well exist."""
        await self._watchers.synced()

    async def stop(self) -> None:
        await self._watchers.stop()

    def alive_at(self) -> float:
        return self._watchers.alive_at()

    @property
    def listed(self) -> int:
        return self._watchers.listed

    @property
    def problems(self) -> Mapping[str, KubeError]:
        return self._watchers.problems
