"""What a benchmark on a cluster looks with: objects as they change and when, and what processes took.

Kept apart from what is measured, so that every benchmark on a cluster sees in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import KubeError
from plimsoll.kube.kinds import Kind

PATIENCE: Final = 1800.0
IN_FLIGHT: Final = 64


class Glass:
    """What is seen of the objects of some kinds in a namespace, and when."""

    def __init__(self, door: Door, space: str, kinds: Iterable[Kind]) -> None:
        self._door, self._space, self._kinds = door, space, tuple(kinds)
        self.seen: dict[tuple[str, str], tuple[str, float]] = {}
        """By kind and name, version and moment of the last change; what changed last stands last."""
        self._count: Counter[str] = Counter()
        self.news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Glass:
        for kind in self._kinds:
            path, version = kind.collection(self._space), ""
            async for page in self._door.pages(path, metadata=True):
                version = page.version
                for item in page.items:
                    self._put(kind, item)
            self._tasks.append(asyncio.create_task(self._watch(kind, path, version)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, kind: Kind, path: str, version: str) -> None:
        while True:
            with contextlib.suppress(KubeError):
                async for event, item in self._door.watch(path, version, metadata=True):
                    if event == "OPENED":
                        continue
                    version = item["metadata"]["resourceVersion"]
                    if event == "DELETED":
                        self._drop(kind, item["metadata"]["name"])
                    elif event != "BOOKMARK":
                        self._put(kind, item)
                    self.news.set()

    def _put(self, kind: Kind, item: Object) -> None:
        metadata = item["metadata"]
        self._drop(kind, metadata["name"])
        self.seen[kind.name, metadata["name"]] = metadata["resourceVersion"], time.monotonic()
        self._count[kind.name] += 1

    def _drop(self, kind: Kind, name: str) -> None:
        if self.seen.pop((kind.name, name), None) is not None:
            self._count[kind.name] -= 1

    def of(self, kind: str) -> int:
        """How many of a kind there are. Asked after each event of thousands, on the machine that is measured: nothing is looked
        through for it."""
        return self._count[kind]

    async def until(self, holds: Callable[[], bool]) -> float:
        """When it held."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.news.clear()
                await self.news.wait()
        return time.monotonic()

    async def next_of(self, name: str, after: float) -> float:
        """When an object of this name, or of one made from it, was first seen to change after a moment."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.news.clear()
                since = takewhile(lambda each: each[1][1] > after, reversed(self.seen.items()))
                at = [moment for (_, one), (_, moment) in since if one == name or one.startswith(f"{name}-")]
                if at:
                    return min(at)
                await self.news.wait()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def percentiles(seconds: list[float], prefix: str = "") -> dict[str, float]:
    return {
        f"{prefix}p50_ms": round(statistics.median(seconds) * 1000, 1),
        f"{prefix}p99_ms": round(percentile(seconds, 0.99) * 1000, 1),
    }


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) // 1000


async def at_once(calls: Iterable[Callable[[], Awaitable[object]]]) -> float:
    """So many in flight as the operator may have; how long it took."""
    began, room = time.monotonic(), asyncio.Semaphore(IN_FLIGHT)

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        async with room:
            await call()

    await asyncio.gather(*(one(call) for call in calls))
    return time.monotonic() - began
