"""Which CUDA the engine of this image was built for, read from its torch without starting anything.

A driver runs what was built for the CUDA of its own major version or an older one. What was built for a newer one runs there only by
libraries of the image that stand in for the driver's, and whether those serve is for the engine to find out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

Version = tuple[int, int]
PROGRAM = "vllm"
"""Of other programs nobody knows which torch they load."""
OWN_DRIVER = "VLLM_ENABLE_CUDA_COMPATIBILITY"
"""With it the engine loads a driver's library of the image, which nobody else here sees."""
OFF = ("", "0", "false")
"""As published images say it."""
OTHER_MODULES = "PYTHONPATH"
"""Where a torch may be that comes before the one beside the program."""
_BUILT_FOR = re.compile(r"""^cuda(?:\s*:[^=\n]+)?\s*=\s*['"](\d+)\.(\d+)""", re.MULTILINE)


def built_for(argv: Sequence[str], environment: Mapping[str, str]) -> Version | None:
    """None where that is not certain: no torch beside the program, one without CUDA, several that differ, or a program that may choose
    which libraries are loaded before it starts the engine."""
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
    """As installers write programs: where the interpreter's path is too long for the first line, a shell reads the second, and ends."""
    with program.open("rb") as file:
        first, second = file.readline(256), file.readline(256)
    return first.startswith(b"#!") and (b"python" in first or second.startswith(b"'''exec' "))


def _version(file: Path) -> Version | None:
    try:
        said = _BUILT_FOR.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return None if said is None else (int(said[1]), int(said[2]))
