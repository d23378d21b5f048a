"""Whether a model's folder is complete: it has all files that its index names (or, without an index, that the files' own names count), and
safetensors files are as long as their headers say. It reads headers and no weights. What cannot be told from them is left to the engine.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.model import MOST_CONFIG, MOST_HEADER

_ANEW = "put the files there anew, or correct spec.model.source"
_INDEXES = ("model.safetensors.index.json", "consolidated.safetensors.index.json")
_ROW = re.compile(r"(model|consolidated)-\d{5}-of-(\d{5})\.safetensors\Z")
_UNREAD = ("dummy", "gguf", "tensorizer", "runai_streamer_sharded", "sharded_state")
"""Load formats whose weights are elsewhere, or in files that are not checked here."""


def incomplete(folder: Path, load_format: str | None = None) -> Failure | None:
    """The failure where something is missing for certain."""
    try:
        if not folder.exists():
            return Failure("ModelNotFound", f"there is no {folder}", "correct the path in spec.model.source")
        if not folder.is_dir() or load_format in _UNREAD:
            return None
        listed = [(index, file) for index in _INDEXES for file in _named_by(folder / index)]
        gone = sorted({file for index, file in listed if not (folder / file).is_file()})
        # Where there are two forms of the weights one of them is enough.
        whole = [
            index for index in _INDEXES if (folder / index).is_file() and not _lacks(index, listed, gone)
        ]
        if gone and not whole:
            message = f"{folder} lacks {len(gone)} of the files that its index names: {', '.join(gone[:3])}"
            return Failure("BadCheckpoint", message, _ANEW)
        if not any((folder / index).exists() for index in _INDEXES) and (short := _short(folder)):
            return Failure("BadCheckpoint", f"{folder} has {short} and no index", _ANEW)
        return next((found for file in sorted(folder.glob("*.safetensors")) if (found := _cut(file))), None)
    except OSError as error:
        return Failure(
            "NotWritable",
            f"{folder} cannot be read: {error.strerror or error}",
            "let the pod's user read the files",
        )


def _lacks(index: str, listed: list[tuple[str, str]], gone: list[str]) -> bool:
    return any(of == index and file in gone for of, file in listed)


def _short(folder: Path) -> str | None:
    """A file that is missing in a row like `model-00001-of-00003.safetensors`. The index often comes last, so the names are counted."""
    rows = Counter(match.groups() for file in folder.iterdir() if (match := _ROW.match(file.name)))
    found = sorted((row, of, count) for (row, of), count in rows.items() if count < int(of))
    return next((f"{count} of {int(of)} files {row}-*-of-{of}.safetensors" for row, of, count in found), None)


def _named_by(index: Path) -> list[str]:
    body = _json(index)
    listed = body.get("weight_map")
    return sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []


def _json(file: Path) -> Mapping[str, Any]:
    """The object in a JSON file; empty where there is none, about which the engine will complain."""
    try:
        if file.stat().st_size > MOST_CONFIG:
            return {}
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _cut(file: Path) -> Failure | None:
    """The failure where a file is shorter than its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= MOST_HEADER:
            return Failure("BadCheckpoint", f"{file} begins with what is no header of safetensors", _ANEW)
        text = stream.read(length)
    try:
        ends = [
            about["data_offsets"][1] for name, about in json.loads(text).items() if name != "__metadata__"
        ]
        end = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return Failure("BadCheckpoint", f"{file} begins with what is no header of safetensors", _ANEW)
    if end == size:
        return None
    return Failure("BadCheckpoint", f"{file} has {size} bytes, and its header tells of {end}", _ANEW)
