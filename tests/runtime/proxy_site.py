"""A proxy that bytes really go through: it alone knows where the names are, and asks for credentials where it has some."""

from __future__ import annotations

import base64
import select
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class ProxySite:
    def __init__(self, known: Mapping[str, int], credentials: str = "") -> None:
        """Ports of this machine by name."""
        self.known, self.credentials = known, credentials
        self.asked: list[str] = []
        """Method and target of each request, as they came."""
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def lets(self, told: str | None) -> bool:
        wanted = "Basic " + base64.b64encode(self.credentials.encode()).decode()
        return not self.credentials or told == wanted


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, site: ProxySite) -> None:
        self.site = site
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is nobody's error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        target = parts._replace(scheme="", netloc="").geturl()
        kept = [f"{name}: {value}" for name, value in self.headers.items() if not name.startswith("Proxy-")]
        self._pass(parts.netloc, "\r\n".join([f"GET {target} HTTP/1.1", *kept, "", ""]).encode())

    def do_CONNECT(self) -> None:
        self._pass(self.path.removesuffix(":443"), b"")

    def _pass(self, name: str, first: bytes) -> None:
        site = self.server.site
        site.asked.append(f"{self.command} {self.path}")
        self.close_connection = True
        port = site.known.get(name)
        if not site.lets(self.headers.get("Proxy-Authorization")) or port is None:
            self.send_response(502 if port is None else 407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        with socket.create_connection(("127.0.0.1", port)) as other:
            if first:
                other.sendall(first)
            else:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _carry(self.connection, other)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Tests are quiet."""


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Until either ends."""
    across = {one: other, other: one}
    with suppress(OSError):
        while ready := select.select(list(across), [], [], 60)[0]:
            for end in ready:
                piece = end.recv(65536)
                if not piece:
                    return
                across[end].sendall(piece)
