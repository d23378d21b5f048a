"""Run as a program: the first process of a machine that is made of namespaces, given the file by which it says that it is there.

Whatever happens inside, ending this process ends all of it: the kernel kills every process of the PID namespace, and with the last
one go the mounts, the network and its rules. It uses nothing but the standard library's smallest parts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

SETUP: Final = (
    # Mounts made here are seen by the machine's containers, as kubelet wants it, and by nobody outside.
    ("mount", "--make-rshared", "/"),
    ("mount", "-t", "proc", "proc", "/proc"),
    # Programs keep sockets, locks and small files at fixed places in these.
    ("mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run"),
    ("mount", "-t", "tmpfs", "-o", "mode=755", "lib", "/var/lib"),
    ("mount", "-t", "tmpfs", "-o", "mode=755", "log", "/var/log"),
    ("ip", "link", "set", "lo", "up"),
)


def main(file: str) -> None:
    pid = os.readlink("/proc/self")  # noqa: PTH115 - the old /proc still tells the number that the outside knows
    for argv in SETUP:
        subprocess.run(argv, check=True)
    with open("/proc/sys/net/ipv4/ip_forward", "w") as forward:  # noqa: PTH123 - pathlib takes long to load
        forward.write("1")
    with open(file + ".new", "w") as written:  # noqa: PTH123
        written.write(pid)
    os.rename(file + ".new", file)  # noqa: PTH104
    # Orphans come here to end; with this the kernel clears them away by itself.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
