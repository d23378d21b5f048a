"""Packs the supervisor into one file that any Python 3.9 or later runs: `python runtime/build.py FILE`. The same sources give the same bytes."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parent / "plimsoll_runtime"
NAME = "plimsoll_runtime.pyz"
SHEBANG = b"#!/usr/bin/env python3\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
START = "import os\nimport sys\n\nfrom plimsoll_runtime.command import main\n\nsys.exit(main(sys.argv[1:], os.environ))\n"


def build(target: Path) -> Path:
    """Not compressed: what compression makes of the same bytes differs between versions of its library."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            _add(archive, "__main__.py", START.encode())
            for source in sorted(PACKAGE.rglob("*.py")):
                _add(archive, str(source.relative_to(PACKAGE.parent)), source.read_bytes())
    target.chmod(0o755)
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else NAME)))  # noqa: T201 - a program of its own
