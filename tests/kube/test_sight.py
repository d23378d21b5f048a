"""Everything that is seen, as one: what comes to be served is watched, and what may not be seen holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, cast

from plimsoll.api.config import OperatorConfig
from plimsoll.kube.capabilities import LOOK_SECONDS
from plimsoll.kube.door import Door, Object, Page
from plimsoll.kube.errors import Refused
from plimsoll.kube.kinds import CONFIG_MAP
from plimsoll.kube.pace import Pace
from plimsoll.kube.sight import LIST_SECONDS, Sight
from plimsoll.kube.watchers import Watchers
from tests.kube import virtual

MONITORS = "monitoring.coreos.com/v1"
ROUTES = "gateway.networking.k8s.io/v1"
DEVICES = "resource.k8s.io/v1"
KINDS = {
    MONITORS: "PodMonitor",
    ROUTES: "HTTPRoute",
    DEVICES: "ResourceSlice",
    f"{DEVICES}beta2": "ResourceSlice",
}


class Empty:
    """A door to a cluster in which there is nothing, and where nothing ever happens but what is served."""

    def __init__(self) -> None:
        self.served: set[str] = set()
        self.garbled = False
        """Whether discovery answers what cannot be read."""
        self.forbidden = ""
        """What may not be listed, by a word of its path."""
        self.watched: list[str] = []
        self.goodbye_seconds = 0.0
        """How long a watch takes to end."""

    async def get(self, path: str) -> Object:
        if self.garbled:
            return {"groups": [{"versions": [{}]}]}
        if path == "/apis":
            return {"groups": [{"versions": [{"groupVersion": one}]} for one in sorted(self.served)]}
        return {"resources": [{"kind": KINDS[path.removeprefix("/apis/")]}]}

    async def pages(self, path: str, **_: Any) -> AsyncGenerator[Page, None]:
        if self.forbidden and self.forbidden in path:
            raise Refused(403, {})
        yield Page([], "1")

    async def watch(self, path: str, version: str, **_: Any) -> AsyncGenerator[tuple[str, Object], None]:
        self.watched.append(path)
        try:
            await asyncio.Event().wait()
            yield "OPENED", {}
        finally:
            if self.goodbye_seconds:
                await asyncio.sleep(self.goodbye_seconds)


def pace() -> Pace:
    return Pace(now=asyncio.get_running_loop().time, chance=lambda: 0.5)


def seen(door: Empty, moved: Callable[[], None]) -> Sight:
    return Sight(cast(Door, door), OperatorConfig(), lambda key: None, moved, pace=pace())


def test_a_kind_that_comes_to_be_served_is_watched_and_told_of() -> None:
    async def main() -> None:
        door, moves = Empty(), list[str]()
        sight = seen(door, lambda: moves.append("moved"))
        await sight.start()
        await asyncio.sleep(1)
        moves.clear()
        door.served = {ROUTES}
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert any("httproutes" in path for path in door.watched)
        assert moves == ["moved"]
        await sight.stop()

    virtual.run(main())


def test_devices_by_claims_are_seen_where_claims_of_them_can_be_made() -> None:
    """Templates of claims are written in one version. Kubernetes before 1.34 serves others alone."""

    async def main() -> None:
        door = Empty()
        door.served = {f"{DEVICES}beta2"}
        sight = seen(door, lambda: None)
        await sight.start()
        await asyncio.sleep(1)
        assert not any("resourceslices" in path for path in door.watched)
        door.served |= {DEVICES}
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert {path for path in door.watched if "resourceslices" in path} == {
            f"/apis/{DEVICES}/resourceslices"
        }
        await sight.stop()

    virtual.run(main())


def test_an_answer_of_discovery_that_cannot_be_read_hides_nothing_that_comes_after_it() -> None:
    async def main() -> None:
        door, moves = Empty(), list[str]()
        sight = seen(door, lambda: moves.append("moved"))
        await sight.start()
        door.garbled = True
        await asyncio.sleep(2 * LOOK_SECONDS)
        moves.clear()
        door.garbled, door.served = False, {ROUTES}
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert moves == ["moved"]
        await sight.stop()

    virtual.run(main())


def test_a_kind_that_may_not_be_listed_hides_no_other_and_holds_up_no_end() -> None:
    async def main() -> None:
        door, moves = Empty(), list[str]()
        door.forbidden = "podmonitors"
        sight = seen(door, lambda: moves.append("moved"))
        await sight.start()
        await asyncio.sleep(1)
        moves.clear()
        door.served = {MONITORS, ROUTES}
        await asyncio.sleep(LOOK_SECONDS + LIST_SECONDS + 2)
        assert moves == ["moved"]
        door.served = {MONITORS}
        await asyncio.sleep(LOOK_SECONDS + 1)
        async with asyncio.timeout(LIST_SECONDS / 2):
            await sight.stop()

    virtual.run(main())


def test_who_waits_for_watches_to_end_can_be_told_to_end_too() -> None:
    async def main() -> None:
        door = Empty()
        door.goodbye_seconds = 5.0
        watchers = Watchers(cast(Door, door), pace())
        for source in watchers.sources(CONFIG_MAP):
            watchers.start(source, cast(Any, Nothing()))
        await watchers.synced()
        await asyncio.sleep(1)
        stopping = asyncio.create_task(watchers.stop())
        await asyncio.sleep(1)
        stopping.cancel()
        with suppress(asyncio.CancelledError):
            await stopping
        assert stopping.cancelled()

    virtual.run(main())


class Nothing:
    """Keeps nothing of what it is told."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        pass
