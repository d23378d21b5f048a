"""Running load from a terminal: a line that says how it goes, and Ctrl-C, which ends the load and keeps what is measured.

The line is on stderr and only on terminals, so that stdout holds the answer and nothing else.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from plimsoll.cli.drawing import count, short
from plimsoll.cli.errors import BadInput, note
from plimsoll.load.problems import EndpointError, LoadError
from plimsoll.load.tally import Tally

T = TypeVar("T")

_FILES: Final = 65_536
_OTHER_FILES: Final = 64


def run_load(work: Callable[[asyncio.Event], Awaitable[T]]) -> T:
    """Run until done or interrupted; what goes wrong with the endpoint or the question ends as an error line."""

    async def main() -> T:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            # A second Ctrl-C ends the program as usual.
            loop.remove_signal_handler(signal.SIGINT)
            stop.set()

        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGINT, interrupted)
        return await work(stop)

    try:
        return asyncio.run(main())
    except (EndpointError, LoadError) as error:
        raise BadInput(str(error)) from None


def new_salt() -> int:
    """Makes the texts of this run its own; what a seed repeats is when requests come and how long they are."""
    return secrets.randbits(32)


def connections() -> int:
    """Requests that can be in flight: each is an open file, and the soft limit of them is raised as far as it goes."""
    if sys.platform == "win32":
        return 500
    import resource  # noqa: PLC0415 - not everywhere

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted - _OTHER_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted - _OTHER_FILES


class Progress:
    """The line while it runs. Where stderr is no terminal, only what is measured next is told, where there are several things."""

    def __init__(self, seconds: float | None, requests: int | None) -> None:
        self._seconds = seconds
        self._requests = requests
        self._step = ""
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        console = Console(stderr=True, highlight=False, emoji=False, markup=False)
        if console.is_terminal:
            self._live = Live(Text("getting acquainted"), console=console, transient=True, auto_refresh=False)
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, name: str) -> None:
        """What is measured now, where there are several things."""
        self._step = f"{name}  "
        if self._live is None:
            note([f"measuring {name}"])

    def __call__(self, tally: Tally, now: float) -> None:
        if self._live is not None:
            self._live.update(
                Text(self._step + self._line(tally, now), no_wrap=True, overflow="ellipsis"), refresh=True
            )

    def _elapsed(self, elapsed: float) -> str:
        if self._seconds is None:
            return f"{elapsed:.0f} s"
        return (
            f"{elapsed:.0f} of {self._seconds:.0f} s"
            if elapsed <= self._seconds
            else "waiting for the last answers"
        )

    def _line(self, tally: Tally, now: float) -> str:
        bad = tally.sent - tally.ok
        parts = [
            self._elapsed(now - tally.started),
            f"{count(tally.sent)} of {count(self._requests)} answered"
            if self._requests
            else f"{count(tally.sent)} answered",
            *([f"{count(bad)} not well"] if bad else []),
            f"{count(tally.in_flight)} in flight",
        ]
        seconds = tally.seconds(now)
        if seconds > 0 and tally.ttft.count:
            parts.append(f"{short(tally.output_tokens / seconds)} tokens/s")
            parts.append(f"TTFT p50 {short(tally.ttft.quantile(0.5) * 1000)} ms")
        if tally.itl.count:
            parts.append(f"ITL p99 {short(tally.itl.quantile(0.99) * 1000)} ms")
        return "  ".join(parts)
