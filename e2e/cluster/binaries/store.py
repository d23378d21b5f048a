"""Programs kept between runs: one folder each, with a checksum beside it, put in place whole.

Two runs may look at once; only the one that holds the lock writes. What a crash left half done is swept by the next writer.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.binaries.pins import Pin

SUM: Final = "sha256"
_MAKING: Final = ".making-"


def sha256_of(file: Path) -> str:
    """Of the file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of programs."""

    folder: Path

    def home(self, pin: Pin) -> Path:
        """The program's own folder: another version, other module files or other sources of our own are another program."""
        recipe = hashlib.sha256(repr((pin.package, pin.variables, *pin.tags)).encode())
        for file in sorted(pin.module_folder.glob("*.go")):
            recipe.update(file.read_bytes())
        for name in ("go.mod", "go.sum"):
            recipe.update((pin.module_folder / name).read_bytes())
        return self.folder / f"{pin.name}-{pin.version}-{recipe.hexdigest()[:10]}"

    def find(self, pin: Pin) -> Path | None:
        """The program, if it is there and what was put there."""
        home = self.home(pin)
        program, recorded = home / pin.name, home / SUM
        try:
            return program if sha256_of(program) == recorded.read_text().strip() else None
        except OSError:
            return None

    def is_broken(self, pin: Pin) -> bool:
        """Something is there, but not what was put there."""
        return self.home(pin).exists() and self.find(pin) is None

    def put(self, pin: Pin, make: Callable[[Path], object]) -> Path:
        """Let `make` write the program, then put it in place. Only under the lock."""
        home = self.home(pin)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=self.folder))
        try:
            make(making / pin.name)
            (making / SUM).write_text(sha256_of(making / pin.name) + "\n")
            making.chmod(0o755)  # mkdtemp's is for the owner only, but a cache may be shared
            if home.exists():
                shutil.rmtree(home)
            making.rename(home)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return home / pin.name

    @contextmanager
    def lock(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Alone in the store; `waiting` is called when somebody else is. A dead holder holds nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(held, fcntl.LOCK_EX)
            for left in self.folder.glob(f"{_MAKING}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
