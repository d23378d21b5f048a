"""What the operator's log says, and what it never does."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path

import pytest

from plimsoll.__main__ import JsonLines
from plimsoll.handlers.life import Life
from plimsoll.handlers.options import Options
from tests.kube.api_server import TOKEN, kubeconfig

PATIENCE_SECONDS = 600.0
ANSWERS = (
    b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nno JSON!",
    b"",
)


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("plimsoll", logging.WARNING, "a.py", 1, message, args, None)
    made.__dict__.update(extra)
    return made


def test_a_line_is_one_object_that_names_the_deployment() -> None:
    line = JsonLines().format(record("it says\n%s", "no", deployment="team/chat"))
    assert "\n" not in line
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("warning", "it says\nno")
    assert found["deployment"] == "team/chat"


def test_an_error_of_ours_is_in_its_line_whole() -> None:
    error = ValueError("no such thing")
    line = JsonLines().format(record("failed", exc_info=(ValueError, error, None)))
    assert "\n" not in line
    assert "ValueError: no such thing" in json.loads(line)["exception"]


@asynccontextmanager
async def bad() -> AsyncIterator[str]:
    """The address of an API server that answers wrong in one way after another."""
    answers = cycle(ANSWERS)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(next(answers))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def test_whatever_the_api_server_answers_no_line_holds_the_operators_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        async with bad() as address:
            with kubeconfig(tmp_path, address):
                life = Life(Options(port=None, offline=True, lease_namespace="team", identity="a"))
                running = asyncio.create_task(life.run())
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while "cannot be renewed" not in caplog.text and not running.done():
                        await asyncio.sleep(0.05)
                life.stop()
                await running

    asyncio.run(main())
    assert "cannot be renewed" in caplog.text
    assert TOKEN not in "\n".join(map(JsonLines().format, caplog.records))
