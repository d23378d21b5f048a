"""What a source says of a model: its files, how large they are, and by which sums they are known."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from plimsoll_runtime.sources.web import Answer

CHUNK = 1 << 20


class Digest(NamedTuple):
    kind: str
    """sha256, sha1, md5, crc32, git (the name that git gives a blob), or parts (the md5 of the md5s of the parts)."""
    value: str
    part: int = 0
    """How many bytes each part has, for a sum of parts."""


class File(NamedTuple):
    path: str
    """The path within the model's folder."""
    size: int
    digest: Digest | None = None
    key: str = ""
    """What the source calls the file, where that is not its path."""
    at: int = 0
    """At which byte the file begins within what the source calls by that key."""


class Listing(NamedTuple):
    revision: str
    """A name for exactly these files, which never means others: a commit, or a digest of what is listed."""
    files: tuple[File, ...]


class Source(Protocol):
    """One model at one place. Several threads may ask it at once."""

    name: str
    """The name by which messages call it."""

    def listing(self) -> Listing: ...

    def with_sums(self, file: File) -> File:
        """The file with the sum that can be checked, for sources that must be asked about each file alone."""
        ...

    def open(self, file: File, start: int, end: int) -> Answer:
        """The file's bytes from `start` on, and at least up to `end`."""
        ...


def matches(file: Path, digest: Digest, size: int, stopped: Callable[[], bool]) -> bool:
    """Whether a file has the sum that is expected. It is read once, from beginning to end."""
    if digest.kind == "crc32":
        total = 0
        for piece in _pieces(file, stopped):
            total = zlib.crc32(piece, total)
        return f"{total:08x}" == digest.value
    if digest.kind == "parts":
        return _by_parts(file, digest, stopped)
    if digest.kind == "git":
        found = hashlib.new("sha1", f"blob {size}\0".encode(), usedforsecurity=False)
    else:
        found = hashlib.new(digest.kind, usedforsecurity=False)
    for piece in _pieces(file, stopped):
        found.update(piece)
    return found.hexdigest() == digest.value


def _by_parts(file: Path, digest: Digest, stopped: Callable[[], bool]) -> bool:
    sums, part, left = b"", hashlib.new("md5", usedforsecurity=False), digest.part
    for piece in _pieces(file, stopped):
        rest = memoryview(piece)
        while rest:
            taken, rest = rest[:left], rest[left:]
            part.update(taken)
            left -= len(taken)
            if not left:
                sums, part, left = (
                    sums + part.digest(),
                    hashlib.new("md5", usedforsecurity=False),
                    digest.part,
                )
    if left < digest.part:
        sums += part.digest()
    count = len(sums) // 16
    return f"{hashlib.new('md5', sums, usedforsecurity=False).hexdigest()}-{count}" == digest.value


def _pieces(file: Path, stopped: Callable[[], bool]) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while piece := stream.read(CHUNK):
            if stopped():
                return
            yield piece
