"""Which optional kinds the cluster serves, in the versions that we read and write. It is looked up again when CRDs come and go.

Discovery is asked and not the CRDs, since an API may be served without a CRD, and a CRD is there before its API is served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from plimsoll.facts.capabilities import Capabilities
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import KubeError, NotFound
from plimsoll.kube.kinds import CHILDREN, CLAIM, CRD, SCALED_OBJECT, SLICE, Kind
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watched

LOG: Final = logging.getLogger(__name__)
OPTIONAL: Final = (*(kind for kind in CHILDREN if kind.optional), SCALED_OBJECT, SLICE, CLAIM)
LOOK_SECONDS: Final = 300.0
"""Between two looks while no change of a CRD is seen, as where CRDs may not be watched."""
SETTLE_SECONDS: Final = 2.0
"""How long after a change of a CRD to look again, as a CRD is seen 0.1 to 1.3 s before it is served."""


class Served(Watched):
    """`changed` is called when other kinds are served than before."""

    def __init__(
        self, door: Door, changed: Callable[[], None], *, pace: Pace | None = None, crds: bool = True
    ) -> None:
        super().__init__(door, pace)
        self.kinds: frozenset[Kind] = frozenset()
        self._door = door
        self._changed = changed
        self._pace = pace or Pace()
        self._crds = crds
        self._told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Looks once, and goes on looking."""
        self.kinds = await look(self._door)
        if self._crds:
            for source in self._watchers.sources(CRD, metadata=True):
                self._watchers.start(source, self)
        self._task = asyncio.create_task(self._run(), name="watch what is served")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await super().stop()

    @property
    def capabilities(self) -> Capabilities:
        return frozenset((kind.group, kind.name) for kind in self.kinds)

    def put(self, item: Object, *, as_of: int | None) -> None:
        """A CRD has changed. Those that are merely listed are nothing new, as discovery was asked at the start."""
        if as_of is None and _group(item["metadata"]["name"]) in _GROUPS:
            self._told.set()

    def remove(self, item: Object) -> None:
        self.put(item, as_of=None)

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002 - what is gone shows when it is looked for
        self._told.set()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._told.wait()
            except TimeoutError:
                await self._look()
                continue
            self._told.clear()
            await self._look()
            await self._pace.sleep(SETTLE_SECONDS)
            await self._look()

    async def _look(self) -> None:
        try:
            found = await look(self._door)
        except KubeError as error:
            LOG.warning("what the cluster serves is not known anew: %s", error)
            return
        except Exception:
            # A malformed answer must not end the task, as the next one may be well-formed.
            LOG.exception("what the cluster serves cannot be read")
            return
        if found != self.kinds:
            self.kinds = found
            self._changed()


async def look(door: Door) -> frozenset[Kind]:
    """The optional kinds that are served now."""
    groups = (await door.get("/apis")).get("groups") or ()
    versions = {one["groupVersion"] for group in groups for one in group.get("versions") or ()}
    wanted = sorted({kind.api_version for kind in OPTIONAL} & versions)
    found = await asyncio.gather(*(_kinds(door, version) for version in wanted))
    served = {(version, kind) for version, kinds in zip(wanted, found, strict=True) for kind in kinds}
    return frozenset(kind for kind in OPTIONAL if (kind.api_version, kind.name) in served)


async def _kinds(door: Door, version: str) -> set[str]:
    try:
        resources = (await door.get(f"/apis/{version}")).get("resources") or ()
    except NotFound:
        return set()
    return {one["kind"] for one in resources}


def _group(crd: str) -> str:
    return crd.partition(".")[2]


_GROUPS: Final = frozenset(kind.group for kind in OPTIONAL)
