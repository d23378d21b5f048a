"""What goes on beside a test, in a thread of its own, for the time of a `with`."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Final, Self

from cluster.api import ApiError, Unanswered

MISSED: Final = (ApiError, Unanswered, OSError)
"""Of a server that is busy, or of a pod that is just gone or not yet: the next look sees it."""


class Beside:
    """Looks every so often, and does what it finds to do."""

    every_s: float

    def __init__(self) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    def look(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self.every_s):
            with contextlib.suppress(*MISSED):
                self.look()
