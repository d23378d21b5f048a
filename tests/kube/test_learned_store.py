"""What was learned is written over what was read, and over nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.learned_store import LearnedStore, Stored


class Server:
    """Keeps one ConfigMap. An apply makes what is not there, unless it says which object it is about."""

    def __init__(self) -> None:
        self.item: Object | None = None
        self.version = 5

    async def get(self, _: str) -> Object:
        if self.item is None:
            raise NotFound(404, {})
        return self.item

    async def apply(self, _: str, body: Object, **__: Any) -> Object:
        about = body["metadata"]
        if self.item is None and "uid" in about:
            raise Conflict(409, {"message": "uid mismatch: no existing object was found"})
        if self.item is not None:
            there = self.item["metadata"]
            if any(there[name] != about.get(name, there[name]) for name in ("uid", "resourceVersion")):
                raise Conflict(409, {})
        return self._keep(body)

    async def create(self, _: str, body: Object, **__: Any) -> Object:
        if self.item is not None:
            raise Conflict(409, {"reason": "AlreadyExists"})
        return self._keep(body)

    def _keep(self, body: Object) -> Object:
        self.version += 1
        uid = f"u{self.version}" if self.item is None else self.item["metadata"]["uid"]
        about = {**body["metadata"], "uid": uid, "resourceVersion": str(self.version)}
        self.item = {**body, "metadata": about}
        return self.item


def test_it_is_made_then_changed_and_each_time_its_version_is_another_one() -> None:
    async def main() -> None:
        store = LearnedStore(cast(Door, Server()), "plimsoll")
        assert await store.read() == Stored(None)
        first = await store.write("one", "")
        assert await store.read() == Stored("one", first)
        second = await store.write("two", first)
        assert await store.read() == Stored("two", second)
        for stale in ("", first):
            with pytest.raises(Conflict):
                await store.write("three", stale)

    asyncio.run(main())


@pytest.mark.parametrize("made_again", [False, True])
def test_what_a_person_has_removed_since_it_was_read_is_not_made_again(*, made_again: bool) -> None:
    async def main() -> None:
        server = Server()
        store = LearnedStore(cast(Door, server), "plimsoll")
        read = await store.write("one", "")
        server.item = None
        if made_again:
            await store.write("theirs", "")
        with pytest.raises(Conflict):
            await store.write("two", read)
        assert (await store.read()).text == ("theirs" if made_again else None)

    asyncio.run(main())
