"""Time and chance, handed to everything here that waits, so that tests wait for nothing."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


def uptime() -> float:
    """Seconds that also pass while the machine sleeps, where the system counts them: a Lease runs out meanwhile."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True)
class Pace:
    now: Callable[[], float] = uptime
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    """Between 0 and 1."""

    def backoff(self, failures: int, *, first: float = 0.5, most: float = 30.0) -> float:
        """Seconds before the next attempt: doubled each time, and spread so that many do not come back at once."""
        return min(most, first * 2.0 ** min(max(failures - 1, 0), 16)) * (0.5 + self.chance() / 2)
