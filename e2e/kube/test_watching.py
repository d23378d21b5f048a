"""A watcher ends up with what there is, whatever happens to its lists and streams on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cluster import Cluster
from cluster.api import Api, Object
from cluster.faults import (
    WATCHES,
    Answer,
    CutWatch,
    ExpireWatch,
    FaultProxy,
    Hang,
    LoseEvents,
    Refuse,
    SilenceWatch,
    Where,
)
from common import PATIENCE_SECONDS, eventually
from kube.conftest import Doors
from kube.things import LONGEST_SECONDS, soon
from plimsoll.kube import watching
from plimsoll.kube.door import Door
from plimsoll.kube.errors import Refused, Unreachable
from plimsoll.kube.pace import Pace
from plimsoll.kube.watching import Source, Watcher, key_of

OURS = "test=watching"
LISTS = Where(verbs={"list"}, resources={"configmaps"})


class Keeps:
    """A sink that keeps what each object holds."""

    def __init__(self) -> None:
        self.data: dict[str, str | None] = {}
        self.raises = False

    def put(self, item: Object, *, as_of: int | None) -> None:  # noqa: ARG002
        if self.raises:
            self.raises = False
            raise LookupError("a sink that fails")
        self.data[key_of(item)] = (item.get("data") or {}).get("n")

    def remove(self, item: Object) -> None:
        self.data.pop(key_of(item), None)

    def keep_only(self, keys: set[str], *, as_of: int) -> None:  # noqa: ARG002
        self.data = {key: value for key, value in self.data.items() if key in keys}


class Maps:
    """ConfigMaps of one namespace, as somebody else writes them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.there: dict[str, str] = {}

    def put(self, name: str, value: str, *, size: int = 0) -> None:
        body: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"test": "watching"}},
            "data": {"n": value, "much": "x" * size},
        }
        self.api.apply(f"{self.path}/{name}", body)
        self.there[f"{self.namespace}/{name}"] = value

    def remove(self, name: str) -> None:
        self.api.delete(f"{self.path}/{name}")
        del self.there[f"{self.namespace}/{name}"]

    def change(self) -> None:
        """Something of each kind."""
        self.put("made", "1")
        self.put("kept", "2")
        self.remove("gone")


@pytest.fixture(autouse=True)
def no_list_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are counted here, and a busy machine takes its time."""
    monkeypatch.setattr(watching, "RELIST_SECONDS", 2 * LONGEST_SECONDS)


@pytest.fixture
def maps(cluster: Cluster, namespace: str) -> Maps:
    found = Maps(cluster.api, namespace)
    for name in ("kept", "gone"):
        found.put(name, "0")
    return found


@asynccontextmanager
async def watching_of(door: Door, maps: Maps, **settings: Any) -> AsyncIterator[tuple[Watcher, Keeps]]:
    keeps = Keeps()
    source = Source(path=maps.path, selector=OURS, **settings)
    watcher = Watcher(door, source, keeps, Pace(chance=lambda: 0.0))
    task = asyncio.create_task(watcher.run())
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            yield watcher, keeps
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_what_changes_is_seen_while_it_changes(door: Doors, maps: Maps) -> None:
    async def does() -> None:
        async with door() as opened, watching_of(opened, maps) as (watcher, keeps):
            await watcher.synced.wait()
            assert keeps.data == maps.there
            await asyncio.to_thread(maps.change)
            assert await soon(lambda: keeps.data == maps.there)
            assert watcher.lists == 1
            assert watcher.problem is None

    asyncio.run(does())


def test_a_list_of_many_pages_is_whole(door: Doors, maps: Maps) -> None:
    for index in range(7):
        maps.put(f"many-{index}", str(index))

    async def does() -> None:
        async with door() as opened:
            pages = [page async for page in opened.pages(maps.path, selector=OURS, size=4)]
            assert [len(page.items) for page in pages] == [4, 4, 1]
            assert {key_of(item) for page in pages for item in page.items} == set(maps.there)

    asyncio.run(does())


def test_metadata_alone_tells_which_there_are_and_an_empty_list_is_none(door: Doors, maps: Maps) -> None:
    async def does() -> None:
        async with door() as opened, watching_of(opened, maps, metadata=True) as (watcher, keeps):
            await watcher.synced.wait()
            assert keeps.data == dict.fromkeys(maps.there)
            for name in ("kept", "gone"):
                await asyncio.to_thread(maps.remove, name)
            assert await soon(lambda: not keeps.data)
        async with door() as opened, watching_of(opened, maps, metadata=True) as (watcher, keeps):
            await watcher.synced.wait()
            assert not keeps.data

    asyncio.run(does())


def test_a_large_object_comes_through_a_watch(door: Doors, maps: Maps) -> None:
    async def does() -> None:
        async with door() as opened, watching_of(opened, maps) as (watcher, keeps):
            await watcher.synced.wait()
            await asyncio.to_thread(maps.put, "large", "all", size=900_000)
            assert await soon(lambda: keeps.data == maps.there)
            assert watcher.lists == 1

    asyncio.run(does())


def test_a_sink_that_fails_is_told_all_again(door: Doors, maps: Maps) -> None:
    async def does() -> None:
        async with door() as opened, watching_of(opened, maps) as (watcher, keeps):
            await watcher.synced.wait()
            keeps.raises = True
            await asyncio.to_thread(maps.change)
            assert await soon(lambda: keeps.data == maps.there)
            assert watcher.lists == 2

    asyncio.run(does())


def cut(proxy: FaultProxy) -> bool:
    """The stream that is open, or is about to be."""
    return eventually(lambda: proxy.cut_watches() > 0)


def expire(proxy: FaultProxy) -> bool:
    return eventually(lambda: proxy.expire_watches() > 0)


async def felt(watcher: Watcher, proxy: FaultProxy) -> None:
    """Until it lists: what befell a stream that it had left already, silent for too long on a slow machine, befalls the next."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while watcher.lists == 1:
            await asyncio.to_thread(proxy.expire_watches)
            await asyncio.sleep(0.1)


