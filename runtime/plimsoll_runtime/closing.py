"""Answers that close their connection, so that a Service chooses a replica for each request and not for each client.

A Service chooses when a client connects. Clients keep connections, so whoever connected to a replica that is busy now stays there, and a new
replica gets nothing until somebody connects anew. A new connection takes a millisecond, and an answer of a model takes seconds.

The engine loads `Closing` into its own process: this module may need nothing but the standard library.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Callable, Final

FLAG: Final = "--middleware"
NAME: Final = "plimsoll_runtime.closing.Closing"
WORDS: Final = (FLAG, NAME)
_SERVERS: Final = (
    ("vllm", "serve"),
    ("vllm.entrypoints.cli.main", "serve"),
    ("-m", "vllm.entrypoints.openai.api_server"),
)
_PATH: Final = "PYTHONPATH"
_NO_PYTHON: Final = "VLLM_USE_RUST_FRONTEND"
"""With this variable the requests are answered by a program of vLLM's that is no Python, and that ends at a middleware."""
_ALONE: Final = re.compile(rb"#!.*python[\d.]*(?: +-\w+)*? +-\w*[IE]")
"""The first line of a program whose Python does not look at variables, so that it would not find the middleware, and end once the model is loaded."""

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


class Closing:
    """Middleware, as ASGI has it: says `connection: close` in answers to what a model is asked. The server then closes the connection after the
    answer's last byte, and the client knows it beforehand, so no request is sent into a connection that closes.

    An answer to a request that was not read to its end, as a refused key is, keeps its connection: if it were closed while the client still
    sends, the client would be told of a broken connection and might never read why."""

    def __init__(self, app: _App) -> None:
        self._app = app

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        # What looks and scrapes keeps its connection: it means this replica. HTTP/2 has no such header.
        asks = scope["type"] == "http" and scope["method"] == "POST"
        if not asks or not str(scope.get("http_version", "1.1")).startswith("1"):
            await self._app(scope, receive, send)
            return

        whole = False

        async def reading() -> _Message:
            nonlocal whole
            message = await receive()
            whole = whole or (message["type"] == "http.request" and not message.get("more_body", False))
            return message

        async def closing(message: _Message) -> None:
            if whole and message["type"] == "http.response.start":
                theirs = [one for one in message.get("headers", ()) if bytes(one[0]).lower() != b"connection"]
                message = {**message, "headers": [*theirs, (b"connection", b"close")]}
            await send(message)

        await self._app(scope, reading, closing)


def told(argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The engine's words and variables with the middleware among them. Python finds it in the file that the supervisor itself came from.
    A program that is not known to be vLLM's server, as a patch may have put in its place, is told nothing, nor is one that cannot load it."""
    if not serves(argv) or _loads_none(argv, environment):
        return argv, environment
    ours = str(Path(__file__).parents[1])
    theirs = environment.get(_PATH)
    path = f"{theirs}:{ours}" if theirs else ours
    return (*argv, *WORDS), {**environment, _PATH: path}


def serves(argv: Sequence[str]) -> bool:
    """Whether these words start vLLM's server."""
    return any((Path(one).name, then) in _SERVERS for one, then in zip(argv, argv[1:]))


def _loads_none(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    if environment.get(_NO_PYTHON, "").strip() not in ("", "0"):
        return True
    word = next(
        (one for one, then in zip(argv, argv[1:]) if then == "serve" and Path(one).name == "vllm"), ""
    )
    program = shutil.which(word, path=environment.get("PATH", ""))
    if program is None:
        return False
    try:
        with Path(program).open("rb") as file:
            return _ALONE.match(file.readline(256)) is not None
    except OSError:
        return False
