"""Facts of models for planning, looked up once and kept: reading a hub takes seconds, and thousands may serve one model.

What could not be read is asked for again after a while; a source that only the user's own pod may read is said as such.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.resolve import ModelNeedsFactsPod, ModelUnknown, Resolver
from plimsoll.planning.planner import PlanFacts

MOST_KEPT: Final = 512
RETRY_SECONDS: Final = 120.0
MODEL: Final = "model.source"
DRAFT: Final = "speculative.model"


@dataclass(frozen=True, slots=True)
class Missing:
    """Why nothing is known of a model."""

    problem: str
    elsewhere: bool = False
    """Whether a pod in its namespace, with the owner's Secret or volume, may be able to read it."""


Found = ModelFacts | Missing


@dataclass(frozen=True, slots=True)
class _Kept:
    found: Found
    until: float | None
    """When it is asked for again; None for facts, which hold for good, as a revision never changes."""


class Models:
    """`clock` is the loop's: seconds that only grow."""

    def __init__(self, resolver: Resolver, clock: Callable[[], float]) -> None:
        self._resolver = resolver
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Found]] = {}

    async def look(self, spec: LLMDeploymentSpec) -> Mapping[str, Found]:
        """What is known of each model of the spec, by the field that names it."""
        found = {MODEL: await self._find(spec.model)}
        if spec.speculative is not None and spec.speculative.model is not None:
            found[DRAFT] = await self._find(ModelSpec(source=spec.speculative.model))
        return found

    def knows(self, spec: LLMDeploymentSpec) -> bool:
        """Whether facts of its model are at hand without asking anybody."""
        return _key(spec.model) in self._kept

    def retry_seconds(self, facts: PlanFacts) -> float | None:
        """When facts that are missing now may be there."""
        return RETRY_SECONDS if facts.problem is not None else None

    async def _find(self, model: ModelSpec) -> Found:
        key = _key(model)
        kept = self._kept.get(key)
        if kept is not None and (kept.until is None or kept.until > self._clock()):
            self._kept.move_to_end(key)
            return kept.found
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(asyncio.to_thread(self._ask, model))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        found = await asyncio.shield(task)
        self._kept[key] = _Kept(found, self._clock() + RETRY_SECONDS if isinstance(found, Missing) else None)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def _ask(self, model: ModelSpec) -> Found:
        try:
            return self._resolver.resolve(model)
        except ModelUnknown as unknown:
            return Missing(str(unknown), isinstance(unknown, ModelNeedsFactsPod))


def plan_facts(found: Mapping[str, Found], readings: Mapping[str, str] | None = None) -> PlanFacts:
    """The same for planning. `readings` say, by field, who is reading a model that is missing."""
    readings = readings or {}
    known = {field: one for field, one in found.items() if not isinstance(one, Missing)}
    problems = [
        one.problem for field, one in found.items() if isinstance(one, Missing) and field not in readings
    ]
    return PlanFacts(
        model=known.get(MODEL),
        draft=known.get(DRAFT),
        problem=problems[0] if problems else None,
        reading="; ".join(readings.values()) if readings and not problems else None,
    )


def _key(model: ModelSpec) -> str:
    return repr(sorted(model.to_dict().items()))
