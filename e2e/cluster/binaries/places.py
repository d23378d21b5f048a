"""Where a machine may have programs, and where ours are kept. The environment is read here once and handed on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What of the environment matters for programs."""

    path: str
    """PATH."""
    cache: Path
    assets: Path | None = None
    """KUBEBUILDER_ASSETS."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Places:
        """From the environment: PLIMSOLL_CACHE, else the user's cache folder."""
        if own := environ.get("PLIMSOLL_CACHE"):
            cache = Path(own)
        else:
            base = environ.get("XDG_CACHE_HOME") or str(
                Path(environ.get("HOME") or "~").expanduser() / ".cache"
            )
            cache = Path(base) / "plimsoll"
        assets = environ.get("KUBEBUILDER_ASSETS")
        return cls(
            path=environ.get("PATH", ""), cache=cache.absolute(), assets=Path(assets) if assets else None
        )

    @property
    def binaries(self) -> Path:
        """Of this kind of machine: a cache may be shared by several."""
        return self.cache / "bin" / f"{sys.platform}-{platform.machine()}"
