"""Between a client and a real server: passes on what is asked and what is answered, notes it, and misbehaves where a test says so."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Final

from tests.runtime.sites import Asked, Reply, Site

PATIENCE_SECONDS: Final = 120.0
_OWN: Final = ("connection", "transfer-encoding", "keep-alive")
"""Headers of a connection, and not of what goes over it."""


class Front(Site):
    """Its `once` holds misdeeds, each done to the first request that it is for."""

    def __init__(self, port: int) -> None:
        self._behind = port
        super().__init__()

    def answer(self, asked: Asked) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._behind, timeout=PATIENCE_SECONDS)
        with closing(connection):
            connection.request(asked.method, asked.raw, asked.body, dict(asked.headers))
            answer = connection.getresponse()
            body = answer.read()
        told = {name.title(): value for name, value in answer.getheaders() if name.lower() not in _OWN}
        return Reply(answer.status, body, told)
