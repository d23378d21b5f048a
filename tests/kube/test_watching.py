"""A stream that says nothing: where the server is gone that is a problem, where it has nothing to say it is none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.kube.credentials import Access
from plimsoll.kube.door import SILENCE_SECONDS, Door, Object, Page
from plimsoll.kube.errors import KubeError, Silent, Unreachable
from plimsoll.kube.kinds import EVENT
from plimsoll.kube.pace import Pace
from plimsoll.kube.transport import Request, Transport
from plimsoll.kube.watchers import Watchers
from tests.kube import virtual

QUIET_MINUTES = 10


class Quiet:
    """A door to a server that lists nothing and whose watches say nothing until they are given up; lists take their time."""

    def __init__(self) -> None:
        self.gone = False
        self.opened = 0

    async def pages(self, path: str, **_: Any) -> AsyncGenerator[Page, None]:
        await asyncio.sleep(1)
        yield Page([], "1")

    async def watch(self, path: str, version: str, **_: Any) -> AsyncGenerator[tuple[str, Object], None]:
        if self.gone:
            raise Unreachable("connection refused")
        self.opened += 1
        yield "OPENED", {}
        await asyncio.sleep(SILENCE_SECONDS)
        raise Silent("nothing was said")


class Nothing:
    """Keeps nothing of what it is told."""

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        pass


def watching(door: Quiet) -> Watchers:
    pace = Pace(now=asyncio.get_running_loop().time, chance=lambda: 0.5)
    watchers = Watchers(cast(Door, door), pace)
    for source in watchers.sources(EVENT):
        watchers.start(source, cast(Any, Nothing()))
    return watchers


def test_a_watch_with_nothing_to_say_is_opened_again_and_told_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        door = Quiet()
        watchers = watching(door)
        for _ in range(60 * QUIET_MINUTES):
            await asyncio.sleep(1)
            assert watchers.problems == {}
        assert door.opened >= 60 * QUIET_MINUTES // (SILENCE_SECONDS + 1)
        await watchers.stop()

    with caplog.at_level(logging.WARNING):
        virtual.run(main())
    # asyncio tells there of what an earlier test left.
    assert [one for one in caplog.records if one.name.startswith("plimsoll")] == []


def test_a_server_that_is_gone_behind_a_silent_watch_is_a_problem_at_the_next_one() -> None:
    async def main() -> None:
        door = Quiet()
        watchers = watching(door)
        await asyncio.sleep(10)
        door.gone = True
        await asyncio.sleep(SILENCE_SECONDS)
        assert [str(problem) for problem in watchers.problems.values()] == ["connection refused"]
        await watchers.stop()

    virtual.run(main())


@pytest.mark.parametrize("answers", [True, False])
def test_only_a_stream_that_was_answered_is_silent(answers: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await reader.read()
        writer.close()

    async def main() -> type[KubeError] | None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def authorization() -> None:
            return None

        access = SimpleNamespace(
            server=f"http://127.0.0.1:{port}",
            ssl=False,
            server_name=None,
            proxy=None,
            authorization=authorization,
        )
        transport = Transport(cast(Access, access), Pace())
        await transport.open()
        request = Request(
            verb="watch", method="GET", path="/x", query={}, accept="", seconds=None, silence_seconds=1.0
        )
        try:
            async with aclosing(transport.lines(request)) as lines:
                async for _ in lines:
                    pass
        except KubeError as error:
            return type(error)
        finally:
            await transport.close()
            server.close()
        return None

    assert asyncio.run(main()) is (Silent if answers else Unreachable)
