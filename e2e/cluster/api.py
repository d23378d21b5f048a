"""A small client of the API server: JSON in, JSON out, by path. One of its own, so that tests see exactly what was sent and
answered, and thousands of nodes are made over a few kept connections.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

Object = dict[str, Any]
CONNECTIONS: Final = 16
TIMEOUT_SECONDS: Final = 60.0
Unanswered: Final = urllib3.exceptions.HTTPError
"""No answer came, or not in time, as on a busy machine."""


class ApiError(RuntimeError):
    """A refusal, in the words of the API server."""

    def __init__(self, status: int, body: Object) -> None:
        self.status = status
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", body))
        self.causes: tuple[Mapping[str, str], ...] = tuple((body.get("details") or {}).get("causes") or ())
        super().__init__(f"{status} {self.reason}: {self.message}")


@dataclass(slots=True, kw_only=True)
class Api:
    """Requests as one user."""

    server: str
    token: str
    ca: Path
    _pool: urllib3.PoolManager = field(init=False)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, ca_certs=str(self.ca), retries=False)

    def close(self) -> None:
        """Let go of the kept connections."""
        self._pool.clear()

    def get(self, path: str, **query: str) -> Object:
        """One object, or a list."""
        return self.request("GET", path, query=query)

    def create(self, path: str, body: Object, **query: str) -> Object:
        """A new object in a collection."""
        return self.request("POST", path, body, query=query)

    def apply(
        self, path: str, body: Object, *, manager: str = "e2e", force: bool = False, **query: str
    ) -> Object:
        """Server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower(), **query}
        return self.request("PATCH", path, body, query=query, kind="application/apply-patch+yaml")

    def patch(self, path: str, body: Object, **query: str) -> Object:
        """Merge."""
        return self.request("PATCH", path, body, query=query, kind="application/merge-patch+json")

    def delete(self, path: str) -> Object:
        """One object, or a collection."""
        return self.request("DELETE", path)

    def items(self, path: str, **query: str) -> list[Object]:
        """A list's objects."""
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def is_ready(self) -> bool:
        """Whether the server answers and calls itself ready."""
        try:
            return self._send("GET", "/readyz").status == 200
        except Unanswered:
            return False

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> Object:
        """Any request; ApiError for what the server refuses."""
        response = self._send(method, path, body, query=query, kind=kind)
        try:
            answer: Object = json.loads(response.data)
        except ValueError:
            answer = {"message": response.data.decode(errors="replace")}
        if response.status >= 300:
            raise ApiError(response.status, answer)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self.server}{path}"
        if query:
            url += ("&" if "?" in path else "?") + urlencode(query)
        return self._pool.request(
            method,
            url,
            body=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": kind,
                "Accept": "application/json",
            },
            timeout=TIMEOUT_SECONDS,
        )
