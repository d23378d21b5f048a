"""`dataclasses.replace` for frozen values that are replaced many times a tick: fields are copied, and no constructor runs.

A memory has two dozen fields, of which a step of a decision changes one or two; in a fleet of thousands a seventh of all that
deciding takes was spent on making the others anew. Only for classes with slots that check and compute nothing when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from plimsoll.values import made, twin

if TYPE_CHECKING:
    # Its arguments are checked as those of the original are.
    from dataclasses import replace
else:

    def replace(value, /, **changes):
        copied, writers = _parts(type(value))
        copy = copied(value)
        for name, new in changes.items():
            writers[name](copy, new)
        return copy


@cache
def _parts(kind: type) -> tuple[Callable[[Any], Any], Mapping[str, Callable[[Any, Any], None]]]:
    """What copies a value of a class, and how each of its fields is written."""
    names = [field.name for field in fields(kind)]
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} is more than its fields")
    writes = (f"copy.{name} = value.{name}" for name in names)
    lines = ("copy = Twin()", *writes, "copy.__class__ = Kind", "return copy")
    copied = made("copied(value)", lines, {"Kind": kind, "Twin": twin(kind)})
    return copied, {name: getattr(kind, name).__set__ for name in names}


__all__ = ["replace"]
