"""What the supervisor says itself: a line on standard error for people who read the log, and last words for the kubelet."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from plimsoll_runtime.failure import Failure, termination_message


def tell(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"plimsoll-runtime: {text}\n".encode())


def leave(file: Path, failure: Failure) -> None:
    """Where the kubelet looks for the reason of a container's end."""
    try:
        file.write_text(termination_message(failure), encoding="utf-8")
    except OSError as error:
        tell(f"{file} cannot be written: {error.strerror or error}")
