"""Spans of time that several packages use, and moments as sentences have them."""

from datetime import UTC, datetime
from typing import Final

DAY_S: Final = 86_400
MINUTE: Final = "%Y-%m-%d %H:%M UTC"


def minute(at: float) -> str:
    """A moment in a sentence. People compare it with logs and with each other, so it is of no zone of theirs."""
    return datetime.fromtimestamp(at, UTC).strftime(MINUTE)
