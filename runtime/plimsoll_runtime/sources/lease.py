"""One of those that share a volume fetches, the others wait. What holds the place is a file that its owner writes again and again.

Locks of the system are not enough: on network file systems they may hold within one node only. So an owner counts as gone when its file
has not changed for a while by the clock of whoever waits, and sooner where it ran on this very node and its lock is free. Should two
owners meet all the same, they write the same bytes: a fetch is done twice, and nothing is broken.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

BEAT_SECONDS = 5.0
GONE_SECONDS = 45.0
"""Nine beats; the attributes that clients of network file systems keep are read anew with each look."""


class Owner(NamedTuple):
    """Who holds the lease, as the lease's file says."""

    text: str
    node: str = ""
    host: str = ""
    done: int | None = None
    of: int | None = None


class Lease:
    def __init__(self, file: Path, gone: float = GONE_SECONDS, beat: float = BEAT_SECONDS) -> None:
        self._file, self._gone, self._beat = file, gone, beat
        self._own = uuid.uuid4().hex
        self._number: int | None = None
        self._seen: str | None = None
        self._since: float | None = None
        self._lock = threading.Lock()
        self._count, self._done, self._of = 0, 0, 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> bool:
        """Takes the lease if nobody has it; false while somebody else does. Raises OSError where it may not be written."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        number = self._made()
        if number is None and self._is_gone() and self._put_away():
            number = self._made()
        if number is None:
            return False
        self._number = number
        with contextlib.suppress(OSError):  # a file system without them
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._write()
        self._thread = threading.Thread(target=self._live, name="lease", daemon=True)
        self._thread.start()
        return True

    def owner(self) -> Owner | None:
        """Who has the lease; None where nobody does. Raises OSError where that cannot be read now."""
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        return owner_of(text)

    def tells(self, done: int, of: int) -> None:
        """Tells those who wait how far the fetch is, with the next beat."""
        self._done, self._of = done, of

    def give(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._number is None:
                return
            with contextlib.suppress(OSError):
                if os.fstat(self._number).st_ino == self._file.stat().st_ino:
                    self._file.unlink()
            os.close(self._number)
            self._number = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give()

    def _live(self) -> None:
        while not self._ended.wait(self._beat):
            with contextlib.suppress(OSError):
                self._write()

    def _write(self) -> None:
        with self._lock:
            if self._number is None:
                return
            self._count += 1
            body = {"owner": self._own, "node": node(), "host": socket.gethostname(), "beat": self._count}
            text = json.dumps({**body, "done": self._done, "of": self._of}).encode()
            os.pwrite(self._number, text + b" " * max(0, 512 - len(text)), 0)
            os.fsync(self._number)

    def _made(self) -> int | None:
        """The lease's file, newly made; None where there is one."""
        try:
            return os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return None

    def _is_gone(self) -> bool:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        try:
            owner = self.owner()
        except OSError:  # that is no news of its owner; `_put_away` tells what lasts
            return now - self._since > self._gone
        if owner is None:
            return True
        if owner.text != self._seen:
            self._seen, self._since = owner.text, now
        return now - self._since > self._gone or (owner.node == node() != "" and self._is_free())

    def _is_free(self) -> bool:
        """Whether its owner is gone, as only the node on which it was taken can tell: the system frees a lock when its process ends."""
        try:
            number = os.open(self._file, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(number)
        return True

    def _put_away(self) -> bool:
        """Takes away the file of an owner who is gone. Of several who try, one succeeds; a file that turns out to be somebody else's is put back."""
        aside = self._file.with_name(f"{self._file.name}.{self._own}")
        try:
            self._file.rename(aside)
        except FileNotFoundError:
            return True  # somebody else was first
        try:
            text = aside.read_text(encoding="utf-8", errors="replace")
            if text != self._seen:
                with contextlib.suppress(OSError):
                    os.link(aside, self._file)
                return False
            return True
        finally:
            with contextlib.suppress(OSError):
                aside.unlink()


def owner_of(text: str) -> Owner:
    """The owner that a lease's text names. A file that was just made is still empty, and then names nobody."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        body = {}
    if not isinstance(body, dict):
        body = {}
    numbers = [body.get(name) if isinstance(body.get(name), int) else None for name in ("done", "of")]
    return Owner(text, str(body.get("node", "")), str(body.get("host", "")), numbers[0], numbers[1])


def node() -> str:
    """What tells this boot of this machine from any other; empty where the kernel does not say it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
