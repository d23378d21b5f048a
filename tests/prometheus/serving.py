"""A server that answers like a Prometheus, or like one that is slow, wrong or gone."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

Answer = Callable[[str], tuple[int, bytes]]


def vector(*rows: tuple[Mapping[str, str], object]) -> list[dict[str, Any]]:
    return [{"metric": dict(labels), "value": [1000.0, str(value)]} for labels, value in rows]


def body(rows: object) -> tuple[int, bytes]:
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


class _Served(ThreadingHTTPServer):
    request_queue_size = 256
    """Who asks for many pages at once is not to wait until the kernel tries again."""


@contextmanager
def server(
    answer: Answer,
    tls: ssl.SSLContext | None = None,
    heard: Callable[[Message], None] = lambda _: None,
    location: str = "",
) -> Iterator[str]:
    """`heard` is told the headers of each question; `location` is where it says to go instead."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            query = parse_qs(form).get("query", [""])[0]
            heard(self.headers)
            self.reply(*answer(query))

        def do_GET(self) -> None:
            self.reply(*answer(self.path))

        def reply(self, status: int, data: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # The caller has gone.

        def log_message(self, *args: object) -> None:
            del args

    served = _Served(("127.0.0.1", 0), Handler)
    if tls is not None:
        served.socket = tls.wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{served.server_address[1]}"
    finally:
        served.shutdown()
        served.server_close()
        thread.join()
