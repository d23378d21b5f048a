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
    """sha256, sha1, md5, crc32, git (of a blob, as git names it), or parts (md5 of the md5s of parts)."""
    value: str
    part: int = 0
    """Bytes of each part."""


class File(NamedTuple):
    path: str
    """Within the model's folder."""
    size: int
    digest: Digest | None = None
    key: str = ""
    """As the source calls it."""
    at: int = 0
    """Where it begins within what the source calls so."""


class Listing(NamedTuple):
    revision: str
    """What never changes: a commit, or a digest of what is listed."""
    files: tuple[File, ...]


class Source(Protocol):
    """One model at one place. Its answers may be asked for from several threads."""

    name: str
    """As people write it, for messages."""

    def listing(self) -> Listing: ...

    def with_sums(self, file: File) -> File:
        """What of its sums can be checked, where that is asked for each file alone."""
        ...

    def open(self, file: File, start: int, end: int) -> Answer:
        """From `start` on, up to `end` at least."""
        ...


def matches(file: Path, digest: Digest, size: int, stopped: Callable[[], bool]) -> bool:
    """Reads it once."""
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
