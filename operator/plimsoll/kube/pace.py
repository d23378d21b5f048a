"""Clock, sleep and chance, handed to everything in this package that waits, so that tests need not wait."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


def uptime() -> float:
    """A clock in seconds that also runs while the machine sleeps, where the system has one, as a Lease runs out meanwhile."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True)
class Pace:
    now: Callable[[], float] = uptime
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    """Between 0 and 1."""

    def backoff(self, failures: int, *, first: float = 0.5, most: float = 30.0) -> float:
        """Seconds before the next attempt: doubled each time, and spread by chance, so that not all come back at once."""
        return min(most, first * 2.0 ** min(max(failures - 1, 0), 16)) * (0.5 + self.chance() / 2)
