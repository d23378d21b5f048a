"""Everything that the operator watches of a cluster, started and stopped together.

`wake` is called with a deployment (namespace/name) of which something has changed, `moved` when the inventory or the served kinds have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.serving import Serving
from plimsoll.kube.capabilities import Served
from plimsoll.kube.children import Children, Wake
from plimsoll.kube.door import Door
from plimsoll.kube.errors import KubeError
from plimsoll.kube.facts_pods import FactsPods
from plimsoll.kube.fleet import FleetSeen
from plimsoll.kube.pace import Pace
from plimsoll.kube.refusals import Refusals
from plimsoll.kube.scalers import Scalers
from plimsoll.kube.serving import Pods, leaving, serving
from plimsoll.objects import Bearer

LIST_SECONDS: Final = 30.0
"""How long the first lists of newly served kinds are waited for: a kind that may not be listed must not hold up the others."""


class Sight:
    """`namespaces` are those that may be watched; where empty, the whole cluster is, with its nodes."""

    def __init__(
        self,
        door: Door,
        config: OperatorConfig,
        wake: Wake,
        moved: Callable[[], None],
        *,
        namespaces: Iterable[str] = (),
        pace: Pace | None = None,
    ) -> None:
        spaces = tuple(namespaces)
        self._moved = moved
        self._served = Served(door, self._serve, pace=pace, crds=not spaces)
        self.children = Children(door, wake, pace=pace, namespaces=spaces)
        self._wake = wake
        self.fleet = FleetSeen(door, config, moved, turned=self._turned, pace=pace, namespaces=spaces)
        self.pods = Pods(door, wake, hears=self.fleet.serving_pod, pace=pace, namespaces=spaces)
        self.facts_pods = FactsPods(door, wake, pace=pace, namespaces=spaces)
        self.scalers = Scalers(door, wake, pace=pace, namespaces=spaces)
        self.refusals = Refusals(door, wake, pace=pace, namespaces=spaces)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once everything is listed. Before that, what is not seen may well exist."""
        await self._served.start()
        self._watch()
        await asyncio.gather(*(part.synced() for part in self._parts))

    async def stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for part in (self._served, *self._parts):
            await part.stop()

    @property
    def capabilities(self) -> Capabilities:
        return self._served.capabilities

    @property
    def listed(self) -> int:
        """How many objects the first lists have brought so far."""
        return sum(part.listed for part in self._parts)

    @property
    def problems(self) -> Mapping[str, KubeError]:
        """Why something cannot be seen at present, by its path."""
        return {path: problem for part in self._parts for path, problem in part.problems.items()}

    def alive_at(self) -> float:
        """When the watch that has been silent for longest last did something."""
        return min(part.alive_at() for part in (self._served, *self._parts))

    @property
    def _parts(
        self,
    ) -> tuple[Children, FleetSeen, Pods, FactsPods, Scalers, Refusals]:
        return self.children, self.fleet, self.pods, self.facts_pods, self.scalers, self.refusals

    def serving(self, owner: str, bearer: Bearer | None = None) -> Serving:
        """What is seen of a deployment (namespace/name); with `bearer`, only what belongs to the present one of that name."""
        seen = serving(owner, self.children, self.pods, self.scalers, self.refusals, bearer=bearer)
        return leaving(seen, self.fleet.fleet)

    def _turned(self, node: str) -> None:
        for owner in sorted(self.pods.on(node)):
            self._wake(owner)

    def _serve(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
        self._serving = asyncio.create_task(self._serve_others(), name="watch what is served now")

    async def _serve_others(self) -> None:
        await self.children.serve(self._served.kinds)
        self._watch()
        with suppress(TimeoutError):
            async with asyncio.timeout(LIST_SECONDS):
                await self.children.synced()
        self._moved()

    def _watch(self) -> None:
        self.children.start(self._served.kinds)
        self.fleet.start(self._served.kinds)
        self.pods.start()
        self.facts_pods.start()
        self.scalers.start(self._served.kinds)
        self.refusals.start()
