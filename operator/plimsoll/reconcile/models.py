"""Facts of models for planning, looked up once and kept: reading a hub takes seconds, and thousands may serve one model.

What could not be read is asked for again after a while; a source that only the user's own pod may read is said as such.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.resolve import ModelUnknown, Resolver
from plimsoll.planning.planner import PlanFacts

MOST_KEPT: Final = 512
RETRY_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class _Kept:
    found: ModelFacts | str
    """Facts, or why there are none."""
    until: float | None
    """When it is asked for again; facts hold for good, as a revision does not change."""


class Models:
    """`clock` is the loop's: seconds that only grow."""

    def __init__(self, resolver: Resolver, clock: Callable[[], float]) -> None:
        self._resolver = resolver
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._asking: dict[str, asyncio.Task[ModelFacts | str]] = {}

    async def facts(self, spec: LLMDeploymentSpec) -> PlanFacts:
        """What a plan of this spec needs to know of its models."""
        model = await self._find(spec.model)
        draft: ModelFacts | str | None = None
        if spec.speculative is not None and spec.speculative.model is not None:
            draft = await self._find(ModelSpec(source=spec.speculative.model))
        problem = next((found for found in (model, draft) if isinstance(found, str)), None)
        return PlanFacts(
            model=None if isinstance(model, str) else model,
            draft=None if isinstance(draft, str) else draft,
            problem=problem,
        )

    def knows(self, spec: LLMDeploymentSpec) -> bool:
        """Whether facts of its model are at hand without asking anybody."""
        return _key(spec.model) in self._kept

    def retry_seconds(self, facts: PlanFacts) -> float | None:
        """When facts that are missing now may be there."""
        return RETRY_SECONDS if facts.problem is not None else None

    async def _find(self, model: ModelSpec) -> ModelFacts | str:
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
        self._kept[key] = _Kept(found, self._clock() + RETRY_SECONDS if isinstance(found, str) else None)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def _ask(self, model: ModelSpec) -> ModelFacts | str:
        try:
            return self._resolver.resolve(model)
        except ModelUnknown as unknown:
            return str(unknown)


def _key(model: ModelSpec) -> str:
    return repr(sorted(model.to_dict().items()))
