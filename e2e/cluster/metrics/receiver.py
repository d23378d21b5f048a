"""Where Alertmanager's messages go in a test: kept as they came, with what was said to be allowed to send them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.metrics.config import Webhook
from cluster.metrics.local import LocalServer, QuietHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One POST."""

    authorization: str
    body: dict[str, Any]
    at: float
    """By the monotonic clock."""

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """Each with status, labels and annotations."""
        found: list[dict[str, Any]] = self.body["alerts"]
        return found


class Receiver(LocalServer):
    """Use it with `with`; `webhook()` is what Alertmanager is told."""

    def __init__(self, *, token: str = "") -> None:
        self._token = token
        self._messages: list[Message] = []
        self._news = threading.Condition()
        self.status = 200
        """What messages are answered with."""
        receiver = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name is the base's
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver._keep(self.headers.get("Authorization", ""), json.loads(body))
                self.answer(receiver.status, b"")

        super().__init__(Handler)

    def webhook(self, **settings: Any) -> Webhook:
        """With this receiver's address and token."""
        return Webhook(url=f"http://{self.address}/alerts", token=self._token, **settings)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All so far."""
        with self._news:
            return tuple(self._messages)

    def wait_for(self, holds: Callable[[Message], bool], seconds: float = 90.0) -> Message:
        """The first message of which it holds, seen already or not yet."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._news:
            while True:
                for message in self._messages[seen:]:
                    if holds(message):
                        return message
                seen = len(self._messages)
                if not self._news.wait(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(
                        f"no such message in {seconds:.0f} s; those that came: {self._messages}"
                    )

    def _keep(self, authorization: str, body: dict[str, Any]) -> None:
        with self._news:
            self._messages.append(Message(authorization=authorization, body=body, at=time.monotonic()))
            self._news.notify_all()
