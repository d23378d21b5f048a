"""Which CUDA the engine of this image was built for, read from its torch without starting anything.

A driver runs what was built for CUDA of its own major version or an older one. What was built for a newer one runs only with libraries in the
image that replace the driver's; whether these work only the engine can find out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

Version = tuple[int, int]
PROGRAM = "vllm"
"""The engine's program. Of any other one it is not known which torch it loads."""
OWN_DRIVER = "VLLM_ENABLE_CUDA_COMPATIBILITY"
"""With this variable the engine loads a driver's library from the image, which cannot be seen here."""
OFF = ("", "0", "false")
"""Values of that variable that mean no, as published images have them."""
OTHER_MODULES = "PYTHONPATH"
"""A variable by which another torch than the one beside the program may be loaded."""
_BUILT_FOR = re.compile(r"""^cuda(?:\s*:[^=\n]+)?\s*=\s*['"](\d+)\.(\d+)""", re.MULTILINE)


def built_for(argv: Sequence[str], environment: Mapping[str, str]) -> Version | None:
    """The CUDA version that the engine was built for. None where that is not certain: there is no torch beside the program, or one without CUDA,
    or several that differ, or the program may choose other libraries before it starts the engine."""
    if not argv or Path(argv[0]).name != PROGRAM or environment.get(OTHER_MODULES):
        return None
    if environment.get(OWN_DRIVER, "").strip().lower() not in OFF:
        return None
    program = shutil.which(argv[0], path=environment.get("PATH", ""))
    if program is None:
        return None
    try:
        file = Path(program).resolve()
        if not _is_python(file):
            return None
        found = {
            _version(one) for one in file.parent.parent.glob("lib*/python3*/*-packages/torch/version.py")
        }
    except OSError:
        return None
    return found.pop() if len(found) == 1 else None


def _is_python(program: Path) -> bool:
    """Whether a program is a Python script as installers write them. If the interpreter's path is too long for the first line, that names a
    shell, which starts Python by the second line."""
    with program.open("rb") as file:
        first, second = file.readline(256), file.readline(256)
    return first.startswith(b"#!") and (b"python" in first or second.startswith(b"'''exec' "))


def _version(file: Path) -> Version | None:
    try:
        said = _BUILT_FOR.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return None if said is None else (int(said[1]), int(said[2]))
