"""Times as the API writes them, and as seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str | None) -> float:
    """0 where there is none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def micro_time(epoch: float) -> str:
    """As Leases and Events have it, with microseconds."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
