"""Runs load from a terminal: with a line of progress, and with Ctrl-C, which ends the load and keeps what was measured.

The line is on stderr, and only on a terminal, so that stdout has nothing but the answer.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from plimsoll.cli.drawing import count, short
from plimsoll.cli.errors import BadInput, note
from plimsoll.load.problems import EndpointError, LoadError, Stopped
from plimsoll.load.tally import Tally

T = TypeVar("T")

_FILES: Final = 65_536
_OTHER_FILES: Final = 64


def run_load(work: Callable[[asyncio.Event], Awaitable[T]]) -> T:
    """Runs until done or interrupted. Errors of the endpoint or of the options become an error line."""

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
    except Stopped:
        raise click.Abort from None


def new_salt() -> int:
    """A number that makes the texts of this run different from those of all others. A seed repeats only arrivals and lengths."""
    return secrets.randbits(32)


def connections() -> int:
    """How many requests can be in flight. Each is an open file, so the soft limit of open files is raised as far as possible."""
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
    """The line of progress. Where stderr is no terminal, only the beginning of each step is told, where there are several."""

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

    def tell(self, line: str) -> None:
        """A note, which stays above the line where there is one."""
        if self._live is None:
            note([line])
        else:
            self._live.console.print(f"note: {line}", soft_wrap=True)

    def step(self, name: str) -> None:
        """Begins a step, where there are several."""
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
