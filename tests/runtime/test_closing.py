"""Engines that close connections after each answer: what they are told, and what a client of theirs sees."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll_runtime import closing


async def answered(
    scope: dict[str, Any], *headers: tuple[bytes, bytes], parts: int = 2, read: int = 2
) -> list[dict[str, Any]]:
    """What the server is sent where the application answers with these headers, once it has read so many parts of a request."""
    sent: list[dict[str, Any]] = []
    left = iter(range(parts - 1, -1, -1))

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        for _ in range(read):
            await receive()
        await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"...", "more_body": bool(next(left))}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    await closing.Closing(application)(scope, receive, send)
    return sent


HTTP = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/completions"}
LENGTH = (b"content-length", b"6")


def test_an_answer_of_the_model_says_that_its_connection_closes_and_is_the_same_otherwise():
    start, *body = asyncio.run(answered(HTTP, LENGTH))
    assert start == {
        "type": "http.response.start",
        "status": 200,
        "headers": [LENGTH, (b"connection", b"close")],
    }
    assert [one["body"] for one in body] == [b"one", b"two"]


@pytest.mark.parametrize("read", [0, 1])
def test_a_request_that_is_refused_before_it_is_read_keeps_its_connection(read):
    """A server that closes while the client still sends resets the connection, and the client never reads that its key is wrong."""
    start, *_ = asyncio.run(answered(HTTP, LENGTH, read=read))
    assert start["headers"] == [LENGTH]


def test_what_the_application_itself_says_of_the_connection_is_said_once():
    start, *_ = asyncio.run(answered(HTTP, (b"Connection", b"keep-alive"), LENGTH))
    assert start["headers"] == [LENGTH, (b"connection", b"close")]


@pytest.mark.parametrize(
    "scope",
    [
        {**HTTP, "method": "GET", "path": "/metrics"},
        {**HTTP, "http_version": "2"},
        {"type": "websocket", "http_version": "1.1", "path": "/v1/realtime"},
        {"type": "lifespan"},
    ],
    ids=["a scrape", "HTTP/2 has no such header", "a websocket", "the start of the server"],
)
def test_what_means_this_replica_or_has_no_such_header_is_left_alone(scope):
    start, *_ = asyncio.run(answered(scope, LENGTH))
    assert start["headers"] == [LENGTH]


@pytest.mark.parametrize(
    "argv",
    [
        ("vllm", "serve", "m", "--port", "8000"),
        ("/opt/engine/bin/vllm", "serve", "m"),
        ("python3", "-c", "fixed lines", "--first", "2", "ray", "start", "--then", "vllm", "serve", "m"),
        ("python3", "-m", "vllm.entrypoints.cli.main", "serve", "m"),
        ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"),
    ],
)
def test_each_way_to_start_vllms_server_is_told_behind_its_own_words(argv):
    words, environment = closing.told(argv, {"HOME": "/tmp"})
    assert words == (*argv, "--middleware", "plimsoll_runtime.closing.Closing")
    assert environment["HOME"] == "/tmp"


@pytest.mark.parametrize("argv", [("sleep", "600"), ("python3", "server.py"), ("vllm", "bench"), ("serve",)])
def test_another_program_in_its_place_is_told_nothing(argv):
    assert closing.told(argv, {"HOME": "/tmp"}) == (argv, {"HOME": "/tmp"})


@pytest.mark.parametrize(("said", "told"), [("1", False), ("0", True), ("", True)])
def test_a_front_end_that_is_no_python_is_told_nothing_as_it_ends_at_a_middleware(said, told):
    words, _ = closing.told(("vllm", "serve", "m"), {"VLLM_USE_RUST_FRONTEND": said})
    assert (words[-2:] == closing.WORDS) is told


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("#!/opt/venv/bin/python3.12", True),
        ("#!/opt/venv/bin/python3.12 -I", False),
        ("#!/usr/bin/env -S python3 -s -sE", False),
        ("#!/opt/venv/bin/python -s", True),
        ("#!/bin/sh", True),
    ],
)
def test_an_engine_whose_python_takes_no_variables_is_told_nothing_as_it_would_not_find_it(
    tmp_path, first, told
):
    program = tmp_path / "vllm"
    program.write_text(f"{first}\nimport sys\n")
    program.chmod(0o755)
    for word in ("vllm", str(program)):
        words, _ = closing.told((word, "serve", "m"), {"PATH": str(tmp_path)})
        assert (words[-2:] == closing.WORDS) is told


def test_the_engines_python_finds_the_middleware_in_the_supervisors_own_file(packed: Path, tmp_path: Path):
    """Behind what the image has on its path already, and without any other package."""
    asked = f"import sys; sys.path.insert(0, {str(packed)!r}); from plimsoll_runtime import closing; "
    asked += "print(closing.told(('vllm', 'serve', 'm'), {'PYTHONPATH': '/theirs'})[1]['PYTHONPATH'])"
    path = subprocess.check_output([sys.executable, "-I", "-S", "-c", asked], text=True, cwd=tmp_path).strip()
    assert path == f"/theirs:{packed}"
    loads = "from plimsoll_runtime.closing import Closing; print(Closing.__name__)"
    found = subprocess.check_output(
        [sys.executable, "-S", "-c", loads], text=True, cwd=tmp_path, env={"PYTHONPATH": path}
    )
    assert found == "Closing\n"
