"""Frozen values to canonical JSON and back, by their types alone: equal values have equal bytes.

Only the types that plans are made of are handled (dataclasses, enums, tuples, string-keyed mappings, optionals, scalars); any
other type raises at once instead of surprising somebody in a ConfigMap. Fields that hold their default are left out, so that a
plan written before a field existed reads like one where the field has its default.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
Decoder = Callable[[Any, str], Any]
Encoder = Callable[[Any], Any]
_AS_THEY_ARE: Final = frozenset({bool, int, str, type(None)})
_SCALARS: Final = (str, int, float, bool)


class CodecError(ValueError):
    """JSON that is no value of the type asked for; the message names the place and what would be right."""


def encode(value: Any) -> Any:
    """The JSON form of a value."""
    return _encoder(type(value))(value)


def canonical(value: Any) -> bytes:
    """Sorted keys, no spaces, plain UTF-8: equal values have equal bytes."""
    text = json.dumps(
        encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest(value: Any) -> str:
    """Sixteen hex digits of a hash of the canonical bytes: enough to tell plans apart, short enough to read aloud."""
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def decode(kind: type[T], data: Any, *, newer: bool = False) -> T:
    """The value of its JSON form. With `newer` fields that are not known are passed over, as a newer version may have written them."""
    value: T = _decoder(cast(Hashable, kind), newer)(data, kind.__name__)
    return value


def salvaged(kind: type[T], data: Any) -> T:
    """A value read as far as possible from what a newer version wrote: an unknown field is passed over, and one that cannot be read gets
    its default, or is itself read as far as possible. For types whose every field has a default."""
    if not isinstance(data, dict):
        raise CodecError(f"{kind.__name__} is {data!r}; it must be an object")
    found = {}
    for name, hint in typing.get_type_hints(kind).items():
        if name not in data:
            continue
        try:
            found[name] = _decoder(hint)(data[name], name)
        except CodecError:
            if _has_defaults_only(hint) and isinstance(data[name], dict):
                found[name] = salvaged(hint, data[name])
    return kind(**found)


def _has_defaults_only(kind: Any) -> bool:
    """Whether a type is a dataclass whose every field has a default."""
    return dataclasses.is_dataclass(kind) and all(
        default is not _REQUIRED for _, default in _defaults(cast(Hashable, kind))
    )


_REQUIRED: Final = object()
"""In place of the default of a field that has none."""


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass, each with its default."""

    def default(item: dataclasses.Field[Any]) -> Any:
        if item.default is not dataclasses.MISSING:
            return item.default
        return _REQUIRED if item.default_factory is dataclasses.MISSING else item.default_factory()

    return tuple((item.name, default(item)) for item in dataclasses.fields(kind))


def _made_encoder(kind: type) -> Encoder:
    if kind in _AS_THEY_ARE:
        return lambda value: value
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, float):
        return _number
    if issubclass(kind, str | int):
        return lambda value: value
    if issubclass(kind, tuple | list):
        return lambda value: [
            item if type(item) in _AS_THEY_ARE else _encoder(type(item))(item) for item in value
        ]
    if issubclass(kind, Mapping):
        return lambda value: {str(key): encode(item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _fields(kind)
    raise CodecError(f"a {kind.__name__} has no JSON form")


_encoder: Callable[[type], Encoder] = cache(_made_encoder)
"""The encoder of a type, worked out once: a plan has thousands of values, and is written in each turn."""


def _number(value: float) -> float | int:
    if not math.isfinite(value):
        raise CodecError(f"{value} has no JSON form")
    # An API server returns 2.0 as 2, and the two are equal, so both are written as 2.
    return int(value) if value.is_integer() else value


def _fields(kind: type) -> Encoder:
    defaults = _defaults(cast(Hashable, kind))

    def write(value: Any) -> Any:
        found = {}
        for name, default in defaults:
            item = getattr(value, name)
            if item is default:
                continue
            item_type = type(item)
            if item_type is not type(default) or item != default:
                found[name] = item if item_type in _AS_THEY_ARE else _encoder(item_type)(item)
        return found

    return write


@cache
def _decoder(kind: Any, newer: bool = False) -> Decoder:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(kind, newer)
    if origin is tuple:
        return _sequence(kind, newer)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(kind, newer)
    if isinstance(kind, type):
        if issubclass(kind, Enum):
            return _enum(kind)
        if dataclasses.is_dataclass(kind):
            return _dataclass(kind, newer)
        if kind in _SCALARS:
            return _scalar(kind)
    raise CodecError(f"{kind} is no type that plans are made of")


def _scalar(kind: type) -> Decoder:
    def read(data: Any, place: str) -> Any:
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
            raise CodecError(f"{place} is {data!r}; it must be of type {kind.__name__}")
        return data

    return read


def _enum(kind: type[Enum]) -> Decoder:
    def read(data: Any, place: str) -> Any:
        try:
            return kind(data)
        except ValueError:
            known = ", ".join(str(member.value) for member in kind)
            raise CodecError(f"{place} is {data!r}; it must be one of {known}") from None

    return read


def _optional(kind: Any, newer: bool) -> Decoder:
    inner = [option for option in typing.get_args(kind) if option is not type(None)]
    if len(inner) != 1:
        raise CodecError(f"{kind} is no type that plans are made of")

    def read(data: Any, place: str) -> Any:
        return None if data is None else _decoder(inner[0], newer)(data, place)

    return read


def _sequence(kind: Any, newer: bool) -> Decoder:
    options = typing.get_args(kind)
    fixed_length = not (len(options) == 2 and options[1] is Ellipsis)

    def read(data: Any, place: str) -> Any:
        if not isinstance(data, list) or (fixed_length and len(data) != len(options)):
            raise CodecError(f"{place} is {data!r}; it must be a list")
        readers = (
            [_decoder(option, newer) for option in options]
            if fixed_length
            else [_decoder(options[0], newer)] * len(data)
        )
        return tuple(
            reader(item, f"{place}[{index}]")
            for index, (reader, item) in enumerate(zip(readers, data, strict=True))
        )

    return read


def _mapping(kind: Any, newer: bool) -> Decoder:
    key, value = typing.get_args(kind)
    if key is not str:
        raise CodecError(f"{kind} has no canonical form: keys must be strings")

    def read(data: Any, place: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{place} is {data!r}; it must be an object")
        reader = _decoder(value, newer)
        return {name: reader(item, f"{place}.{name}") for name, item in data.items()}

    return read


def _dataclass(kind: type, newer: bool) -> Decoder:
    hints = typing.get_type_hints(kind)

    def read(data: Any, place: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{place} is {data!r}; it must be an object")
        unknown = sorted(set(data) - set(hints))
        if unknown and not newer:
            raise CodecError(f"{place}.{unknown[0]} is not known; a newer version may have written it")
        missing = [name for name, default in _defaults(kind) if default is _REQUIRED and name not in data]
        if missing:
            raise CodecError(f"{place}.{missing[0]} is missing")
        return kind(
            **{
                name: _decoder(hints[name], newer)(item, f"{place}.{name}")
                for name, item in data.items()
                if name in hints
            }
        )

    return read
