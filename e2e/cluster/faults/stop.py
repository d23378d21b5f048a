"""The end of a client between two of its writes, without having to hit the moment: the proxy lets so many through and then none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from cluster.faults.calls import Call, Where


class Stop:
    """Wait for it, end and restart the client, then release it; in a `with` it is released at the end."""

    def __init__(self, writes: int, where: Where, *, answered: bool, then: Callable[[], object]) -> None:
        self._left = writes
        self._where = where
        self._then = then
        self.answered = answered
        """Whether the client hears of its last write."""
        self.released = False
        self.last: Call | None = None
        """The write after which it stopped."""
        self._done = threading.Event()
        if writes == 0:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether the last write was done within that time. Some paths have fewer writes than are asked for."""
        return self._done.wait(seconds)

    def release(self) -> None:
        """Let everything through again."""
        self.released = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def admits(self, call: Call) -> bool:
        """Counts; for the proxy's thread, like the two below."""
        if self.released:
            return True
        if self._left == 0:
            return False
        if call.is_write and self._where.matches(call):
            self._left -= 1
            self.last = call if self._left == 0 else None
        return True

    def is_last(self, call: Call) -> bool:
        """Whether it is the last that is let through."""
        return call is self.last

    def done(self, call: Call) -> None:
        """The server has answered this call, and the client has heard what it is to hear."""
        if call is self.last and not self.released:
            self._then()
            self._done.set()
