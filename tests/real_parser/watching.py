"""Which fields of resource and plan the engine's command line is made from, found by watching it being made.

So a field that becomes a flag tomorrow is known without a list that somebody must remember.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

import pytest

from plimsoll.api.base import ApiModel
from plimsoll.engines import ENGINES
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.settings import EngineSettings, LoraSlots, RopeScaling, Speculation

PLANNED = (EngineSettings, Layout, LoraSlots, RopeScaling, Speculation)
Place = tuple[str, str]
"""A class of the API or of the plan, and one of its fields."""


@dataclass
class Watched:
    """In how many command lines a field was read, and in how many it said something, by what it said."""

    read: Counter[Place] = field(default_factory=Counter)
    said: Counter[Place] = field(default_factory=Counter)
    values: Counter[tuple[str, str, Any]] = field(default_factory=Counter)

    def silent(self, least: int) -> list[Place]:
        """Fields that say something in fewer lines than that."""
        return sorted(place for place in self.read if self.said[place] < least)

    def _count(self, seen: set[tuple[type, str, Any, bool]]) -> None:
        places = {(of.__name__, name): of for of, name, _, _ in seen}
        self.read.update(places.keys())
        self.said.update({(of.__name__, name) for of, name, _, says in seen if says})
        self.values.update({(of.__name__, name, value) for of, name, value, says in seen if says})


@contextmanager
def watched(engine: str = "vllm") -> Iterator[Watched]:
    found, seen = Watched(), set[tuple[type, str, Any, bool]]()
    active, genuine = False, ENGINES[engine]

    def telling(self: Any, name: str) -> Any:
        nonlocal active
        value = object.__getattribute__(self, name)
        if active:
            active = False  # to find a default reads more
            of: type = type(self)
            defaults = _defaults(of)
            if name in defaults:
                shown = value if isinstance(value, str | int | bool) else None
                seen.add((of, name, shown, value != defaults[name]))
            active = True
        return value

    def command(*told: Any, **more: Any) -> Any:
        nonlocal active
        active = True
        try:
            return genuine(*told, **more)
        finally:
            active = False
            found._count(seen)
            seen.clear()

    with pytest.MonkeyPatch.context() as patch:
        for of in (ApiModel, *PLANNED):
            patch.setattr(of, "__getattribute__", telling)
        patch.setitem(ENGINES, engine, command)
        yield found


@cache
def _defaults(of: type) -> dict[str, Any]:
    """What each field is where nothing was said."""
    if is_dataclass(of):
        return {one.name: one.default for one in fields(of)}
    declared = of.__pydantic_fields__.items()  # type: ignore[attr-defined]
    return {name: info.get_default(call_default_factory=True) for name, info in declared}
