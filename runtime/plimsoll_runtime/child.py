"""The engine as a child process: in a session of its own, with its output in one pipe, without a shell. This also does what process 1 has to
do for others: it reaps processes that have lost their parents.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

_SET_CHILD_SUBREAPER = 36
_GENERATIONS = 50


class Child:
    """The engine's process, started by the constructor, which raises OSError where that fails."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.output, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the words are the plan's, and no shell reads them
                argv,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            os.close(self.output)
            raise
        finally:
            os.close(theirs)
        self.pid = self._process.pid
        self.code: int | None = None
        """The exit code in a shell's way: 128 plus the signal's number where a signal killed it."""

    def send(self, number: int) -> None:
        """Sends a signal to the engine's main process, which tells its own workers."""
        if self.code is None:
            os.kill(self.pid, number)  # not buried yet, so the number is still its own

    def kill_all(self) -> None:
        """Kills what is left of its process group. `end_orphans` kills those with groups of their own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def bury(self) -> None:
        """Reaps all children that have ended: our own, and orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.code = shell_code(status)
                self._process.returncode = self.code  # so that nobody else waits for it


def shell_code(status: int) -> int:
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def adopt_orphans() -> None:
    """Makes orphans our children, also where another program is process 1."""
    if os.getpid() == 1:
        return
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):  # not Linux, or a C library without it: orphans go to process 1
        return


def end_orphans(child: Child) -> None:
    """Kills all processes that are still below us: workers with sessions of their own outlive their engine, and hold its devices."""
    for _ in range(_GENERATIONS):
        left = _children()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)  # those of the killed become ours
        child.bury()


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []
