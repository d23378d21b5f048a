"""Prometheus' own judge of rules: whether they can be read, and whether they fire when they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cluster.binaries import Places, ensure
from cluster.binaries.progress import Progress


def promtool(
    *args: str | Path, text: str | None = None, places: Places | None = None
) -> subprocess.CompletedProcess[str]:
    """As at a prompt, such as `check rules FILE` or `test rules FILE`, or given a text; the caller looks at the exit code."""
    places = places or Places.of(os.environ)  # noqa: TID251 - the default of an entry point
    (program,) = ensure(["promtool"], places, Progress(sys.stderr)).values()
    return subprocess.run([program, *args], input=text, capture_output=True, text=True, check=False)
