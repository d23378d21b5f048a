"""What several test files share: where the repository is, and how to wait without guessing how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cluster.api import Object

ROOT: Final = Path(__file__).parent.parent
PATIENCE_SECONDS: Final = 90.0


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds before patience ends; for what controllers do in their own time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    """A zombie is not: it holds nothing, and waits for whoever adopted it."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_ready(pod: Object) -> bool:
    """Whether requests are sent to it."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
