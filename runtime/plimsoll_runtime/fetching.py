"""How far the engine's own download of its model is, read from the folder that the hub's client fills, as the client logs nothing useful.

A look lists one folder. Nothing is reported before bytes come, and no total before the model's index is there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plimsoll_runtime.address import value_of

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
WINDOW_SECONDS = 30.0
"""The time over which the rate is computed."""
STALLED_SECONDS = 120.0
"""A download that makes no progress for this long is no longer reported. Whether it failed the engine will say."""
_INDEX = "model.safetensors.index.json"
_MOST_INDEX = 64 << 20


class Progress(NamedTuple):
    done: int
    total: int | None
    rate: int | None
    """Bytes a second; None until two looks differ in time."""

    def told(self) -> dict[str, object]:
        return {"bytes": self.done, "of": self.total, "rate": self.rate, "left": self.left()}

    def left(self) -> int | None:
        """Seconds that are left at this rate."""
        if not self.rate or self.total is None:
            return None
        return max(0, self.total - self.done) // self.rate

    def text(self) -> str:
        size, unit = (GIB, "GiB") if (self.total or self.done) >= GIB else (MIB, "MiB")
        total = "" if self.total is None else f" of {self.total / size:.1f}"
        rate = "" if not self.rate else f", {_rate(self.rate)}"
        left = ""
        seconds = self.left()
        if seconds:
            left = f", {_span(seconds)} left"
        return f"fetching the model: {self.done / size:.1f}{total} {unit}{rate}{left}"


def _rate(speed: int) -> str:
    return f"{speed / MIB:.0f} MiB/s" if speed >= MIB else f"{speed / KIB:.0f} KiB/s"


def _span(seconds: float) -> str:
    for length, name, most in ((1, "s", 90), (60, "min", 90), (3600, "h", 48)):
        if seconds < most * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds / 86400:.0f} days"


def folder_of(argv: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """The folder in which the hub's client keeps this model; None where the engine reads another folder."""
    model = model_of_words(argv)
    if model is None or model.startswith(("/", ".", "~")) or model.count("/") > 1 or "://" in model:
        return None
    return cache_of(argv, environment) / ("models--" + model.replace("/", "--"))


def cache_of(argv: Sequence[str], environment: Mapping[str, str]) -> Path:
    """The folder in which the hub's client keeps all models."""
    cache = value_of(argv, "--download-dir") or environment.get("HF_HUB_CACHE")
    if cache is None:
        home = environment.get("HF_HOME")
        cache = f"{home}/hub" if home else f"{environment.get('HOME', '/root')}/.cache/huggingface/hub"
    return Path(cache)


def model_of_words(argv: Sequence[str]) -> str | None:
    named = value_of(argv, "--model")
    if named is not None:
        return named
    for word, following in zip(argv, argv[1:]):
        if word == "serve" and not following.startswith("-"):
            return following
    return None


class Fetching:
    """One download. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._total: int | None = None
        self._looks: deque[tuple[float, int]] = deque()
        self._grew: float | None = None

    def look(self, now: float) -> Progress | None:
        """The progress; None while nothing comes, as files that an earlier start left half written are no download."""
        size, writing = _blobs(self._folder / "blobs")
        if self._looks and size > self._looks[-1][1]:
            self._grew = now
        self._looks.append((now, size))
        while now - self._looks[0][0] > WINDOW_SECONDS and len(self._looks) > 2:
            self._looks.popleft()
        if not writing or self._grew is None or now - self._grew > STALLED_SECONDS:
            return None
        if self._total is None:
            self._total = _total(self._folder / "snapshots")
        since, earlier = self._looks[0]
        rate = round(max(0, size - earlier) / (now - since)) if now > since else None
        # Other files than weights lie here too, a few MiB of them.
        total = None if self._total is None else max(self._total, size)
        return Progress(done=size, total=total, rate=rate)


def _blobs(folder: Path) -> tuple[int, bool]:
    """Bytes that are there, and whether more are coming. Only allocated bytes count."""
    size, writing = 0, False
    try:
        files = list(folder.iterdir())
    except OSError:
        return 0, False
    for file in files:
        about = _stat(file)
        if about is None:
            continue
        if file.name.endswith(".incomplete"):
            writing = True
        size += about
    return size, writing


def _stat(file: Path) -> int | None:
    """The bytes of a file's allocated blocks, as a file may be created with its full length before it is filled."""
    try:
        about = file.stat()
    except OSError:  # renamed a moment ago
        return None
    return min(about.st_size, about.st_blocks * 512)


def _total(snapshots: Path) -> int | None:
    found = (_size_in(index) for index in sorted(snapshots.glob(f"*/{_INDEX}")))
    return next((size for size in found if size is not None), None)


def _size_in(index: Path) -> int | None:
    try:
        if index.stat().st_size > _MOST_INDEX:
            return None
        return int(json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
