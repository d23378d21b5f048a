"""Times as the API writes them, and as seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str | None) -> float:
    """Seconds since the epoch; 0 where there is no time."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def micro_time(epoch: float) -> str:
    """A time with microseconds, as Leases and Events have it."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
