"""What kopf's watch never told of an LLMDeployment is found by two lists in a row, and told once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object, Page
from plimsoll.kube.errors import Unreachable
from plimsoll.kube.missed import Missed
from plimsoll.kube.pace import Pace
from plimsoll.reconcile.resources import Resources
from tests.kube import virtual

KEY = "team/chat"


def resource(version: int, uid: str = "u", name: str = "chat") -> Object:
    about = {"name": name, "namespace": "team", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": about, "spec": {"replicas": version}}


class Server:
    """A door to a cluster of a few LLMDeployments, whose watches say nothing."""

    def __init__(self, *there: Object) -> None:
        self.there = list(there)
        self.read: list[str] = []
        self.lists = 0
        self.away = False
        self.version = 100

    async def pages(
        self, path: str, *, fields: str = "", metadata: bool = False, **_: Any
    ) -> AsyncGenerator[Page, None]:
        await asyncio.sleep(0.01)
        name = fields.removeprefix("metadata.name=")
        if name:
            self.read.append(f"{path} {name}")
            if self.away:
                raise Unreachable("connection refused")
        self.lists += metadata
        found = [one for one in self.there if name in ("", one["metadata"]["name"])]
        yield Page([{"metadata": one["metadata"]} if metadata else one for one in found], str(self.version))

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[tuple[str, Object], None]:
        yield "OPENED", {}
        await asyncio.Event().wait()


Told = list[tuple[str, str, int | None]]


class Scene:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.resources = Resources()
        self.told: Told = []
        pace = Pace(now=asyncio.get_running_loop().time, chance=lambda: 0.5)
        self.restored: list[tuple[str, str]] = []
        self.missed = Missed(
            cast(Door, server),
            self.resources,
            self.tell,
            lambda key, uid: self.restored.append((key, uid)),
            pace=pace,
        )

    def tell(self, key: str, uid: str, body: Mapping[str, Any] | None) -> None:
        self.told.append((key, uid, None if body is None else int(body["metadata"]["resourceVersion"])))
        if body is None:
            self.resources.remove(key, uid=uid)
        else:
            assert (body["kind"], body["spec"]["replicas"]) == ("LLMDeployment", self.told[-1][2])
            self.resources.put(key, body)

    async def lists(self, count: int) -> None:
        """Until so many are over, and what they led to."""
        while self.server.lists < count:
            await asyncio.sleep(1)
        await asyncio.sleep(1)


def seen_after(lists: int, server: Server, known: Object | None) -> Told:
    async def main() -> Told:
        scene = Scene(server)
        if known is not None:
            scene.resources.put(KEY, known)
        scene.missed.start()
        await scene.lists(lists)
        await scene.missed.stop()
        return scene.told

    return virtual.run(main())


@pytest.mark.parametrize(
    ("there", "known", "told"),
    [
        pytest.param([resource(7)], resource(7), [], id="nothing was missed"),
        pytest.param([resource(7)], resource(9), [], id="it is told of later than the list"),
        pytest.param([resource(7)], resource(5), [(KEY, "u", 7)], id="an edit"),
        pytest.param([resource(7)], None, [(KEY, "u", 7)], id="its creation"),
        pytest.param([resource(7, uid="next")], resource(5), [(KEY, "next", 7)], id="another of its name"),
        pytest.param([], resource(5), [(KEY, "u", None)], id="its end"),
        pytest.param([], resource(101), [], id="it was made after the list"),
    ],
)
def test_what_two_lists_find_behind_is_told_once(
    there: list[Object], known: Object | None, told: Told
) -> None:
    assert seen_after(1, Server(*there), known) == []
    server = Server(*there)
    assert seen_after(4, server, known) == told
    assert len(server.read) == sum(version is not None for _, _, version in told)


def test_what_is_told_between_two_lists_was_only_late() -> None:
    async def main() -> None:
        scene = Scene(Server(resource(7)))
        scene.missed.start()
        await scene.lists(1)
        scene.resources.put(KEY, resource(7))
        # Behind again by the next list, but by another change.
        scene.server.there = [resource(8)]
        await scene.lists(2)
        assert (scene.told, scene.server.read) == ([], [])
        await scene.lists(3)
        assert scene.told == [(KEY, "u", 8)]
        await scene.missed.stop()

    virtual.run(main())


def test_what_cannot_be_read_is_told_after_a_later_list() -> None:
    async def main() -> None:
        scene = Scene(Server(resource(7), resource(7, name="other")))
        scene.server.away = True
        scene.missed.start()
        await scene.lists(2)
        assert scene.told == []
        assert scene.server.read == [
            f"/apis/plimsoll.dev/v1alpha1/namespaces/team/llmdeployments {name}" for name in ("chat", "other")
        ]
        scene.server.away = False
        await scene.lists(3)
        assert scene.told == [(KEY, "u", 7), ("team/other", "u", 7)]
        await scene.missed.stop()

    virtual.run(main())


def test_what_is_told_to_be_gone_while_it_is_read_is_not_there_again() -> None:
    """The answer is from before its end."""

    class Ending(Server):
        ends: Callable[[], None]

        async def pages(
            self, path: str, *, fields: str = "", metadata: bool = False, **rest: Any
        ) -> AsyncGenerator[Page, None]:
            async for page in super().pages(path, fields=fields, metadata=metadata, **rest):
                if fields:
                    self.ends()
                yield page

    async def main() -> None:
        server = Ending(resource(7))
        scene = Scene(server)
        server.ends = lambda: scene.resources.remove(KEY, uid="u")
        scene.resources.put(KEY, resource(5))
        scene.missed.start()
        await scene.lists(2)
        assert server.read
        assert scene.told == []
        await scene.missed.stop()

    virtual.run(main())


HOUR = 3600.0


@pytest.mark.parametrize(
    ("edits", "heard", "deaf"),
    [
        pytest.param([], [], False, id="nothing happens for an hour"),
        pytest.param([10], [], False, id="one event is lost, and then nothing happens for an hour"),
        pytest.param([10, 20], [], True, id="a change after another is never told"),
        pytest.param([10, 20], [15], False, id="something is told between two that are lost"),
        pytest.param([10, 20, 30, 40], [25], True, id="it hears once, and never again"),
        pytest.param([10, 20], [30], False, id="it went deaf, and hears again"),
    ],
)
def test_a_watch_is_deaf_that_tells_nothing_between_changes_that_only_lists_find(
    edits: list[int], heard: list[int], deaf: bool
) -> None:
    """By minutes of an hour."""

    async def main() -> None:
        scene = Scene(Server(resource(7)))
        scene.resources.put(KEY, resource(7))
        scene.missed.start()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for minute in sorted({*edits, *heard}):
            await asyncio.sleep(began + minute * 60 - loop.time())
            if minute in edits:
                (last,) = scene.server.there
                scene.server.there = [resource(int(last["metadata"]["resourceVersion"]) + 1)]
            if minute in heard:
                scene.missed.heard()
        await asyncio.sleep(began + HOUR - loop.time())
        assert len(scene.told) == len(edits)
        assert (scene.missed.deaf_seconds > 0) is deaf
        await scene.missed.stop()

    virtual.run(main())


def test_only_resources_of_the_namespaces_that_are_listed_are_taken_for_gone() -> None:
    async def main() -> None:
        scene = Scene(Server())
        scene.missed = Missed(
            cast(Door, scene.server),
            scene.resources,
            scene.tell,
            pace=Pace(now=asyncio.get_running_loop().time, chance=lambda: 0.5),
            namespaces=["elsewhere"],
        )
        scene.resources.put(KEY, resource(5))
        scene.missed.start()
        await scene.lists(4)
        assert scene.told == []
        await scene.missed.stop()

    virtual.run(main())


def test_after_the_data_of_the_cluster_were_restored_nothing_is_trusted_that_is_known_of_its_resources() -> (
    None
):
    """Of those that were made since the backup kopf never tells that they are gone."""

    async def main() -> None:
        scene = Scene(Server(resource(97), resource(98, name="other"), resource(99, uid="v", name="later")))
        for one in scene.server.there:
            scene.resources.put(f"team/{one['metadata']['name']}", one)
        scene.missed.start()
        await scene.lists(2)
        assert scene.restored == []
        scene.server.there, scene.server.version = [resource(7), resource(8, name="other")], 20
        scene.resources.put(KEY, resource(7))
        await scene.lists(3)
        assert scene.restored == [(KEY, "u"), ("team/other", "u"), ("team/later", "v")]
        await scene.lists(5)
        assert scene.told == [("team/later", "v", None), ("team/other", "u", 8)]
        assert len(scene.restored) == 3, "once"
        await scene.missed.stop()

    virtual.run(main())
