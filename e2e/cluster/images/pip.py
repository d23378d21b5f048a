"""This machine's way to Python packages: what pip is told here, for builds that run elsewhere, and which torch can be had."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Final

SECTIONS: Final = ("global", "install", ":env:")
"""Of the settings that matter; the last is the environment's, which goes first and is said last."""


def settings() -> dict[str, str]:
    """By files or by the environment."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for line in said.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in SECTIONS:
            found[key] = value.strip().strip("'").replace("\\n", "\n")
    return found


def write_settings(file: Path) -> Path:
    """As the file that pip reads."""
    parser = ConfigParser(interpolation=None)
    parser["global"] = settings()
    with file.open("w") as written:
        parser.write(written)
    return file


def local_wheels() -> list[Path]:
    """Folders of wheels that pip looks into."""
    return [Path(place) for place in settings().get("find-links", "").split() if Path(place).is_dir()]


def cpu_torch(lock: Path) -> str | None:
    """The CPU build of the locked torch as a requirement, where this machine's indexes have it: a fifth of the size."""
    match = re.search(r"^torch==(\S+)", lock.read_text(), re.MULTILINE)
    assert match is not None
    wanted = f"torch=={match[1]}+cpu"
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed"]
    argv += ["--only-binary=:all:", "--python-version=3.11", "--target=/nowhere", wanted]
    return wanted if subprocess.run(argv, capture_output=True, check=False).returncode == 0 else None
