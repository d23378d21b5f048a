"""The operator's own image as a recipe: its Dockerfile, and of this repository what goes in, at the paths where it lies here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from cluster.images.recipes import DEBIAN, Recipe
from common import ROOT

DOCKERFILE: Final = ROOT / "runtime" / "images" / "operator" / "Dockerfile"


def recipe(folder: Path) -> Recipe:
    """`folder` is empty, and holds the sources as long as the image is not made."""
    shutil.copy(DOCKERFILE, folder)
    (folder / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "run.txt", folder / "requirements")
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "operator" / "plimsoll", folder / "operator" / "plimsoll", ignore=left_out)
    shutil.copytree(
        ROOT / "runtime" / "plimsoll_runtime", folder / "runtime" / "plimsoll_runtime", ignore=left_out
    )
    shutil.copy(ROOT / "runtime" / "build.py", folder / "runtime")
    return Recipe(name="operator", folder=folder, base=DEBIAN)
