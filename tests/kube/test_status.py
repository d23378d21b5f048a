"""When a status is written, where its answer and what is seen of the resource come in another order than things happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Unreachable
from plimsoll.kube.status import StatusWriter
from plimsoll.objects import Owner

OWNER = Owner("team", "chat", "u1")


class Server:
    """Keeps one status; where it is `cut` off nobody hears that it does."""

    def __init__(self) -> None:
        self.status: Mapping[str, Any] = {}
        self.version = 5
        self.cut = False

    async def apply(self, _: str, body: Object, **__: Any) -> Object:
        self.status, self.version = body["status"], self.version + 1
        if self.cut:
            raise Unreachable("the connection was cut")
        return {"metadata": {"resourceVersion": str(self.version)}}

    def seen(self) -> Object:
        return {"metadata": {"resourceVersion": str(self.version)}, "status": self.status}


@pytest.mark.parametrize("edited", [False, True], ids=["", "and somebody edits the resource meanwhile"])
def test_a_status_is_written_again_after_one_of_which_nobody_knows_whether_it_was(*, edited: bool) -> None:
    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        assert await writer.write(OWNER, {"ready": "1/1"}, server.seen())
        if edited:
            server.version += 1
        before = server.seen()
        server.cut = True
        with pytest.raises(Unreachable):
            await writer.write(OWNER, {"ready": "0/1"}, before)
        server.cut = False
        assert await writer.write(OWNER, {"ready": "1/1"}, before)
        assert server.status == {"ready": "1/1"}
        assert not await writer.write(OWNER, {"ready": "1/1"}, before)

    asyncio.run(main())


def test_a_status_is_written_again_after_the_data_of_the_cluster_were_restored() -> None:
    """Versions have gone back, so what is seen from now on looks older than our own write."""

    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        await writer.write(OWNER, {"ready": "1/1"}, server.seen())
        server.status, server.version = {"ready": "0/1"}, 2
        writer.restored(OWNER.uid)
        assert await writer.write(OWNER, {"ready": "1/1"}, server.seen()) == 3
        assert server.status == {"ready": "1/1"}
        assert not await writer.write(OWNER, {"ready": "1/1"}, server.seen())

    asyncio.run(main())


def test_a_write_says_which_version_has_the_status() -> None:
    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        before = server.seen()
        assert await writer.write(OWNER, {"ready": "1/1"}, before) == 6
        assert not await writer.write(OWNER, {"ready": "1/1"}, before)

    asyncio.run(main())
