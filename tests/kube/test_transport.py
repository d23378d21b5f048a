"""What is left of a call when it is over, and what an answer that cannot be read is taken for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from plimsoll.kube.credentials import Access, configuration
from plimsoll.kube.door import Door
from plimsoll.kube.errors import Refused, Unreachable
from plimsoll.kube.pace import Pace
from tests.kube.api_server import kubeconfig

PART = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000


@pytest.fixture(autouse=True)
def _nobody_looks_for_garbage() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def cuts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half an answer."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(PART)
    await writer.drain()
    writer.close()


def broken() -> list[aiohttp.StreamReader]:
    """Streams that have an error, and are not gone. By their very type: other tests' objects may say of themselves what they like."""
    return [one for one in gc.get_objects() if type(one) is aiohttp.StreamReader and one.exception()]


@pytest.mark.parametrize("watches", [False, True], ids=["a call", "a watch"])
def test_an_answer_that_was_cut_off_is_held_by_nobody(tmp_path: Path, watches: bool) -> None:
    async def ask(door: Door) -> None:
        if not watches:
            await door.get("/a")
        async for _ in door.watch("/a", "1"):
            pass

    async def main() -> None:
        server = await asyncio.start_server(cuts, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with kubeconfig(tmp_path, address):
            pace = Pace(chance=lambda: 0.0)
            async with Door(Access(lambda: configuration(None, None), pace), pace=pace) as door:
                with pytest.raises(Unreachable):
                    await ask(door)
        server.close()

    before = broken()
    asyncio.run(main())
    assert [one for one in broken() if one not in before] == []


@pytest.mark.parametrize(("status", "error"), [(200, Unreachable), (500, Refused)])
def test_an_answer_nested_too_deep_is_one_that_cannot_be_read(
    tmp_path: Path, status: int, error: type[Exception]
) -> None:
    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d So\r\nContent-Length: 100000\r\n\r\n" % status + b"[" * 100_000)
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answers, "127.0.0.1", 0)
        with kubeconfig(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
            pace = Pace(chance=lambda: 0.0)
            async with Door(Access(lambda: configuration(None, None), pace), pace=pace) as door:
                with pytest.raises(error):
                    await door.get("/a")
        server.close()

    asyncio.run(main())
