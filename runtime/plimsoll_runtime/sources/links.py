"""Symbolic links of an image's layers. None is ever made on the disk: what a link leads to is looked up among the names that the layers give,
so that nothing is written or read outside the model's folder, and when all layers are unpacked each becomes the files that it leads to,
since what it points at may not be there at the other end of a mount."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path

from plimsoll_runtime.sources.trouble import ANEW, failed

MOST_FOLLOWED = 40
"""Links on the way to one file, as for Linux."""
MOST_NAMES = 1_000_000
"""Of files and links that links lead to: folders of links to folders of links can have more than any disk holds."""


class Links:
    """All names and targets are paths within the model's folder; its own is the empty one."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}
        self._above: set[str] = set()
        """Folders below which there are links, or were: images have thousands of both."""
        self._sorted: list[str] = []

    def put(self, name: str, target: str) -> None:
        self._targets[name] = target
        parts = name.split("/")
        self._above.update("/".join(parts[:count]) for count in range(len(parts)))

    def forget(self, name: str) -> None:
        """Whatever else is put at a name is no link any more."""
        self._targets.pop(name, None)

    def forget_below(self, folder: str) -> None:
        for name in self._below(folder):
            del self._targets[name]

    def _below(self, folder: str) -> list[str]:
        return [name for name in self._targets if _is_below(name, folder)] if folder in self._above else []

    def _all_below(self, folder: str) -> list[str]:
        """As they were when all layers had been unpacked: found by their order, as there may be thousands of folders with thousands in them."""
        if not folder:
            return self._sorted
        first = bisect_left(self._sorted, f"{folder}/")
        return self._sorted[first : bisect_left(self._sorted, f"{folder}0", first)]

    def followed(self, path: str) -> str | None:
        """Where a path leads; None where links lead to one another."""
        for _ in range(MOST_FOLLOWED + 1):
            parts = path.split("/")
            heads = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
            link = next((head for head in heads if head in self._targets), None)
            if link is None:
                return path
            path = "/".join(part for part in (self._targets[link], path[len(link) + 1 :]) if part)
        return None

    def become_files(self, root: Path, look: Callable[[], None]) -> None:
        """`look` is called at each name. Links that lead to nothing are left out: images have many into machines that they are not."""
        found: list[tuple[str, str]] = []
        self._sorted = sorted(self._targets)
        for count, (name, real) in enumerate(self._named(root)):
            if count == MOST_NAMES:
                raise failed("BadCheckpoint", f"links of layers lead to over {MOST_NAMES} names", ANEW)
            look()
            if (root / real).is_file():
                found.append((name, real))
        for name, real in found:
            look()
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(root / real, root / name)

    def _named(self, root: Path) -> Iterator[tuple[str, str]]:
        for name in self._targets:
            yield from self._led_to(root, name, ())

    def _led_to(self, root: Path, name: str, passed: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """What a link stands for and all that lies in it, by the names that it gives them and where each really is. A link to a folder
        that it lies in, by itself or by those that were `passed`, would have no end."""
        real, passed = self.followed(name), (*passed, name)
        if real is None or len(passed) > MOST_FOLLOWED or any(_is_below(one, real) for one in passed):
            return
        yield name, real
        for file in (root / real).rglob("*"):
            place = file.relative_to(root).as_posix()
            yield name + place[len(real) :], place
        for link in self._all_below(real):
            for inner, place in self._led_to(root, link, passed):
                yield name + inner[len(real) :], place


def _is_below(name: str, folder: str) -> bool:
    return not folder or name.startswith(f"{folder}/")
