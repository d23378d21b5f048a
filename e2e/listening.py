"""A watch of the API as a test hears it: event by event, in a thread of its own, with silence as something that can be asserted."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import urllib3

from cluster.api import Api
from common import PATIENCE_SECONDS

HTTPError: Final = urllib3.exceptions.HTTPError
SHORT_SECONDS: Final = 1.0


class Listener:
    """Begins with what happens after it was made."""

    def __init__(self, api: Api, path: str) -> None:
        self._http = urllib3.PoolManager(ca_certs=str(api.ca), retries=False)
        version = api.get(path, limit="1")["metadata"]["resourceVersion"]
        self._answer = self._http.request(
            "GET",
            f"{api.server}{path}?watch=true&resourceVersion={version}",
            headers={"Authorization": f"Bearer {api.token}"},
            preload_content=False,
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        rest = b""
        try:
            for piece in self._answer.stream(amt=None):
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    self._events.put(json.loads(line))
        except HTTPError:
            pass
        self._events.put(None)

    def next(self, seconds: float = PATIENCE_SECONDS) -> tuple[str, str] | None:
        """Type and name, or type and code of an error; None when the watch has ended."""
        event = self._events.get(timeout=seconds)
        if event is None:
            return None
        about = event["object"]
        return event["type"], str(about.get("code") or about["metadata"]["name"])

    def hears_nothing(self, seconds: float = 0.5) -> bool:
        try:
            self._events.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def close(self) -> None:
        with suppress(ValueError, RuntimeError):  # it has ended already
            self._answer.shutdown()  # a close would wait for the thread that reads, and that one for the next event
        self._thread.join(SHORT_SECONDS)
        self._answer.close()
        self._http.clear()


@contextmanager
def listening(api: Api, path: str) -> Iterator[Listener]:
    one = Listener(api, path)
    try:
        yield one
    finally:
        one.close()
