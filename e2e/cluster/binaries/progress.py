"""What takes minutes is told while it happens: on a terminal in one line that counts, elsewhere in a line a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TextIO

QUIET_SECONDS: Final = 60.0
"""Between two lines of a log, so that it is short and yet shows life."""


@dataclass(slots=True)
class Progress:
    """Lines on a stream."""

    stream: TextIO
    _live: bool = field(init=False)

    def __post_init__(self) -> None:
        self._live = self.stream.isatty()

    def say(self, text: str) -> None:
        """One line."""
        self.stream.write(text + "\n")
        self.stream.flush()

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Something that lasts: its elapsed time is shown until it ends, well or not."""
        started = time.monotonic()
        done = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, started, done), daemon=True)
        if not self._live:
            self.say(f"{text} ...")
        ticker.start()
        outcome = "failed after"
        try:
            yield
            outcome = "done in"
        finally:
            done.set()
            ticker.join()
            start = "\r\x1b[K" if self._live else ""
            self.say(f"{start}{text}: {outcome} {span(time.monotonic() - started)}")

    def _tick(self, text: str, started: float, done: threading.Event) -> None:
        while not done.wait(1.0 if self._live else QUIET_SECONDS):
            elapsed = span(time.monotonic() - started)
            if self._live:
                self.stream.write(f"\r\x1b[K{text} ... {elapsed}")
                self.stream.flush()
            else:
                self.say(f"{text} ... {elapsed}")


def span(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
