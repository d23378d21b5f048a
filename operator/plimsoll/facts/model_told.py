"""A model's facts as a pod told them that may read the model where the operator may not: a few KiB, made by the supervisor's `facts`.

It was written by a pod, so it is held to a size and a form, and read by the same rules as a folder's or the hub's files.
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
"""Unpacked: a config.json is a few KiB, and lists of modules make some of them a hundred."""
_MOST_ROWS: Final = 4096
"""Kinds of tensors: models have some hundreds, and each is searched for what its name says."""
_MOST_AXES: Final = 16
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What text that was made to do harm raises, besides what a config that cannot be read does."""
_LONGEST_REVISION: Final = 128
_MOST_COUNT: Final = 1 << 24
_MOST_SIZE: Final = 1 << 40


class ModelTellingUnreadable(ValueError):
    """Text that no facts pod of this release wrote, or of a model that nobody knows; says which part."""


def read_model(text: str, *, source: str, revision: str | None) -> ModelFacts:
    """`revision` is what was asked for; where the pod told what that stands for, the facts hold for this."""
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
    """Those that are alike as one that is as large as all of them."""
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
        # Tensors of one name may differ in type and shape; what stands before the name says nothing of its part.
        found[f"told{number}.{str(name).replace('*', '0')}"] = (str(dtype), sizes)
    return found


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