Break = Callable[[FaultProxy], object]
FAULTS: Mapping[str, tuple[Break, bool]] = {
    "streams are cut": (lambda proxy: proxy.add(CutWatch(0.3), WATCHES, times=3), False),
    "a stream is cut": (cut, False),
    "a stream falls silent": (lambda proxy: proxy.add(SilenceWatch(), WATCHES, times=1), False),
    "a version is too old": (expire, True),
    "versions are too old": (
        lambda proxy: (proxy.add(ExpireWatch(), WATCHES, times=2), cut(proxy)),
        True,
    ),
    "the answer to a new watch is 410": (
        lambda proxy: (proxy.add(Answer(410), WATCHES, times=1), cut(proxy)),
        True,
    ),
    "new watches are told to come later": (
        lambda proxy: (proxy.add(Answer(429, 1), WATCHES, times=2), cut(proxy)),
        False,
    ),
    "new watches hang": (lambda proxy: (proxy.add(Hang(), WATCHES, times=1), cut(proxy)), False),
    "lists fail, hang and are cut": (
        lambda proxy: (
            proxy.add(Answer(500), LISTS, times=1),
            proxy.add(Hang(), LISTS, times=1),
            proxy.add(Refuse(), LISTS, times=1),
            proxy.add(Answer(429, 1), LISTS, times=1),
            expire(proxy),
        ),
        True,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_breaks_it_sees_all_in_the_end(
    proxy: FaultProxy, through: Doors, maps: Maps, fault: str
) -> None:
    breaks, lists = FAULTS[fault]

    async def does() -> None:
        async with through() as opened, watching_of(opened, maps) as (watcher, keeps):
            await watcher.synced.wait()
            await asyncio.to_thread(breaks, proxy)
            if lists:
                await felt(watcher, proxy)
            await asyncio.to_thread(maps.change)
            assert await soon(lambda: keeps.data == maps.there)
            assert (watcher.lists > 1) == lists
            proxy.counts.reset()
            await asyncio.to_thread(maps.put, "later", "1")
            assert await soon(lambda: keeps.data == maps.there and watcher.problem is None)

    asyncio.run(does())


def test_an_event_that_is_lost_is_made_good_by_the_next_list(
    proxy: FaultProxy, through: Doors, maps: Maps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "RELIST_SECONDS", 2.0)

    async def does() -> None:
        async with through(silence_seconds=30.0) as opened, watching_of(opened, maps) as (watcher, keeps):
            await watcher.synced.wait()
            with proxy.add(LoseEvents(), WATCHES) as rule:
                await asyncio.to_thread(maps.change)
                assert await soon(lambda: keeps.data == maps.there)
            assert rule.hits
            assert watcher.lists > 1

    asyncio.run(does())


@pytest.mark.parametrize(
    ("fault", "kind"), [(Answer(403), Refused), (Refuse(), Unreachable)], ids=["forbidden", "refused"]
)
def test_what_cannot_be_seen_is_said_and_tried_again(
    proxy: FaultProxy, through: Doors, maps: Maps, fault: Any, kind: type[Exception]
) -> None:
    async def does() -> None:
        rule = proxy.add(fault, LISTS)
        async with through() as opened, watching_of(opened, maps) as (watcher, keeps):
            assert await soon(lambda: isinstance(watcher.problem, kind))
            assert not watcher.synced.is_set()
            before = watcher.alive_at
            assert await soon(lambda: watcher.alive_at > before)
            rule.remove()
            assert await soon(watcher.synced.is_set)
            assert keeps.data == maps.there
            assert watcher.problem is None

    asyncio.run(does())
