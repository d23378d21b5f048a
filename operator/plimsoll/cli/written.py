"""Files that options have commands write: looked at before the work that they are about, and never one that the same command reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from plimsoll.cli.errors import BadInput
from plimsoll.cli.inputs import resource_files


def check_writable(option: str, name: str, *reads: str | None) -> None:
    """Raises BadInput where a file cannot be written, or is among what the command `reads`, which would be lost by it."""
    file = Path(name).resolve()
    lost = next((read for read in reads if read is not None and _is_among(file, read)), None)
    if lost is not None:
        raise BadInput(f"{option} {name}: {lost} is read from there, and would be lost; name another file")
    try:
        try_writing(file)
    except OSError as error:
        raise _unwritable(option, name, error) from None


def try_writing(file: Path) -> None:
    """Raises OSError where a file cannot be written. An older one of that name is left as it is, and where there is none, no file is left."""
    is_new = not file.exists()
    with file.open("ab"):
        pass
    if is_new:
        file.unlink()


def write_file(option: str, name: str, text: str) -> None:
    """Writes a file. Its text is encoded first, so that an older one is not emptied if that fails, as names in it may be no valid text."""
    made = text.encode("utf-8", errors="backslashreplace")
    try:
        Path(name).write_bytes(made)
    except OSError as error:
        raise _unwritable(option, name, error) from None


def _is_among(file: Path, read: str) -> bool:
    """By whatever name, as links have others. A terminal or a pipe loses nothing, and may be both."""
    with suppress(OSError):  # what cannot be read is told by whoever reads it
        names = resource_files(Path(read)) if Path(read).is_dir() else [read]
        return file.is_file() and any(Path(one).exists() and file.samefile(one) for one in names)
    return False


def _unwritable(option: str, name: str, error: OSError) -> BadInput:
    return BadInput(f"{option} {name}: cannot be written: {error.strerror}")
