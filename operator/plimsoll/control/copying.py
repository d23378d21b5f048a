"""`dataclasses.replace` for frozen values that are replaced many times a tick: fields are copied, and no constructor runs.

A memory has two dozen fields, of which a step of a decision changes one or two; in a fleet of thousands a seventh of all that
deciding takes was spent on making the others anew. Only for classes with slots that check and compute nothing when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Its arguments are checked as those of the original are.
    from dataclasses import replace
else:

    def replace(value, /, **changes):
        kind = type(value)
        writers, writes, read = _parts(kind)
        copy = object.__new__(kind)
        for write, old in zip(writes, read(value), strict=True):
            write(copy, old)
        for name, new in changes.items():
            writers[name](copy, new)
        return copy


Write = Callable[[Any, Any], None]


@cache
def _parts(kind: type) -> tuple[Mapping[str, Write], tuple[Write, ...], Callable[[Any], tuple[Any, ...]]]:
    """How each field of a class is written, and how all of them are read."""
    names = [field.name for field in fields(kind)]
    if hasattr(kind, "__post_init__") or len(names) < 2:
        raise TypeError(f"{kind.__name__} is more than its fields")
    writers = {name: getattr(kind, name).__set__ for name in names}
    return writers, tuple(writers.values()), attrgetter(*names)


__all__ = ["replace"]
