"""What a benchmark of the real engine begins with: the Python that has it, the packed supervisor, and a folder that goes with it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

from build import NAME, build  # noqa: E402
from cluster.binaries import Places  # noqa: E402
from cluster.binaries.progress import Progress  # noqa: E402
from cluster.engine import EngineUnavailable, ensure_engine  # noqa: E402


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    python: Path
    packed: Path
    folder: Path


@contextmanager
def engine_at_hand() -> Iterator[AtHand]:
    """Ends the program with the reason where this machine cannot run the engine."""
    # An engine has a session of its own: whoever ends this program is not to leave one behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        python = ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251 - of entry points
    except EngineUnavailable as why:
        raise SystemExit(str(why)) from None
    with tempfile.TemporaryDirectory(prefix="plimsoll-benchmark-") as made:
        folder = Path(made)
        yield AtHand(python=python, packed=build(folder / NAME), folder=folder)
