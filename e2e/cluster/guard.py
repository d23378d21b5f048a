"""Run as a program: ends a cluster's processes when their owner is gone, however it went.

It leads the process group that they all belong to, and holds the reading end of a pipe whose writing end only the owner has.
The pipe ends with the owner, even by kill -9; then the guard kills its group and removes the cluster's folder, and the control
groups of its real nodes. It uses nothing but the standard library's smallest parts, so that it starts in 30 ms.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from typing import Final

ATTEMPTS: Final = 50
CGROUPS: Final = "/sys/fs/cgroup"


def main(folder: str, cgroup: str) -> None:
    # Whoever wants the owner gone may signal everything around it; the guard has to outlast them.
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    sys.stdout.write("\n")  # the owner waits for it: from here on the guard guards
    sys.stdout.flush()
    sys.stdin.buffer.read()
    group = os.getpgrp()
    if os.fork():  # a child in a group of its own, since killing the group kills the guard too
        time.sleep(60)
        return
    os.setpgid(0, 0)
    os.killpg(group, signal.SIGKILL)
    for _ in range(ATTEMPTS):  # a process that is just dying may write one file more
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)
        if not os.path.exists(folder) and not remove_cgroups(cgroup):  # noqa: PTH110 - pathlib takes as long to load as all else
            break


def cgroups(name: str) -> list[str]:
    """Folders of a control group of this name: one where the hierarchy is unified, else one a controller."""
    if not os.path.isdir(CGROUPS):  # noqa: PTH112
        return []
    if os.path.exists(f"{CGROUPS}/cgroup.controllers"):  # noqa: PTH110
        return [f"{CGROUPS}/{name}"]
    with os.scandir(CGROUPS) as found:
        return sorted(f"{one.path}/{name}" for one in found if one.is_dir(follow_symlinks=False))


def remove_cgroups(name: str) -> list[str]:
    """With all below; those that are left, since a process in them is still ending."""
    left = []
    for folder in cgroups(name):
        for inner, _, _ in os.walk(folder, topdown=False):
            try:
                os.rmdir(inner)  # noqa: PTH106
            except OSError:
                left.append(folder)
                break
    return left


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
