"""Reads a little of a model where it lies: whole small files and the beginning of large ones, by ranges, and never a weight."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from plimsoll_runtime.sources.download import skip_to
from plimsoll_runtime.sources.fetch import source_of
from plimsoll_runtime.sources.listing import File, Source
from plimsoll_runtime.sources.registry import ARCHIVES
from plimsoll_runtime.sources.trouble import ANEW, Patience, Refused, Transient, failed, patiently
from plimsoll_runtime.sources.unpacking import inside
from plimsoll_runtime.sources.web import Web
from plimsoll_runtime.words import tell

BLOCK = 256 << 10
"""A header of a shard is 10 to 100 KiB."""


class Remote:
    """A model's files by name, each to be opened as if it lay on this machine. Raises FetchFailed where that goes wrong."""

    def __init__(self, client: Source, patience: Patience) -> None:
        self._client, self._patience = client, patience
        listing = patiently(client.listing, patience, _wait)
        self.name, self.revision = client.name, listing.revision
        found = [inner for file in listing.files for inner in self._within(file)]
        self._files = {file.path: file for file in found}
        self.files: Mapping[str, int] = {file.path: file.size for file in found}

    def open(self, path: str) -> BinaryIO:
        """Opens a file, which the caller closes. What is never read of it is never asked for."""
        return self._opened(self._files[path])

    def _opened(self, file: File) -> io.BufferedReader:
        return io.BufferedReader(_Ranges(self._client, file, self._patience), BLOCK)

    def _within(self, file: File) -> Sequence[File]:
        """The files of an archive, which lie in it one after the other. What is compressed can only be read whole."""
        if not file.path.startswith(ARCHIVES):
            return (file,)
        if not file.path.endswith(".tar"):
            message = f"the layers of {self.name} are compressed: nothing less than all of them can be read"
            raise failed(
                "BadCheckpoint",
                message,
                "push the model without compression, or write spec.model.architecture",
            )
        try:
            with self._opened(file) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
                return [
                    File(inside(member.name), member.size, None, file.key, member.offset_data)
                    for member in tar
                    if member.isfile()
                ]
        except (tarfile.TarError, EOFError, ValueError) as error:
            message = f"a layer of {self.name} is no archive that can be read: {error}"
            raise failed("BadCheckpoint", message, ANEW) from error


def remote(
    source: str, revision: str | None, environment: Mapping[str, str], patience: Patience | None = None
) -> Remote:
    patience = patience or Patience()
    return Remote(source_of(source, revision, Web(environment, patience)), patience)


class _Ranges(io.RawIOBase):
    def __init__(self, client: Source, file: File, patience: Patience) -> None:
        self._client, self._file, self._patience, self._at = client, file, patience, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(
            0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        )
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        end = min(self._at + len(buffer), self._file.size)
        if end <= self._at:
            return 0
        piece = patiently(lambda: self._read(end), self._patience, _wait)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _read(self, end: int) -> bytes:
        try:
            with self._client.open(self._file, self._at, end) as answer:
                skip_to(answer, self._file, self._at)
                piece = answer.read(end - self._at)
        except Refused as refused:
            raise failed(
                "Download", f"{self._client.name}: {refused} for {self._file.path}", "check spec.model.source"
            ) from refused
        if not piece:
            raise Transient("the connection ended before the file did")
        return piece


def _wait(seconds: float, why: str) -> bool:
    tell(f"waiting {seconds:g} s to ask again: {why}")
    time.sleep(seconds)
    return False
