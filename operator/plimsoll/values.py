"""Frozen dataclasses that are cheap to construct, for values of which a large fleet makes tens of thousands at each look.

Writing the fields of a frozen object is slow, as each write goes around the freeze. So the fields are written while the object has the
class of a twin, which has the same slots and is not frozen, and then the object gets its real class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

T = TypeVar("T")


def light(kind: type[T]) -> type[T]:
    """Decorates a frozen dataclass with slots: its constructor takes the same arguments as before, and a third of the time."""
    listed = plain_fields(kind)
    scope: dict[str, Any] = {"become": object.__setattr__, "Kind": kind, "Twin": twin(kind)}
    by_place: list[str] = []
    by_name = ["*"]
    for name, field in listed.items():
        scope[f"_{name}"] = field.default
        taken = name if field.default is MISSING else f"{name}=_{name}"
        (by_name if field.kw_only else by_place).append(taken)
    asked = (*by_place, *(by_name if len(by_name) > 1 else ()))
    writes = (f"self.{name} = {name}" for name in listed)
    kind.__init__ = made(  # type: ignore[method-assign]
        f"__init__(self, {', '.join(asked)})",
        ('become(self, "__class__", Twin)', *writes, "self.__class__ = Kind"),
        scope,
    )
    return kind


def plain_fields(kind: type) -> dict[str, Field[Any]]:
    """The fields of a dataclass by name. Raises TypeError where constructing it means more than writing these fields."""
    listed = {field.name: field for field in fields(kind)}
    odd = [name for name, field in listed.items() if field.default_factory is not MISSING or not field.init]
    if hasattr(kind, "__post_init__") or odd or tuple(listed) != tuple(getattr(kind, "__slots__", ())):
        raise TypeError(f"{kind.__name__} is more than its fields")
    return listed


def twin(kind: type) -> type:
    """A class with the same slots that is not frozen."""
    return type(f"{kind.__name__}Twin", (), {"__slots__": kind.__slots__})  # type: ignore[attr-defined]


def made(signature: str, lines: Iterable[str], scope: dict[str, Any]) -> Any:
    """A function compiled from text, as the dataclasses module makes its own. The text consists of field names alone."""
    text = "\n    ".join((f"def {signature}:", *lines))
    exec(text, scope)  # noqa: S102
    return scope[signature.partition("(")[0]]


__all__ = ["light", "made", "twin"]
