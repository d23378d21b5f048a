"""Finds the facts about a model: from inline text, the built-in catalogue, a folder, or the hub.

Together with `hub` it is the only place in the core that opens files and uses the network, and only for what describes a model:
config.json and tensor headers, never weights. Without a model there is no plan, so every failure says what would help.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from plimsoll.api.plainjson import parsed
from plimsoll.api.problems import INLINE, OR, WHAT_HELPS
from plimsoll.api.quantity import parse_bytes
from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_codec import model_facts
from plimsoll.facts.models import lookup
from plimsoll.facts.tensors import weights_from_tensors
from plimsoll.facts.weights import scaled_to, weights_from_architecture

FOLDER: Final = "point to a local folder that holds the model's config.json"
CLUSTER: Final = "apply it to a cluster, whose operator reads it with a short pod of that namespace"
CATALOGUE: Final = "use a model that `plimsoll models` lists"
_LARGEST_HEADER: Final = 256 << 20
_LARGEST_CONFIG: Final = 16 << 20

Tensors = dict[str, tuple[str, Sequence[int]]]


class ModelUnknown(LookupError):
    """The model's facts could not be found; the message says why, and what would help."""

    def __init__(self, source: str, reason: str, helps: Sequence[str]) -> None:
        self.source = source
        self.reason = reason
        self.helps = tuple(helps)
        super().__init__(f"model {source}: {reason}{WHAT_HELPS}{OR.join(self.helps)}")


class ModelUnsized(ModelUnknown):
    """The model's files are whole, but they do not say its size in a way that is known; the engine may well read them."""


class ModelNeedsFactsPod(ModelUnknown):
    """Only a pod with the user's secret or volume may be able to read the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAccess:
    """How the hub is reached: a mirror's address, a proxy, a token. For None the client's own defaults are used."""

    endpoint: str | None = None
    proxy: str | None = None
    token: str | None = None
    timeout_seconds: float = 10.0


class Resolver:
    """Finds the facts of a model; without `hub` it stays offline, without `folders` it reads no local path."""

    def __init__(self, *, hub: HubAccess | None = None, folders: bool = False) -> None:
        self._hub = hub
        self._folders = folders

    def resolve(self, model: ModelSpec) -> ModelFacts:
        """The facts of a model: from inline text where there is any, since the user wrote it, else by the source's scheme."""
        if model.architecture is not None:
            size = model.architecture.weight_bytes
            return _inline(
                model.source, model.architecture.config, None if size is None else parse_bytes(size)
            )
        if model.scheme == "hf":
            return self._repository(model.location, model.revision, model.source)
        if model.scheme == "path":
            return self._path(model.location)
        return self._elsewhere(model)

    def resolve_name(self, name: str, revision: str | None = None) -> ModelFacts:
        """The facts of a model as a person names it: by a catalogue name, a repository, a folder, or a source with its scheme."""
        if "://" in name:
            return self.resolve(ModelSpec(source=name, revision=revision))
        if self._folders and (name.startswith(("/", ".", "~")) or Path(name).is_dir()):
            return self._path(str(Path(name).expanduser()))
        if name.startswith("/"):
            return self._path(name)
        return self._repository(name, revision, name)

    def _repository(self, name: str, revision: str | None, source: str) -> ModelFacts:
        """Looks for an exact catalogue entry first, then on the hub, then for a variant of a catalogue entry."""
        known = lookup(name)
        if known is not None and known.origin == "catalogue" and revision is None:
            return known
        if self._hub is None:
            if known is not None:
                return known
            reason = "the built-in catalogue does not know it and the hub may not be asked (offline)"
            raise ModelNeedsFactsPod(source, reason, ("allow the network", INLINE, FOLDER, CATALOGUE))
        try:
            from plimsoll.facts.hub import facts_from_hub  # noqa: PLC0415 - the client loads for half a second

            return facts_from_hub(name, revision, self._hub)
        except ModelUnknown as unknown:
            if known is None:
                raise
            return replace(known, origin=f"{known.origin} ({unknown.reason})")

    def _path(self, path: str) -> ModelFacts:
        folder = Path(path)
        known = lookup(_last_name(path))
        if self._folders and folder.is_dir():
            try:
                return facts_from_folder(folder)
            except ModelUnsized as unsized:
                if known is None:
                    raise
                named = _by_last_name(known, path)
                return replace(named, origin=f"{named.origin} ({unsized.reason})")
        if known is not None:
            return _by_last_name(known, path)
        reason = (
            "there is no such folder on this machine"
            if self._folders
            else "the path is inside the engine's image"
        )
        raise ModelNeedsFactsPod(
            path, f"{reason}, and the catalogue does not know {_last_name(path)!r}", (INLINE, FOLDER)
        )

    def _elsewhere(self, model: ModelSpec) -> ModelFacts:
        known = lookup(_last_name(model.location))
        if known is not None:
            return _by_last_name(known, model.source)
        reason = (
            f"{model.scheme}:// is readable only with the user's own secret or volume, and the catalogue does not know "
            f"{_last_name(model.location)!r}"
        )
        # Where folders are not read this is an operator, which cannot be told to apply it to a cluster or to read a local folder.
        helps = (CLUSTER, INLINE, FOLDER) if self._folders else (INLINE,)
        raise ModelNeedsFactsPod(model.source, reason, helps)


