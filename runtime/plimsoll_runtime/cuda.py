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
_BUILT_FOR = re.compile(r"""^cuda(?:\s*:[^=\n]+)?\s*=\s*['"](\d+)\.(\d+)""", re.MULTILINE)


def built_for(argv: Sequence[str], environment: Mapping[str, str]) -> Version | None:
    """None where that is not certain: no torch beside the program, one without CUDA, or several that differ."""
    if not argv or Path(argv[0]).name != PROGRAM or environment.get(OWN_DRIVER):
        return None
    program = shutil.which(argv[0], path=environment.get("PATH", ""))
    if program is None:
        return None
    prefix = Path(program).resolve().parent.parent
    found = {_version(file) for file in prefix.glob("lib*/python3*/*-packages/torch/version.py")}
    return found.pop() if len(found) == 1 else None


def _version(file: Path) -> Version | None:
    try:
        said = _BUILT_FOR.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return None if said is None else (int(said[1]), int(said[2]))
