"""A machine made of namespaces: own processes, mounts and network, so that a real node leaves nothing on the host but files.

What runs on it is others'. Its control groups are the one thing that outlives its processes; the owner removes them, or the guard.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cluster.guard import cgroups, remove_cgroups
from cluster.node.packages import SYSTEM_PATH
from cluster.processes import ClusterFailed, Processes

INIT: Final = Path(__file__).parent / "init.py"
START_SECONDS: Final = 120.0
END_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Namespaces that live as long as their first process."""

    name: str
    processes: Processes
    pid: int
    """Of the first process, as the host counts."""

    @classmethod
    def start(cls, name: str, processes: Processes) -> Self:
        """Make one; nothing of it is left when the processes' owner ends."""
        file = processes.folder / f"{name}.pid"
        argv = ["unshare", "--pid", "--mount", "--net", "--uts", "--ipc", "--fork", "--kill-child=KILL"]
        argv += ["--propagation", "slave", sys.executable, "-I", "-S", str(INIT), str(file)]
        processes.start(name, argv)
        processes.wait(name, file.exists, START_SECONDS)
        return cls(name=name, processes=processes, pid=int(file.read_text()))

    def wait_end(self) -> None:
        """After its processes were ended: the first one is the last to be gone."""
        deadline = time.monotonic() + END_SECONDS
        while _lives(self.pid) and time.monotonic() < deadline:
            time.sleep(0.01)

    def start_program(self, name: str, argv: Sequence[str | Path]) -> None:
        """A program of the cluster that runs inside."""
        self.processes.start(name, [*self._inside(), *argv])

    def run(self, *argv: str | Path) -> str:
        """A command inside; its output, or ClusterFailed with what it said."""
        return run(*self._inside(), *argv)

    def ip(self, command: str) -> None:
        """Change the machine's network."""
        run("nsenter", f"--target={self.pid}", "--net", "ip", *command.split())

    def _inside(self) -> list[str]:
        inside = ["nsenter", f"--target={self.pid}", "--pid", "--mount", "--net", "--uts", "--ipc", "--"]
        # Who kills what stands for the program outside means the program.
        return [*inside, "setpriv", "--pdeathsig", "KILL", "--", "env", f"PATH={SYSTEM_PATH}"]


def run(*argv: str | Path) -> str:
    """A command's output; ClusterFailed with what it said if it fails."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise ClusterFailed(f"{argv[0]} does not run: {error}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ClusterFailed(f"{' '.join(map(str, argv))} ended with {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def _lives(pid: int) -> bool:
    """A zombie does not: it waits for whoever adopted it."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def ip(command: str) -> None:
    """Change the host's network."""
    run("ip", *command.split())


def make_cgroup(name: str) -> None:
    """One that can take processes; the cluster's end removes it. Its weight stays that of any other group: all programs of a cluster may be
    in one, and busy pods of a heavier one leave its API server too little to answer a handshake in seconds."""
    for folder in map(Path, cgroups(name)):
        folder.mkdir(parents=True, exist_ok=True)
        for level in (folder.parent, folder):
            # Of the older hierarchy: empty until somebody writes them.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (level / setting).exists() and not (level / setting).read_text().strip():
                    (level / setting).write_text((level.parent / setting).read_text())


def end_cgroup(name: str) -> None:
    """Returns when its last process is gone, and it with it."""
    deadline = time.monotonic() + END_SECONDS
    while left := remove_cgroups(name):
        if time.monotonic() > deadline:
            raise ClusterFailed(f"the control group {left[0]} is still in use after {END_SECONDS:.0f} s")
        time.sleep(0.05)