def _last_name(location: str) -> str:
    """The model's name that a path most likely has in it: that of a hub's cache folder, of the last folder, or of an image without its tag."""
    parts = [part for part in location.partition("@")[0].split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    if cached is not None:
        return cached.removeprefix("models--").replace("--", "/")
    return parts[-1].partition(":")[0] if parts else location


def _by_last_name(known: ModelFacts, source: str) -> ModelFacts:
    note = "" if known.origin == "catalogue" else f", {known.origin.removeprefix('catalogue: ')}"
    return replace(known, source=source, origin=f"catalogue: by the last part of the path{note}")


def _inline(source: str, text: str, weight_bytes: int | None) -> ModelFacts:
    facts = facts_of(source, _object(source, "spec.model.architecture.config", text), None, "inline")
    if weight_bytes is None:
        return facts
    weights = scaled_to(facts.weights, weight_bytes)
    return model_facts(
        source=source, revision=None, architecture=facts.architecture, weights=weights, origin="inline"
    )


def facts_from_folder(folder: Path) -> ModelFacts:
    """Facts of a checkpoint on this machine, from its config.json and the headers of its safetensors files."""
    config = config_of(folder)
    return facts_of(str(folder), config, _folder_tensors(folder), "folder")


def config_of(folder: Path) -> Mapping[str, object]:
    path = next((folder / name for name in ("config.json", "params.json") if (folder / name).is_file()), None)
    if path is None:
        raise ModelUnknown(
            str(folder), "the folder holds no config.json", ("name the folder of the model itself", INLINE)
        )
    config = _object(str(folder), path.name, _read(str(folder), path))
    extra = folder / "hf_quant_config.json"
    if "quantization_config" not in config and extra.is_file():
        config = {
            **config,
            "quantization_config": _object(str(folder), extra.name, _read(str(folder), extra)),
        }
    sentences = folder / "sentence_bert_config.json"
    if sentences.is_file():
        bound = _object(str(folder), sentences.name, _read(str(folder), sentences)).get("max_seq_length")
        config = {**config, **({"max_seq_length": bound} if isinstance(bound, int) else {})}
    return config


def _read(source: str, path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise ModelUnknown(source, f"{path.name} is larger than {_LARGEST_CONFIG >> 20} MiB", (INLINE,))
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelUnknown(source, f"{path.name} cannot be read: {error}", (INLINE,)) from error


def _object(source: str, name: str, text: str) -> Mapping[str, object]:
    try:
        found = parsed(text)
    except ValueError as error:
        raise ModelUnknown(source, f"{name} is not JSON: {error}", ("copy config.json whole",)) from error
    if not isinstance(found, dict):
        raise ModelUnknown(
            source, f"{name} holds a {type(found).__name__}, not an object", ("copy config.json whole",)
        )
    return found


def facts_of(
    source: str,
    config: Mapping[str, object],
    tensors: Tensors | None,
    origin: str,
    revision: str | None = None,
) -> ModelFacts:
    try:
        architecture = parse_config(config)
        weights = (
            weights_from_tensors(tensors, architecture)
            if tensors
            else weights_from_architecture(architecture)
        )
    except ValueError as error:  # a ConfigError, or a tensor of a format nobody knows
        raise ModelUnsized(source, str(error), ("check the model's files", INLINE)) from error
    return model_facts(
        source=source, revision=revision, architecture=architecture, weights=weights, origin=origin
    )


def _folder_tensors(folder: Path) -> Tensors | None:
    """The tensors in the headers of the files that the index names, else of all files; None where a file is missing or there are none."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        listed = _object(str(folder), index.name, _read(str(folder), index)).get("weight_map")
        names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
        files = [folder / name for name in names if Path(name).name == name]
    else:
        files = sorted(folder.glob("model*.safetensors")) or sorted(folder.glob("*.safetensors"))
    if not files or not all(file.is_file() for file in files):
        return None
    tensors: Tensors = {}
    try:
        for file in files:
            with file.open("rb") as stream:
                tensors.update(_header(str(folder), file.name, stream))
    except OSError as error:
        raise ModelUnknown(str(folder), f"its tensors cannot be read: {error}", (INLINE,)) from error
    return tensors


def _header(source: str, name: str, stream: BinaryIO) -> Tensors:
    """The tensors of a safetensors file, which begins with a JSON header, after the header's length, that has every tensor's dtype and shape."""
    start = stream.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= _LARGEST_HEADER:
        raise ModelUnknown(
            source, f"{name} is no safetensors file: its header would have {length} bytes", (INLINE,)
        )
    listed = _object(source, f"the header of {name}", stream.read(length).decode("utf-8", "replace"))
    tensors: Tensors = {}
    for tensor, about in listed.items():
        if tensor == "__metadata__" or not isinstance(about, dict):
            continue
        shape = about.get("shape")
        tensors[tensor] = (
            str(about.get("dtype")),
            [int(size) for size in shape] if isinstance(shape, list) else [],
        )
    return tensors
