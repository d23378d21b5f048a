"""Archives of an image's layers into the folder of a model: in their order, never outside the folder, and with what later layers delete."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from plimsoll_runtime.sources.download import of_disk, room
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
        for archive in packed:
            _unpack(archive, half, look)
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


def _unpack(archive: Path, into: Path, look: Callable[[], None]) -> None:
    try:
        with opened(archive) as tar:
            for member in tar:
                look()
                _place(tar, member, into, look)
    except (tarfile.TarError, EOFError, ValueError) as error:
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
    if archive.name.endswith(".zst"):
        try:
            zstd = importlib.import_module("compression.zstd")  # of Python 3.14 and later
        except ImportError:
            message = "a layer is packed by zstd, which this image's Python cannot read"
            raise failed("BadCheckpoint", message, "push the model without compression, or by gzip") from None
        with zstd.open(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            yield tar
        return
    with tarfile.open(archive, "r|gz" if archive.name.endswith(".gz") else "r|") as tar:
        yield tar


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path, look: Callable[[], None]) -> None:
    name = inside(member.name)
    if not name:
        return
    folder, last = into / Path(name).parent, Path(name).name
    if last == _ALL_GONE:
        shutil.rmtree(folder, ignore_errors=True)
        return
    if last.startswith(_GONE):
        gone = inside(last[len(_GONE) :])
        if not gone:
            raise failed(
                "BadCheckpoint", f"a layer deletes {name[:200]!r}, which is no file of the model", ANEW
            )
        _remove(folder / gone)
        return
    if member.isdir():
        return  # made with the files in it
    if member.islnk() or member.issym():
        target = inside(member.linkname if member.islnk() else str(Path(name).parent / member.linkname))
        _copy_of(into / target if target else None, into / name)
        return
    source = tar.extractfile(member) if member.isfile() else None
    if source is not None:
        with source:
            _write(source, into / name, look)


def inside(name: str) -> str:
    """The path of an archive's entry within the folder; raises FetchFailed for one that would leave it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in (clean := os.path.normpath("/".join(parts)).split("/")):
        raise failed("BadCheckpoint", f"a layer names {name[:200]!r}, which is outside the model", ANEW)
    return "" if clean == ["."] else "/".join(clean)


def _copy_of(target: Path | None, file: Path) -> None:
    """Links become files: what they point at may not be there at the other end of a mount."""
    if target is None or target == file or not target.is_file():
        return
    _remove(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    os.link(target, file)


def _write(source: IO[bytes], file: Path, look: Callable[[], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove(file)
    with file.open("wb") as target:
        while piece := source.read(CHUNK):
            look()
            target.write(piece)


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
