"""Images kept between runs, unpacked: a containerd's folder that nodes borrow from by links.

So a node has all images as it starts, whatever their size, and what its containers write is never in the cache. While anybody
borrows, the folder is only added to.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from cluster.binaries import Places

BLOBS: Final = Path("io.containerd.content.v1.content/blobs/sha256")
METADATA: Final = Path("io.containerd.metadata.v1.bolt/meta.db")
SNAPSHOTTER: Final = Path("io.containerd.snapshotter.v1.overlayfs")
Loan = IO[str]
LAYER_BYTES: Final = 10_000_000
"""A blob above it is a layer; all others are read again and again."""


@dataclass(frozen=True, slots=True)
class ImageStore:
    """A folder of images."""

    folder: Path

    @property
    def root(self) -> Path:
        """containerd's own."""
        return self.folder / "containerd"

    @classmethod
    def of(cls, places: Places) -> ImageStore:
        """The one of this cache."""
        return cls(places.cache / "images")

    def has(self, reference: str) -> bool:
        """Whether the image is there, whole."""
        return self._mark(reference).exists()

    def complete(self, reference: str) -> None:
        """From now on the image is there, whole. Only while `changing`, and while no containerd runs on it."""
        self._hollow()
        self._mark(reference).parent.mkdir(exist_ok=True)
        self._mark(reference).touch()

    def lend(self, root: Path) -> Loan:
        """Make a node's containerd folder, which is not there yet, with all images in it, for as long as the loan is open."""
        self.folder.mkdir(parents=True, exist_ok=True)
        loan = (self.folder / "loans.lock").open("w")
        with self._lock("content", fcntl.LOCK_SH):
            fcntl.flock(loan, fcntl.LOCK_SH)
            if not (self.root / METADATA).exists():
                return loan
            for file in (METADATA, SNAPSHOTTER / "metadata.db"):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / file, root / file)
            for folder in (BLOBS, SNAPSHOTTER / "snapshots"):
                (root / folder).mkdir(parents=True)
                for one in (self.root / folder).iterdir():
                    (root / folder / one.name).symlink_to(one)
        return loan

    def superseded(self, reference: str) -> list[str]:
        """Images of the same name by older recipes; none while somebody may have borrowed them. Only while `changing`."""
        with (self.folder / "loans.lock").open("w") as loans:
            try:
                fcntl.flock(loans, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return []
        marks = (self.folder / "complete").glob(f"{self._mark(reference).name.rpartition(':')[0]}:*")
        return sorted(mark.name.replace("_", "/") for mark in marks if mark != self._mark(reference))

    def forget(self, reference: str) -> None:
        """The image is not there any more."""
        self._mark(reference).unlink()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody borrows meanwhile."""
        with self._lock("content", fcntl.LOCK_EX):
            yield

    @contextmanager
    def making(self, waiting: Callable[[], None]) -> Iterator[None]:
        """One at a time; `waiting` is called when somebody else makes images, which takes minutes."""
        with self._lock("making", fcntl.LOCK_EX, waiting):
            yield

    @contextmanager
    def _lock(self, name: str, kind: int, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """A dead holder holds nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.lock").open("w") as held:
            try:
                fcntl.flock(held, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(held, kind)
            yield

    def _mark(self, reference: str) -> Path:
        return self.folder / "complete" / reference.replace("/", "_")

    def _hollow(self) -> None:
        """An unpacked layer is never read again, but asked for: a hole of its size takes no space."""
        for blob in (self.root / BLOBS).iterdir():
            size = blob.stat().st_size
            if size > LAYER_BYTES:
                blob.chmod(0o644)
                os.truncate(blob, 0)
                os.truncate(blob, size)
