"""Images of the supervisor, made in seconds from the sources that are here: it alone, which is what the operator's image holds of it, and
in front of the engine on CPUs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cluster.images.recipes import ROOT, VLLM_CPU, Recipe

PACK: Final = ROOT / "runtime" / "build.py"
FILE: Final = "plimsoll_runtime.pyz"
DOCKERFILE: Final = f"ARG BASE\nFROM ${{BASE}}\nCOPY {FILE} /plimsoll/\nUSER 65532:65532\n"


def supervisor(folder: Path) -> Recipe:
    """`folder` is empty, and holds what goes in as long as the image is not made."""
    packed = folder / FILE
    subprocess.run([sys.executable, str(PACK), str(packed)], check=True, stdout=subprocess.DEVNULL)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    return Recipe(name="supervisor", folder=folder)


def vllm_cpu_supervised(folder: Path) -> Recipe:
    """The bundled image. `folder` is empty, and holds the sources, at the paths where they lie here, as long as the image is not made."""
    shutil.copy(ROOT / "runtime" / "images" / "cpu-supervised" / "Dockerfile", folder)
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(
        PACK.with_name("plimsoll_runtime"), folder / "runtime" / "plimsoll_runtime", ignore=left_out
    )
    shutil.copy(PACK, folder / "runtime")
    return Recipe(name="vllm-cpu-supervised", folder=folder, over=VLLM_CPU)


def supervisor_reference() -> str:
    """By which an admin's file names it."""
    with TemporaryDirectory() as folder:
        return supervisor(Path(folder)).reference
