"""Passes the engine's output on byte by byte as it comes, and reads it line by line on the way. The last lines are kept.

Reading must never hold the engine up, and lines are read even where nobody takes the output any more.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from plimsoll_runtime.words import tell

MOST_LINES = 2000
MOST_LINE = 2000
"""Characters that are kept of a line, as an engine prints its whole configuration in one line."""
_BREAK = re.compile(rb"[\r\n]+")
_MOST_REST = 1 << 16


class Line(NamedTuple):
    at: float
    text: str


class Log:
    """Follows one pipe in a thread of its own until its end."""

    def __init__(self, source: int, sink: int, take: Callable[[str, float], None]) -> None:
        self._source, self._sink, self._take = source, sink, take
        self._kept: deque[Line] = deque(maxlen=MOST_LINES)
        self._lock = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._follow, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def lines(self) -> list[Line]:
        with self._lock:
            return list(self._kept)

    def finish(self, seconds: float) -> None:
        """Waits until everything is read, but not for a descendant of the engine that still holds the pipe."""
        self._thread.join(seconds)

    def _follow(self) -> None:
        rest = b""
        while chunk := _read(self._source):
            self._pass_on(chunk)
            *whole, rest = _BREAK.split(rest + chunk)
            if len(rest) > _MOST_REST:
                whole, rest = [*whole, rest], b""
            for line in whole:
                self._keep(line)
        self._keep(rest)
        os.close(self._source)

    def _keep(self, raw: bytes) -> None:
        if not raw.strip():
            return
        now, text = time.monotonic(), raw[:_MOST_REST].decode(errors="replace")
        with self._lock:
            self._kept.append(Line(now, text[:MOST_LINE]))
        try:
            self._take(text, now)
        except Exception as error:  # noqa: BLE001 - an engine whose output nobody takes stands still
            tell(f"a line of the engine's log could not be read: {error!r}")

    def _pass_on(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while self._open and view:
            written = _write(self._sink, view)
            # If the output is not taken any more the engine must not end for that.
            self._open = written > 0
            view = view[written:]


def _write(sink: int, view: memoryview) -> int:
    try:
        return os.write(sink, view)
    except OSError:
        return 0


def _read(source: int) -> bytes:
    try:
        return os.read(source, 1 << 16)
    except OSError:
        return b""
