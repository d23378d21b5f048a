"""Servers of the protocols that models come by, in threads: they check what they are asked, and misbehave where a test says so."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from plimsoll.kube.certificates import made


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    """Decoded."""
    raw: str
    """With the query, as it came."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    """The connection ends after so many bytes of the body."""


class Site:
    """One server at an address of its own."""

    host = "127.0.0.1"
    tls: ssl.SSLContext | None = None

    def __init__(self, host: str | None = None) -> None:
        """`host` is one by which others than this machine come."""
        self.host = host or self.host
        self.asked: list[Asked] = []
        self.hold: threading.Event | None = None
        """Until it is set nobody is answered more than half of what was asked for."""
        self.held_above = 65536
        """Bytes; shorter answers are never held."""
        self.trickles = False
        """While it is held, a byte of the other half comes each second, so that nobody gives up."""
        self.holding = threading.Event()
        self.once: list[Callable[[Asked], Reply | None]] = []
        """Misdeeds, each done to the first request that it answers."""
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.port: int = self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def close(self) -> None:
        if self.hold is not None:
            self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked) -> Reply:
        raise NotImplementedError

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        for misdeed in list(self.once):
            found = misdeed(asked)
            if found is not None:
                with suppress(ValueError):  # another request was faster
                    self.once.remove(misdeed)
                    return replace(self.answer(asked), cut=found.cut) if found.cut is not None else found
        return self.answer(asked)

    def bytes_sent(self) -> int:
        return self._server.sent


def certified(folder: Path, host: str) -> tuple[ssl.SSLContext, Path]:
    """For a server of that name, and the file of the authority that says so."""
    pair, authority = made([host], datetime.now(UTC))  # noqa: TID251 - certificates are checked by the clock
    both, one = folder / "pair.pem", folder / "ca.pem"
    both.write_text(pair.certificate + pair.key)
    one.write_text(authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, one


def ranged(asked: Asked, content: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    told = dict(headers or {})
    wanted = asked.headers.get("range")
    if wanted is None:
        return Reply(200, content, told)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
    if start >= len(content):
        return Reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    told["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
    return Reply(206, content[start : end + 1], told)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 32

    def __init__(self, site: Site) -> None:
        self.site, self.sent, self.counting = site, 0, threading.Lock()
        super().__init__((site.host, 0), _Handler)
        if site.tls is not None:
            self.socket = site.tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is nobody's error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Server

    def _do(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        asked = Asked(
            method=self.command,
            path=unquote(parts.path),
            raw=self.path,
            query={name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()},
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        reply = self.server.site.reply(asked)
        self.close_connection = True
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        body = reply.body if reply.cut is None else reply.body[: reply.cut]
        hold = self.server.site.hold
        if hold is not None and len(body) > self.server.site.held_above:
            self._send(body[: len(body) // 2])
            self.server.site.holding.set()
            body = body[len(body) // 2 :]
            if self.server.site.trickles:
                while body and not hold.wait(1.0):
                    self._send(body[:1])
                    body = body[1:]
            else:
                hold.wait(60)
        self._send(body)

    def _send(self, body: bytes) -> None:
        self.wfile.write(body)
        self.wfile.flush()
        with self.server.counting:
            self.server.sent += len(body)

    do_GET = do_HEAD = do_POST = do_CONNECT = _do  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Tests are quiet."""


def cut_once(where: str, after: int, method: str = "GET") -> Callable[[Asked], Reply | None]:
    """Marks a misdeed for `Site.once`: the site that has it answers, and stops early."""

    def misdeed(asked: Asked) -> Reply | None:
        return Reply(cut=after) if where in asked.path and asked.method == method else None

    return misdeed


def status_once(
    where: str, status: int, headers: Mapping[str, str] | None = None
) -> Callable[[Asked], Reply | None]:
    def misdeed(asked: Asked) -> Reply | None:
        return Reply(status, b"{}", dict(headers or {})) if where in asked.path else None

    return misdeed
