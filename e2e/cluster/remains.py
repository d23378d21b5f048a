"""What a cluster has on its machine while it lives, and which of it is still there afterwards: to be told, not to be cleaned."""

from __future__ import annotations

import gc
import os
import socket
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cluster.cluster import Cluster
from cluster.processes import Processes

CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Of one cluster, or of one other owner of programs."""

    folder: Path
    pids: tuple[int, ...]
    group: int
    """All its programs are in one process group, whoever started them."""
    cgroup: str
    ports: tuple[int, ...]

    @classmethod
    def of(cls, cluster: Cluster) -> Self:
        at = cluster.layout
        ports = (at.etcd_port, at.peer_port, at.api_port, at.manager_port, at.scheduler_port)
        return cls.of_programs(cluster.processes, ports=ports)

    @classmethod
    def of_programs(cls, processes: Processes, *, ports: tuple[int, ...] = ()) -> Self:
        pids = tuple(processes.pids.values())
        return cls(
            folder=processes.folder,
            pids=pids,
            group=os.getpgid(pids[0]),
            cgroup=processes.cgroup,
            ports=ports,
        )

    def left(self) -> list[str]:
        """Everything that is still there; a namespace lives as long as a process in it, or a mount of it."""
        found = [f"process {pid}" for pid in _processes() if pid in self.pids or _group(pid) == self.group]
        found += [f"port {port}" for port in self.ports if not _is_free(port)]
        found += [f"mount {one}" for one in _mounts() if str(self.folder) in one or self.cgroup in one]
        found += [f"control group {one}" for one in CGROUPS.glob(f"**/{self.cgroup}")]
        return found + ([f"folder {self.folder}"] if self.folder.exists() else [])


def open_files() -> set[str]:
    """Of this process, each with its number: what is opened for a cluster must be closed with it. What nobody holds any more is none:
    a connection that a starting server resets before the handshake stays open in Python until such rings of objects are looked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself, which was open while it was read
            found.add(f"{one.name} {one.readlink()}")
    return found


def _processes() -> list[int]:
    """Zombies hold nothing, and wait for whoever adopted them."""
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and _state(one) != "Z"]


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # Connections that were just closed keep a port from nobody.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()
