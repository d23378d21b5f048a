"""A model's facts as told by a pod that may read the model where the operator may not. The supervisor's `facts` writes them, in a few KiB.

A pod wrote them, so size and form are checked, and they are read by the same rules as files of a folder or the hub.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from plimsoll.api.plainjson import parsed
from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_codec import checked, model_facts
from plimsoll.facts.tensors import weights_from_tensors
from plimsoll.facts.weights import weights_from_architecture

SCHEMA: Final = 1
MOST_BYTES: Final = 1 << 20
"""The most bytes after unpacking: a config.json has a few KiB, or a hundred where it lists modules."""
_MOST_ROWS: Final = 4096
"""The most kinds of tensors: models have some hundreds, and the name of each is searched by patterns."""
_MOST_AXES: Final = 16
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What is raised for a config that cannot be read, or by text that was made to do harm."""
_LONGEST_REVISION: Final = 128
_MOST_COUNT: Final = 1 << 24
_MOST_SIZE: Final = 1 << 40


class ModelTellingUnreadable(ValueError):
    """Text that no facts pod of this release wrote, or about a model that cannot be read; the message says which part."""


def read_model(text: str, *, source: str, revision: str | None) -> ModelFacts:
    """The facts in what a pod told. `revision` is what was asked for; where the pod told which commit that is, the facts are of this."""
    told = _message(text)
    body = _unpacked(told)
    said = told.get("revision")
    if isinstance(said, str) and 0 < len(said) <= _LONGEST_REVISION:
        revision = said
    try:
        architecture = parse_config(_object(body.get("config"), "config"))
        tensors = _tensors(body.get("tensors"))
        weights = (
            weights_from_tensors(tensors, architecture)
            if tensors
            else weights_from_architecture(architecture)
        )
        return checked(
            model_facts(
                source=source,
                revision=revision,
                architecture=architecture,
                weights=weights,
                origin="facts pod",
            )
        )
    except ModelTellingUnreadable:
        raise
    except _UNREADABLE as error:  # a config that cannot be read, or a tensor of a format nobody knows
        raise ModelTellingUnreadable(f"what the facts pod told of {source}: {error}") from error


def _message(text: str) -> Mapping[str, Any]:
    told = _object(_json(text), "the message")
    if told.get("schema") != SCHEMA:
        raise ModelTellingUnreadable(f"schema is {told.get('schema')!r}; this release reads {SCHEMA}")
    return told


def _unpacked(told: Mapping[str, Any]) -> Mapping[str, Any]:
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(base64.b85decode(str(told.get("model"))), MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise ModelTellingUnreadable(f"model cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ModelTellingUnreadable(f"model is cut, or has more than {MOST_BYTES} bytes")
    return _object(_json(plain), "model")


def _json(text: str | bytes) -> object:
    try:
        found: object = parsed(text)
    except ValueError as error:
        raise ModelTellingUnreadable(f"it is no JSON: {error}") from error
    return found


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ModelTellingUnreadable(f"{name} holds a {type(value).__name__}; it must be an object")
    return value


def _tensors(rows: object) -> dict[str, tuple[str, Sequence[int]]]:
    """The tensors by name, where tensors that are alike are one that is as large as all of them."""
    if not isinstance(rows, list):
        raise ModelTellingUnreadable(f"tensors is a {type(rows).__name__}; it must be a list")
    if len(rows) > _MOST_ROWS:
        raise ModelTellingUnreadable(f"tensors has {len(rows)} kinds; at most {_MOST_ROWS} are read")
    found: dict[str, tuple[str, Sequence[int]]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != 4 or not isinstance(row[2], list):
            raise ModelTellingUnreadable(f"tensors[{number}] must be [name, dtype, shape, count]")
        name, dtype, shape, count = row
        if len(shape) > _MOST_AXES:
            raise ModelTellingUnreadable(
                f"tensors[{number}] has {len(shape)} axes; at most {_MOST_AXES} are read"
            )
        if not _whole(count, 1, _MOST_COUNT) or not all(_whole(size, 0, _MOST_SIZE) for size in shape):
            raise ModelTellingUnreadable(f"tensors[{number}] has the shape {shape!r} and the count {count!r}")
        sizes = [shape[0] * count, *shape[1:]] if shape else [count]
        # Tensors of one name may differ in type and shape, so each gets a prefix. It does not change which part a name is of.
        found[f"told{number}.{str(name).replace('*', '0')}"] = (str(dtype), sizes)
    return found


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
