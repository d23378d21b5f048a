"""An event loop whose clock jumps to the next timer once nobody has anything to do: delays are exact on any machine.

Sockets work as long as both ends live in this loop and are local ones of the file system, where what one end writes the
other can read at once.
"""

import asyncio
import selectors
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now


def virtually(work: Awaitable[T]) -> T:
    """Run to the end in virtual time."""

    async def awaited() -> T:
        return await work

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(awaited())
