"""Programs that run as long as their owner: started with a log each, ended together, and by a guard if the owner is killed.

Which programs, and with which arguments, is `control_plane`'s and `simulator`'s.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

GUARD: Final = Path(__file__).parent / "guard.py"
TAIL_LINES: Final = 25
_PORTS: Final = random.Random(os.getpid())
STANDINS: Final = ("nsenter", "unshare")
"""They start a program in namespaces of its own, and wait for it."""


class ClusterFailed(RuntimeError):
    """A part of the cluster that ended or never became ready; carries the last lines of its log."""


@dataclass(slots=True)
class Processes:
    """The running programs of one cluster."""

    folder: Path
    """Logs go to its logs/; the guard removes all of it when the owner is killed."""
    _guard: subprocess.Popen[bytes] | None = None
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _told: dict[str, Sequence[str | Path]] = field(default_factory=dict)

    def start(self, name: str, argv: Sequence[str | Path]) -> None:
        """Start a program; its output goes to its log."""
        guard = self._guarded()
        self._told[name] = argv
        self.log(name).parent.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath, "HOME": str(self.folder)},
                process_group=guard.pid,
            )

    def pid(self, name: str) -> int:
        """Of the program itself, and not of what guards it."""
        return _innermost(self._running[name].pid)

    def pause(self, name: str) -> None:
        """Let it be there and do nothing: connections stay open, and nobody answers."""
        pid = _innermost(self._running[name].pid)
        os.kill(pid, signal.SIGSTOP)
        while not _is_stopped(pid):  # its threads stop one after the other, and each may still answer
            time.sleep(0.001)

    def resume(self, name: str) -> None:
        """Let a paused one go on."""
        self._running[name].send_signal(
            signal.SIGCONT
        )  # who stands for it outside has stopped with it, and wakes it
        os.kill(_innermost(self._running[name].pid), signal.SIGCONT)

    def kill(self, name: str) -> None:
        """End one at once; `restart` brings it back."""
        one = self._running.pop(name)
        one.kill()
        one.wait()

    def restart(self, name: str) -> None:
        """Start one again as it was told before, killed or still running."""
        if name in self._running:
            self.kill(name)
        self.start(name, self._told[name])

    def log(self, name: str) -> Path:
        """Where a program writes."""
        return self.folder / "logs" / f"{name}.log"

    def explain(self, error: BaseException | None) -> None:
        """What failed beside these programs may be explained by their logs, which end with them."""
        if error is not None:
            for name in self.names:
                error.add_note(f"{name}{self.tail(name)}")

    @property
    def cgroup(self) -> str:
        """Name of the control group that belongs to this owner, where its programs need one."""
        return f"plimsoll-{hashlib.sha256(bytes(self.folder.absolute())).hexdigest()[:12]}"

    @property
    def names(self) -> tuple[str, ...]:
        """All that were started and not killed, in that order."""
        return tuple(self._running)

    @property
    def pids(self) -> dict[str, int]:
        """Of the programs that run."""
        running = {name: one.pid for name, one in self._running.items() if one.poll() is None}
        return {name: _innermost(pid) for name, pid in running.items()}

    def wait(self, name: str, ready: Callable[[], bool], timeout: float) -> None:
        """Until the program is ready; ClusterFailed if it ends before, or takes longer."""
        deadline = time.monotonic() + timeout
        while not ready():
            if (code := self._running[name].poll()) is not None:
                raise ClusterFailed(f"{name} ended with {code}{self.tail(name)}")
            if time.monotonic() > deadline:
                raise ClusterFailed(f"{name} is not ready after {timeout:.0f} s{self.tail(name)}")
            time.sleep(0.05)

    def finish(self, *names: str) -> None:
        """Until these programs have done their work; ClusterFailed as soon as one did not."""
        while left := [name for name in names if name in self._running]:
            for name in left:
                code = self._running[name].poll()
                if code:
                    raise ClusterFailed(f"{name} ended with {code}{self.tail(name)}")
                if code == 0:
                    del self._running[name]
            time.sleep(0.05)

    def check(self) -> None:
        """ClusterFailed if one has ended."""
        for name, one in self._running.items():
            if (code := one.poll()) is not None:
                raise ClusterFailed(f"{name} ended with {code}{self.tail(name)}")

    def tail(self, name: str, lines: int = TAIL_LINES) -> str:
        """The last lines of a program's log, fit for the end of a message."""
        try:
            last = self.log(name).read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            return "; it has no log"
        return f"; the end of {self.log(name)}:\n" + "\n".join(f"    {line}" for line in last)

    def stop(self) -> None:
        """End all of them. Nothing here has anything to save, so nothing is asked twice."""
        for one in self._running.values():
            one.kill()
        for one in self._running.values():
            one.wait()
        self._running.clear()
        if self._guard is not None:
            os.killpg(self._guard.pid, signal.SIGKILL)  # with it go the children of those that had some
            self._guard.communicate()
            self._guard = None

    def _guarded(self) -> subprocess.Popen[bytes]:
        if self._guard is None:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(self.folder), self.cgroup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            assert self._guard.stdout is not None
            self._guard.stdout.readline()
        return self._guard


def memory_mb(pid: int) -> int | None:
    """Resident; None where the system does not tell it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def _innermost(pid: int) -> int:
    """The program itself, where another one stands for it outside of its namespaces."""
    try:
        while Path(f"/proc/{pid}/comm").read_text().strip() in STANDINS:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):  # no child yet, or no such files on this system
        pass
    return pid


@dataclass(slots=True)
class Ports:
    """Free ports, kept free: each is bound here for the cluster's life, and the programs share it by SO_REUSEPORT.

    A port that is only looked up and closed again may be gone when its program starts, and is when many clusters start at once.
    """

    address: str = "127.0.0.1"
    _held: list[socket.socket] = field(default_factory=list)

    def take(self) -> int:
        """One more."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((self.address, 0))
        self._held.append(holder)
        port: int = holder.getsockname()[1]
        return port

    def release(self) -> None:
        """All of them."""
        for holder in self._held:
            holder.close()
        self._held.clear()


def free_port() -> int:
    """For a program that shares none. Below those that the system gives to whoever connects or asks for any, so that nobody is given
    it before the program listens, nor while it is started again."""
    port, claim = claimed_port()
    claim.close()
    return port


def claimed_port() -> tuple[int, socket.socket]:
    """And what keeps it from all others who ask here, as long as that is open: the same number of datagrams, which no program uses."""
    while True:
        port = _PORTS.randrange(20_000, 32_000)
        claim = socket.socket(type=socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", port))
            with socket.socket() as one:
                one.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            return port, claim


def _is_stopped(pid: int) -> bool:
    """All threads of it; one that is gone does nothing either."""
    for one in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if one.read_text().rpartition(")")[2].split()[0] not in "TtXZ":
                return False
    return True
