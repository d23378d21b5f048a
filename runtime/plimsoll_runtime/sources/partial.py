"""A file that is not all there yet: where its bytes are, kept beside it, so that a fetch that was killed goes on where it was.

What is recorded is on the disk: it is written through before it is noted. Whether it is right, the sum of the whole says.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

SUFFIX = ".plimsoll"


class Partial:
    """A file that is not whole yet, and a note beside it of what is there. Several threads may write at once, each its own span."""

    def __init__(self, target: Path, size: int) -> None:
        self.target, self.size = target, size
        self.file = target.with_name(target.name + SUFFIX)
        self._notes = target.with_name(target.name + SUFFIX + "-done")
        self._lock = threading.Lock()
        target.parent.mkdir(parents=True, exist_ok=True)
        self._written = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._noted = os.open(self._notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except BaseException:
            os.close(self._written)
            raise

    def gaps(self) -> list[tuple[int, int]]:
        """The spans that are missing, in order."""
        found, at = [], 0
        for start, end in sorted(self._spans()):
            if start > at:
                found.append((at, start))
            at = max(at, end)
        if at < self.size:
            found.append((at, self.size))
        return found

    def _spans(self) -> list[tuple[int, int]]:
        """The spans that are noted as written. A line that was cut short, or that names more bytes than the file holds, counts for nothing."""
        there = os.fstat(self._written).st_size
        spans = []
        try:
            notes = self._notes.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:  # another owner of the place is done with it
            return []
        for line in notes.splitlines():
            words = line.split()
            if len(words) == 3 and words[2] == "." and words[0].isdecimal() and words[1].isdecimal():
                start, end = int(words[0]), int(words[1])
                if start < end <= min(there, self.size):
                    spans.append((start, end))
        return spans

    def write(self, piece: bytes, at: int) -> None:
        view = memoryview(piece)
        while view:
            count = os.pwrite(self._written, view, at)
            view, at = view[count:], at + count

    def note(self, start: int, end: int) -> None:
        if end <= start:
            return
        os.fsync(self._written)
        with self._lock:
            os.write(self._noted, f"{start} {end} .\n".encode())

    def begin_anew(self) -> None:
        os.ftruncate(self._noted, 0)
        os.ftruncate(self._written, 0)

    def done(self) -> None:
        """Gives the whole file its own name. Where somebody else was faster, their file stays."""
        os.fsync(self._written)
        with contextlib.suppress(FileNotFoundError):
            self.file.replace(self.target)
        with contextlib.suppress(FileNotFoundError):
            self._notes.unlink()
        if not self.target.is_file():
            raise FileNotFoundError(self.target)

    def close(self) -> None:
        for number in (self._written, self._noted):
            with contextlib.suppress(OSError):
                os.close(number)
