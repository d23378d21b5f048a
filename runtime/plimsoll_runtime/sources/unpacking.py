"""Archives of an image's layers into the folder of a model: in their order, never outside the folder, and with what later layers delete."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from plimsoll_runtime.sources.download import of_disk, room
from plimsoll_runtime.sources.links import Links
from plimsoll_runtime.sources.listing import File
from plimsoll_runtime.sources.trouble import ANEW, Stopped, failed

CHUNK = 16 << 20
SPARE = 256 << 20
"""Of the disk is never used: what archives grow to is known when it is there, and the disk is others' too."""
HALF = ".unpacking"
"""Beside the archives: nothing of it is the model's before all is unpacked."""
_GONE, _ALL_GONE = ".wh.", ".wh..wh..opq"


def unpack(archives: Path, into: Path, stopped: Callable[[], bool]) -> tuple[File, ...]:
    """Unpacks the layers into a folder and returns the files with their sizes. The archives are deleted."""
    into.mkdir(parents=True, exist_ok=True)
    half = into / HALF
    shutil.rmtree(half, ignore_errors=True)  # of one that was killed
    packed = sorted(archives.iterdir()) if archives.is_dir() else []
    room(into, sum(archive.stat().st_size for archive in packed) + SPARE + CHUNK)

    def look() -> None:
        """Ends the unpacking where that is asked for; called before each piece that is written."""
        if stopped():
            raise Stopped
        if shutil.disk_usage(into).free < SPARE + CHUNK:
            message = f"less than {SPARE >> 20} MiB of {into} would be left where layers are unpacked"
            raise failed("DiskFull", message, "a larger spec.storage.weights")

    try:
        half.mkdir()
        links = Links()
        for archive in packed:
            _unpack(archive, half, links, look)
        links.become_files(half, look)
        _move(half, into)
    except OSError as error:
        shutil.rmtree(half, ignore_errors=True)
        raise of_disk(error) from error
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    shutil.rmtree(half, ignore_errors=True)
    shutil.rmtree(archives, ignore_errors=True)
    return tuple(
        File(str(file.relative_to(into)), file.stat().st_size)
        for file in sorted(into.rglob("*"))
        if file.is_file()
    )


def _unpack(archive: Path, into: Path, links: Links, look: Callable[[], None]) -> None:
    try:
        with opened(archive) as tar:
            for member in tar:
                look()
                _place(tar, member, into, links, look)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
        raise failed("BadCheckpoint", f"a layer is no archive that can be read: {error}", ANEW) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise failed(
            "BadCheckpoint", f"a layer has a file where a folder is: {error.filename}", ANEW
        ) from error


def _move(half: Path, into: Path) -> None:
    for file in sorted(half.rglob("*")):
        if file.is_file():
            target = into / file.relative_to(half)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


@contextlib.contextmanager
def opened(archive: Path) -> Iterator[tarfile.TarFile]:
    with _unpacked(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        yield tar


def _unpacked(archive: Path) -> IO[bytes]:
    if archive.name.endswith(".gz"):
        # tarfile itself would end with the first of several members, and what seeks in layers has one for each file.
        return cast("IO[bytes]", gzip.open(archive))
    if not archive.name.endswith(".zst"):
        return archive.open("rb")
    try:
        zstd = importlib.import_module("compression.zstd")  # of Python 3.14 and later
    except ImportError:
        message = "a layer is packed by zstd, which this image's Python cannot read"
        raise failed("BadCheckpoint", message, "push the model without compression, or by gzip") from None
    return cast("IO[bytes]", zstd.open(archive, "rb"))


def _place(
    tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path, links: Links, look: Callable[[], None]
) -> None:
    name = _real(inside(member.name), links)
    if not name:
        return
    folder, _, last = name.rpartition("/")
    if last == _ALL_GONE:
        shutil.rmtree(into / folder, ignore_errors=True)
        links.forget_below(folder)
        return
    if last.startswith(_GONE):
        gone = inside(last[len(_GONE) :])
        if not gone:
            raise failed(
                "BadCheckpoint", f"a layer deletes {name[:200]!r}, which is no file of the model", ANEW
            )
        _clear(into, f"{folder}/{gone}".lstrip("/"), links)
        return
    if member.isdir():
        links.forget(name)
        return  # made with the files in it
    if member.issym():
        target = member.linkname if member.linkname.startswith("/") else f"{folder}/{member.linkname}"
        _clear(into, name, links)
        links.put(name, inside(target))
        return
    if member.islnk():
        _link(_real(inside(member.linkname), links), name, into, links)
        return
    source = tar.extractfile(member) if member.isfile() else None
    if source is not None:
        with source:
            _clear(into, name, links)
            _write(source, into / name, look)


def _real(name: str, links: Links) -> str:
    """Where an entry is put: links to folders are followed, and one that is there by this very name is replaced."""
    folder, _, last = name.rpartition("/")
    followed = links.followed(folder)
    if followed is None:
        raise failed("BadCheckpoint", f"a layer has {name[:200]!r} behind a link without an end", ANEW)
    return f"{followed}/{last}".lstrip("/")


def inside(name: str) -> str:
    """The path of an archive's entry within the folder; raises FetchFailed for one that would leave it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in (clean := os.path.normpath("/".join(parts)).split("/")):
        raise failed("BadCheckpoint", f"a layer names {name[:200]!r}, which is outside the model", ANEW)
    return "" if clean == ["."] else "/".join(clean)


def _link(target: str, name: str, into: Path, links: Links) -> None:
    """Another name of a file."""
    if target == name:
        return
    _clear(into, name, links)
    if not (into / target).is_file():
        links.put(name, target)  # a link of its own, or not there yet
        return
    (into / name).parent.mkdir(parents=True, exist_ok=True)
    os.link(into / target, into / name)


def _write(source: IO[bytes], file: Path, look: Callable[[], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as target:
        while piece := source.read(CHUNK):
            look()
            target.write(piece)


def _clear(into: Path, name: str, links: Links) -> None:
    """Takes away what earlier entries put at a name."""
    links.forget(name)
    links.forget_below(name)
    file = into / name
    if file.is_dir():
        shutil.rmtree(file, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
