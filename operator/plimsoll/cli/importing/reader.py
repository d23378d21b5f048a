"""A map out of somebody's manifest, read key by key: what nobody took is lost, and said with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.cli.importing.draft import Draft, ImportProblem, is_secret, leaves

_MOST_LEAVES = 4


class Reader:
    """A map and its place in the document."""

    def __init__(self, value: Any, path: str, draft: Draft) -> None:
        if value is not None and not isinstance(value, Mapping):
            raise ImportProblem(f"{path}: must be a map, and is {value!r}")
        self._left: dict[str, Any] = {str(key): item for key, item in (value or {}).items()}
        self.path = path
        self.draft = draft

    def __contains__(self, key: str) -> bool:
        """Whether the key is there, holds something, and was not taken yet."""
        return self._left.get(key) is not None

    def names(self) -> tuple[str, ...]:
        """What nobody has taken yet."""
        return tuple(self._left)

    def peek(self, key: str) -> Any:
        """A key's value, which stays to be taken."""
        return self._left.get(key)

    def at(self, key: str) -> str:
        """The path of a key in the document."""
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str) -> Any:
        """A key's value, which counts as read from now on."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str | None:
        """Take a key that must hold text; None where it is absent or empty."""
        value = self.take(key)
        if value is None or value == "":
            return None
        if isinstance(value, Mapping | list):
            raise ImportProblem(f"{self.at(key)}: must be text, and is {value!r}")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def below(self, key: str) -> Reader:
        """Take a key that must hold a map, as a reader of that map."""
        return Reader(self.take(key), self.at(key), self.draft)

    def items(self, key: str) -> list[Any]:
        """Take a key that must hold a list."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ImportProblem(f"{self.at(key)}: must be a list, and is {value!r}")
        return value

    def each(self, key: str) -> list[Reader]:
        """Take a key that must hold a list of maps, as a reader of each."""
        return [
            Reader(item, f"{self.at(key)}[{place}]", self.draft) for place, item in enumerate(self.items(key))
        ]

    def what(self, key: str, value: Any) -> str:
        """A key and its value as messages show them."""
        return f"{self.at(key)}: {value}"

    def put(self, key: str, path: str, value: Any = None) -> None:
        """Give one key its field, as it stands or as the value handed in."""
        raw = self.take(key)
        if raw is not None and raw != "":
            self.draft.put(path, raw if value is None else value, self.what(key, raw))

    def put_least_replicas(self) -> None:
        """Every autoscaler's minReplicas. Zero says only that replicas may go, not what brings one back."""
        low = self.take("minReplicas")
        if low == 0:
            why = "no replica at all needs scaling.zero.wake, which says what brings one back"
            self.draft.lose(self.what("minReplicas", low), why)
        elif low is not None:
            self.draft.put("scaling.min", low, self.what("minReplicas", low))

    def lose(self, key: str, why: str) -> None:
        """Say that a key is lost, with everything below it."""
        value = self.take(key)
        if value is None:
            return
        found = leaves(value, self.at(key))
        if len(found) > _MOST_LEAVES:
            self.draft.lose(f"{self.at(key)} ({len(found)} values)", why)
            return
        for path, item in found:
            self.draft.lose(f"{path}: {'(hidden)' if is_secret(path) else item}", why)

    def leave(self, why: str, reasons: Mapping[str, str] | None = None) -> None:
        """Say that all keys that nobody took are lost, with the reason of each where `reasons` has one."""
        for key in list(self._left):
            self.lose(key, (reasons or {}).get(key, why))
