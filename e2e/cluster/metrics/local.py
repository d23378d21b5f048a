"""A small HTTP server inside the test's own process, on a port of this machine, for the time of a `with`."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

ANYWHERE: Final = ("127.0.0.1", 0)
"""At a port that is free."""


class LocalServer:
    """Answers by `handler`; each request has a thread of its own, so that a slow answer holds up no other."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], at: tuple[str, int] = ANYWHERE) -> None:
        self._server = _Quiet(at, handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """Connections are kept, and nothing is logged."""

    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: bytes, kind: str = "text/plain; version=0.0.4") -> None:
        """One whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True  # one that is slow on purpose is not waited for
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, as a scraper that ran out of patience does."""
