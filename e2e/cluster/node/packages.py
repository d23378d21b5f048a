"""Programs of the distribution that a real node needs: looked for, installed where that can be done, else named.

Those with pinned versions are `binaries`'; these are the ones that a machine has or gets as it has them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cluster.binaries.progress import Progress

PLUGINS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
"""Where Debian and everybody else put network plugins."""
NODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "containerd": "containerd",
        "ctr": "containerd",
        "runc": "runc",
        "ptp": "containernetworking-plugins",
        "iptables": "iptables",
        "ip": "iproute2",
        "nsenter": "util-linux",
        "mount": "mount",
    }
)
"""Program to Debian package, for a node."""
IMAGES: Final[Mapping[str, str]] = MappingProxyType({"buildah": "buildah", "debootstrap": "debootstrap"})
"""The same, for making images."""
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of a user often lacks the administrator's folders."""
LOCK_SECONDS: Final = 600
TAIL_LINES: Final = 10


class Unavailable(RuntimeError):
    """This machine cannot have a real node; says why, and what would help."""


def find(program: str) -> Path | None:
    """Where a program of the distribution is."""
    for folder in PLUGINS:
        if (folder / program).is_file() and program == "ptp":
            return folder / program
    found = shutil.which(program, path=SYSTEM_PATH)
    return Path(found) if found else None


def require(needed: Mapping[str, str], progress: Progress) -> dict[str, Path]:
    """Each program's file; packages that lack are installed."""
    lacking = [program for program in needed if find(program) is None]
    if lacking:
        _install(sorted({needed[program] for program in lacking}), progress)
    found = {program: find(program) for program in needed}
    if still := sorted(program for program, file in found.items() if file is None):
        raise Unavailable(f"the packages are installed, but not the programs {', '.join(still)}")
    return {program: file for program, file in found.items() if file is not None}


def require_root() -> None:
    """Namespaces, mounts and networks are the administrator's."""
    if os.geteuid() != 0:
        raise Unavailable(
            "a real node needs root: it makes namespaces, mounts and networks; run this as root"
        )


def _install(packages: Iterable[str], progress: Progress) -> None:
    wanted = list(packages)
    apt = shutil.which("apt-get", path=SYSTEM_PATH)
    if apt is None or os.geteuid() != 0:
        raise Unavailable(
            f"needed and not there: the Debian packages {' '.join(wanted)}; install them, or what is like them"
        )
    with progress.step(f"installing {' '.join(wanted)}"):
        lock = ["-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}"]
        install = [apt, *lock, "install", "-y", "-q", "--no-install-recommends", *wanted]
        if _apt(install):  # lists may be old or absent
            _apt([apt, *lock, "update", "-q"])
            if said := _apt(install):
                raise Unavailable(f"apt-get does not install {' '.join(wanted)}:\n{said}")


def _apt(argv: list[str]) -> str:
    """What it said if it failed."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}  # noqa: TID251 - proxies are for the program
    done = subprocess.run(
        argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
