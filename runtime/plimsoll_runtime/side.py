"""The side port, where the supervisor answers the operator, Prometheus and probes, and where the members of a group report."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from plimsoll_runtime.exposition import exposition
from plimsoll_runtime.group import MOST_REPORT, Members, report_of
from plimsoll_runtime.said import FAILED, SERVING, Said

_TIMEOUT = 5.0
JSON_TYPE, TEXT_TYPE = "application/json", "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    status: int
    kind: str
    body: bytes


Asked = Callable[[str], Answer]
Heard = Callable[[bytes, str], Answer]


def answer(said: Said, path: str, now: float) -> Answer:
    where = path.partition("?")[0]
    if where == "/facts":
        return Answer(200, JSON_TYPE, json.dumps(said.facts(now)).encode())
    if where == "/metrics":
        return Answer(200, TEXT_TYPE, exposition(said.facts(now)).encode())
    state = said.state
    if where == "/healthz":  # of the supervisor and what it watches; not of whether requests may come
        return Answer(503 if state == FAILED else 200, TEXT_TYPE, f"{state}\n".encode())
    if where == "/readyz":
        return Answer(200 if state == SERVING else 503, TEXT_TYPE, f"{state}\n".encode())
    return Answer(404, TEXT_TYPE, b"/facts, /metrics, /healthz and /readyz are here\n")


def heard(said: Said, members: Members | None, text: bytes, sender: str, now: float) -> Answer:
    """A member of this leader's group reports."""
    report = report_of(text)
    if members is None or report is None:
        return Answer(400, TEXT_TYPE, b"no report of a member, or nobody leads here\n")
    failure = said.failure
    # Who belongs to the leader before this one is about to end, and would end the new group too if it were let in.
    ours = report.leader in ("", said.run)
    # A member's engine waits for its leader's only so long (`ray start` 40 s), and a model may take longer to come.
    body = {
        "accepted": ours and said.begun and members.take(report, sender, now),
        "run": said.run,
        "serves": said.state == SERVING,
        "failure": None if failure is None else failure.told(),
    }
    return Answer(200, JSON_TYPE, json.dumps(body).encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], family: int, asked: Asked, told: Heard) -> None:
        self.address_family = family
        self.asked, self.told = asked, told
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores errors of a connection, as a client that went away is no problem."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT
    server: _Server

    def do_GET(self) -> None:
        self._say(self.server.asked(self.path))

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != "/member" or not length.isdecimal() or int(length) > MOST_REPORT:
            self._say(Answer(404, TEXT_TYPE, b"members report at /member\n"))
            return
        self._say(self.server.told(self.rfile.read(int(length)), self.client_address[0]))

    def _say(self, said: Answer) -> None:
        self.send_response(said.status)
        self.send_header("Content-Type", said.kind)
        self.send_header("Content-Length", str(len(said.body)))
        self.end_headers()
        self.wfile.write(said.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Probes fill no log."""


class Side:
    """Answers from a thread of its own until it is closed; OSError where the port is not to be had."""

    def __init__(self, said: Said, port: int, members: Members | None = None) -> None:
        self._server = _listening(
            port,
            lambda path: answer(said, path, time.monotonic()),
            lambda text, sender: heard(said, members, text, sender, time.monotonic()),
        )
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_TIMEOUT)


def _listening(port: int, asked: Asked, told: Heard) -> _Server:
    """For both kinds of addresses where the machine has both."""
    try:
        return _Server(("::", port), socket.AF_INET6, asked, told)
    except OSError:
        return _Server(("0.0.0.0", port), socket.AF_INET, asked, told)  # noqa: S104 - who asks is another pod
