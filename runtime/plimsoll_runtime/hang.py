"""Finds out whether an engine hangs that says it is healthy, as a function of times and readings.

An engine's /health answers even while its workers wait for one another for ever. Only counters that move prove progress.
"""

from __future__ import annotations

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.readings import Reading


class Hang:
    def __init__(self, limit: float) -> None:
        """`limit`: seconds without progress that count as a hang; 0 for never."""
        self._limit = limit
        self._moved: float | None = None
        self._since: float | None = None
        self._silent: float | None = None

    def take(self, now: float, reading: Reading | None) -> Failure | None:
        if self._limit <= 0:
            return None
        if reading is None:
            if self._silent is None:
                self._silent = now
            if now - self._silent < self._limit:
                return None
            return Failure(
                "Hang",
                f"the engine runs and has not answered /metrics for {self._limit:.0f} seconds",
                "it is started again; if that repeats, report it with the lines around it: kubectl logs --previous",
            )
        self._silent = None
        # If an engine does not count its steps, or has nothing to do, it cannot be told whether it hangs.
        if reading.moved is None or not reading.running or reading.moved != self._moved:
            self._moved, self._since = reading.moved, now
            return None
        if self._since is None or now - self._since < self._limit:
            return None
        return Failure(
            "Hang",
            f"no token has moved for {self._limit:.0f} seconds, and requests run: {reading.running}",
            "it is started again; if that repeats, look for a stuck worker or collective: kubectl logs --previous",
        )
