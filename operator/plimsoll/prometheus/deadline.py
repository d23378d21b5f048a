"""Connections whose answers come whole within their timeout, or not at all.

A timeout of a socket is one of each read. Whoever sends a byte now and then never passes it, and would keep a thread for as long as they like.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any, Final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class _Timed(io.RawIOBase):
    """What comes over a socket, until its timeout has passed once in all."""

    def __init__(self, source: io.RawIOBase, sock: socket.socket) -> None:
        self._source, self._socket = source, sock
        timeout = sock.gettimeout()
        self._until = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer did not come in time")
            self._socket.settimeout(left)
        return self._source.readinto(buffer)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock))


class _Connection(HTTPConnection):
    response_class = _Answer


class _TlsConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


POOLS: Final = {"http": _Pool, "https": _TlsPool}


class Bounded(HTTPAdapter):
    """Its requests' timeout holds for the whole answer, headers and body together."""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = POOLS
