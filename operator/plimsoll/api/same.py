"""A frozen value as a key of what is remembered of it: by which one it is, and not by all that it says."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Same(Generic[T]):
    """Equal to what holds the very same value. A spec has hundreds of fields, and cannot be hashed; but one turn asks ten times
    about one object, which nobody can change meanwhile."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
