"""The supervisor and nothing else as an image: what the operator's image holds of it, made in seconds from the sources that are here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cluster.images.recipes import ROOT, Recipe

PACK: Final = ROOT / "runtime" / "build.py"
FILE: Final = "plimsoll_runtime.pyz"
DOCKERFILE: Final = f"ARG BASE\nFROM ${{BASE}}\nCOPY {FILE} /plimsoll/\nUSER 65532:65532\n"


def supervisor(folder: Path) -> Recipe:
    """`folder` is empty, and holds what goes in as long as the image is not made."""
    packed = folder / FILE
    subprocess.run([sys.executable, str(PACK), str(packed)], check=True, stdout=subprocess.DEVNULL)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    return Recipe(name="supervisor", folder=folder)


def supervisor_reference() -> str:
    """By which an admin's file names it."""
    with TemporaryDirectory() as folder:
        return supervisor(Path(folder)).reference
