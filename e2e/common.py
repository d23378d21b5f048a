"""What several test files share: where the repository is, and how to wait without guessing how long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cluster.api import Object, Unanswered

ROOT: Final = Path(__file__).parent.parent
PATIENCE_SECONDS: Final = 180.0
LONG_SECONDS: Final = 600.0
"""For what takes many turns, or minutes by itself: on a busy machine all of it takes many times as long."""


def eventually(holds: Callable[[], bool], patience: float = PATIENCE_SECONDS) -> bool:
    """Whether it holds before patience ends; for what controllers do in their own time. An API server that does not answer is
    asked again; where it never does, that is raised rather than told as something that does not hold."""
    deadline = time.monotonic() + patience
    while True:
        try:
            if holds():
                return True
            if time.monotonic() > deadline:
                return False
        except Unanswered:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """A zombie is not: it holds nothing, and waits for whoever adopted it."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def killed_owner(program: str, ending: signal.Signals) -> Any:
    """What a program that owns processes tells of them before this signal ends it; none of them is alive then."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "e2e")}  # noqa: TID251 - as the tests' own
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=environ, text=True
    ) as owner:
        try:
            assert owner.stdout is not None
            told = json.loads(owner.stdout.readline())
            assert all(alive(pid) for pid in told["pids"])
            owner.send_signal(ending)
            owner.wait(PATIENCE_SECONDS)
        finally:
            owner.kill()
    assert eventually(lambda: not any(alive(pid) for pid in told["pids"]))
    return told


def is_ready(pod: Object) -> bool:
    """Whether requests are sent to it."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
