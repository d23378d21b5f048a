"""What a model is, from files that only this pod may read: its config.json and the headers of its tensors, never weights.

The answer has to fit into a termination message, 4 KiB. Layers and experts repeat, so tensors that differ in nothing but a number are
told once with their count, and all of it is compressed. What it means is the operator's to find out: rules about models live there.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from plimsoll_runtime.failure import MOST_BYTES, Failure

MOST_CONFIG = 16 << 20
MOST_HEADER = 256 << 20
LONG_LIST = 16
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_REMEDY = "check spec.model.source and that the pod's user may read the files"


class ModelUnreadable(Exception):
    """Carries the failure to tell."""

    def __init__(self, message: str, remedy: str = _REMEDY) -> None:
        super().__init__(message)
        self.failure = Failure("BadCheckpoint", message, remedy)


class Tensor(NamedTuple):
    """One or many that are alike: numbers in the name are asterisks."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Model(NamedTuple):
    config: Mapping[str, Any]
    tensors: Mapping[Tensor, int]
    """How many there are of each; none where the model has no headers to read."""


class Files(Protocol):
    """Where a model's files are: a folder of this machine, or a hub, store or registry."""

    @property
    def name(self) -> str: ...
    @property
    def files(self) -> Mapping[str, int]:
        """Their sizes by name."""
        ...

    def open(self, path: str) -> BinaryIO: ...


class Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = str(folder)
        self.files: Mapping[str, int] = {
            file.name: file.stat().st_size for file in sorted(folder.glob("*")) if file.is_file()
        }

    def open(self, path: str) -> BinaryIO:
        return (self._folder / path).open("rb")


def model_of(folder: Path) -> Model:
    try:
        files = Folder(folder)
    except OSError as error:
        raise ModelUnreadable(f"{folder} cannot be read: {error.strerror or error}") from error
    return read_model(files)


def read_model(where: Files) -> Model:
    config = _config(where)
    layers = _layers(config)
    counts: Counter[Tensor] = Counter()
    for file in _tensor_files(where):
        try:
            with where.open(file) as stream:
                listed = header(file, stream)
        except OSError as error:
            raise ModelUnreadable(
                f"{file} of {where.name} cannot be read: {error.strerror or error}"
            ) from error
        for name, (dtype, shape) in listed.items():
            counts[Tensor(folded(name, layers), dtype, shape)] += 1
    return Model(config, counts)


def folded(name: str, layers: int | None) -> str:
    """Layers past the model's own keep their number: they are drafts, and count as such."""
    layer = _LAYER.search(name)
    if layer is not None and layers is not None and int(layer[1]) >= layers:
        end = layer.end()
        return name[:end] + _NUMBER.sub("*", name[end - 1 :])[1:]
    return _NUMBER.sub("*", name)


def told(model: Model, revision: str | None = None) -> str:
    """JSON of at most 4 KiB; lists of modules go first, since exact tensors say the same. `revision` never changes what it names."""
    about = {"schema": 1} if revision is None else {"schema": 1, "revision": revision}
    for config in (model.config, _shortened(model.config)):
        body = {
            "config": config,
            "tensors": [[*tensor, count] for tensor, count in sorted(model.tensors.items())],
        }
        packed = base64.b85encode(zlib.compress(json.dumps(body, sort_keys=True).encode(), 9)).decode()
        text = json.dumps({**about, "model": packed})
        if len(text.encode()) <= MOST_BYTES:
            return text
    raise ModelUnreadable(
        f"what there is to say of the model takes {len(text.encode())} bytes, and {MOST_BYTES} can be told",
        "write the model's config.json into spec.model.architecture.config",
    )


def _shortened(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without long lists of names below; lists that say what each layer is stay."""
    short: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            short[key] = _shortened(value)
        elif not (isinstance(value, list) and len(value) > LONG_LIST and _names(value)):
            short[key] = value
    return short


def _names(values: Sequence[object]) -> bool:
    return len({str(value) for value in values}) > LONG_LIST


def _config(where: Files) -> dict[str, Any]:
    found = next((name for name in ("config.json", "params.json") if name in where.files), None)
    if found is None:
        raise ModelUnreadable(f"{where.name} holds no config.json")
    config = _json(where, found)
    extra = "hf_quant_config.json"
    if "quantization_config" not in config and extra in where.files:
        config["quantization_config"] = _json(where, extra)
    sentences = "sentence_bert_config.json"
    if sentences in where.files:
        bound = _json(where, sentences).get("max_seq_length")
        config |= {"max_seq_length": bound} if isinstance(bound, int) else {}
    return config


def _json(where: Files, name: str) -> dict[str, Any]:
    try:
        if where.files[name] > MOST_CONFIG:
            raise ModelUnreadable(f"{name} of {where.name} is larger than {MOST_CONFIG >> 20} MiB")
        with where.open(name) as stream:
            return _object(name, stream.read().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ModelUnreadable(f"{name} of {where.name} cannot be read: {error}") from error


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelUnreadable(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelUnreadable(f"{name} holds a {type(found).__name__}, not an object")
    return found


def _layers(config: Mapping[str, Any]) -> int | None:
    """The model's own, of its text part where it has several."""
    for part in (config, config.get("text_config"), config.get("llm_config")):
        if isinstance(part, dict):
            for name in ("num_hidden_layers", "n_layers", "n_layer", "num_layers"):
                if isinstance(part.get(name), int):
                    return int(part[name])
    return None


def _tensor_files(where: Files) -> list[str]:
    """Those that the index names, else all; none where one is missing."""
    index = "model.safetensors.index.json"
    if index in where.files:
        listed = _json(where, index).get("weight_map")
        names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
        files = [name for name in names if "/" not in name]
    else:
        # Repositories have folders too, of other forms of the same weights.
        found = sorted(name for name in where.files if name.endswith(".safetensors") and "/" not in name)
        files = [name for name in found if name.startswith("model")] or found
    return files if all(name in where.files for name in files) else []


def header(name: str, stream: BinaryIO) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape by name: what a safetensors file begins with."""
    start = stream.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= MOST_HEADER:
        raise ModelUnreadable(f"{name} is no safetensors file: its header would have {length} bytes")
    listed = _object(f"the header of {name}", stream.read(length).decode("utf-8", "replace"))
    found = {}
    for tensor, about in listed.items():
        if tensor == "__metadata__" or not isinstance(about, dict):
            continue
        shape = about.get("shape")
        sizes = tuple(int(size) for size in shape) if isinstance(shape, list) else ()
        found[tensor] = (str(about.get("dtype")), sizes)
    return found
