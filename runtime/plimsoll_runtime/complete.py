"""Whether a model's folder is complete: it has all files that its index names (or, without an index, that the files' own names count), and
safetensors files are as long as their headers say. It reads headers and no weights. What cannot be told from them is left to the engine.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.model import MOST_CONFIG, MOST_HEADER
from plimsoll_runtime.sources.choice import OF_TRAINING

_ANEW = "put the files there anew, or correct spec.model.source"
_INDEXES = {"model": "model.safetensors.index.json", "consolidated": "consolidated.safetensors.index.json"}
"""By how the names of the files begin that each tells of: the common form of the weights, and the maker's own."""
_ROW = re.compile(r"(model|consolidated)-\d{5}-of-(\d{5})\.safetensors\Z")
_UNREAD = ("dummy", "gguf", "npcache", "pt", "tensorizer", "runai_streamer_sharded", "sharded_state")
"""Load formats whose weights are elsewhere, or in files that are not checked here."""


def incomplete(folder: Path, load_format: str | None = None) -> Failure | None:
    """The failure where something is missing for certain."""
    try:
        if not folder.exists():
            return Failure("ModelNotFound", f"there is no {folder}", "correct the path in spec.model.source")
        if not folder.is_dir() or load_format in _UNREAD:
            return None
        # Indexes are small files, so that those of both forms come with either; only the form that is loaded has to be there.
        either = load_format in (None, "auto")
        forms = tuple(_INDEXES) if either else ("consolidated" if load_format == "mistral" else "model",)
        listed = {form: files for form in forms if (files := _named_by(folder / _INDEXES[form]))}
        gone = {
            form: [file for file in files if not (folder / file).is_file()] for form, files in listed.items()
        }
        wanted = [
            lost
            for form, lost in gone.items()
            if not (either and lost == listed[form] and _has_other(folder, form))
        ]
        # Where there are two forms of the weights one of them is enough.
        if wanted and all(wanted):
            lost = sorted({file for one in wanted for file in one})
            message = f"{folder} lacks {len(lost)} of the files that its index names: {', '.join(lost[:3])}"
            return Failure("BadCheckpoint", message, _ANEW)
        indexed = any((folder / _INDEXES[form]).exists() for form in forms)
        if not indexed and (short := _short(folder, forms)):
            return Failure("BadCheckpoint", f"{folder} has {short} and no index", _ANEW)
        return next((found for file in sorted(folder.glob("*.safetensors")) if (found := _cut(file))), None)
    except OSError as error:
        return Failure(
            "NotWritable",
            f"{folder} cannot be read: {error.strerror or error}",
            "let the pod's user read the files",
        )


def _has_other(folder: Path, form: str) -> bool:
    """Whether weights of another form than this one are there. Pickles are read only where there are no safetensors."""
    names = [file.name for file in folder.iterdir()]
    safe = {name.startswith("consolidated") for name in names if name.endswith(".safetensors")}
    if safe:
        return (form == "model") in safe
    return any(name.endswith((".bin", ".pt")) and not name.startswith(OF_TRAINING) for name in names)


def _short(folder: Path, forms: Sequence[str]) -> str | None:
    """A file that is missing in a row like `model-00001-of-00003.safetensors`. The index often comes last, so the names are counted."""
    matches = (match for file in folder.iterdir() if (match := _ROW.match(file.name)) and match[1] in forms)
    rows = Counter(match.groups() for match in matches)
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
