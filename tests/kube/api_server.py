"""A small server that answers lists as an API server does: in pages, for the paths it was given, else with a status."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlparse

import yaml

TOKEN = "the-token-of-whoever-asks"


class Api(ThreadingHTTPServer):
    """Lists by path; a path that is a number answers with that status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lists: dict[str, list[dict[str, object]] | int] = {"/api/v1/nodes": [], "/api/v1/pods": []}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.texts: dict[str, str] = {}
        """What is answered word for word, by path."""
        self.objects: dict[str, dict[str, Any]] = {}
        """Single objects by path."""
        self.patched: Callable[[dict[str, Any]], None] = lambda _: None
        """What somebody else does once one of them was patched."""
        self.written: list[tuple[str, dict[str, object]]] = []
        self.write_status = 200
        self.away: list[int] = []
        """What becomes of each of the next requests about single objects: 200 is as ever, 0 hangs up, else this status."""


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        url = urlparse(self.path)
        query = parse_qs(url.query)
        self.server.asked.append(self.path)
        self.server.tokens.add(self.headers.get("Authorization"))
        if url.path in self.server.texts:
            self._send(200, self.server.texts[url.path].encode())
            return
        if url.path in self.server.objects:
            if self._is_away():
                return
            self._answer(200, self.server.objects[url.path])
            return
        found = self.server.lists.get(url.path, 404)
        if isinstance(found, int):
            self._answer(found, {"kind": "Status", "message": "no"})
            return
        start = int(query.get("continue", ["0"])[0])
        size = int(query["limit"][0])
        rest = start + size
        metadata = {"continue": str(rest)} if rest < len(found) else {}
        kind = {"apiVersion": "v1", "kind": "NodeList", "metadata": metadata, "items": found[start:rest]}
        self._answer(200, kind)

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.written.append((self.path, body))
        self._answer(self.server.write_status, body)

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_away():
            return
        self.server.written.append((self.path, body))
        if self.server.write_status == 200:
            self.server.patched(body)
        self._answer(self.server.write_status, body)

    def _is_away(self) -> bool:
        status = self.server.away.pop(0) if self.server.away else 200
        if status == 200:
            return False
        if status:
            self._answer(status, {"kind": "Status", "message": "away"})
        self.close_connection = True
        return True

    def _answer(self, status: int, body: Mapping[str, object]) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[Api]:
    """The server, and a kubeconfig that leads to it."""
    server = Api()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    with kubeconfig(folder, f"http://127.0.0.1:{server.server_address[1]}"):
        yield server
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def kubeconfig(folder: Path, address: str) -> Iterator[None]:
    """The current kubeconfig for as long as it lasts; its one context is `here`."""
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    with patch("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path)):
        yield
