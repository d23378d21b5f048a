"""Engines with other settings than planned: what a retune may change, and what an engine is with the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.capacity import capacity_of
from plimsoll.control.retune import Consent, Knobs
from plimsoll.control.retune.scene import changed, fixed_settings, knobs_of
from plimsoll.control.situation import Capacity
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.task import Task
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.simulate.steps import Limits, StepTimes, believed, limits_of, steps_ahead

Settings = Mapping[str, str]
"""As spec.tuning.allow spells them; those that are not as planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A replica with other settings, as the planner believes."""

    times: StepTimes
    limits: Limits
    capacity: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A change of the engines' settings that is tried on some of them."""

    variant: Variant
    replicas: int
    """How many run with the change; 0: they go back."""
    surge: bool
    """One with the change comes before one without it goes."""
    adopt: bool
    """The change is good: all replicas that start from now on have it."""
    site: int = 0
    """Of which set's replicas, by its place in the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    consent: Consent
    knobs: Knobs
    """As planned."""
    has_watermark: bool
    """The engine's version has the flag."""
    restarts: Restarts
    variant: Callable[[Settings], Variant]
    fixed: bool = False
    """A person fixed the number of replicas, so it is not counted how many the load asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSet:
    """What the engines of one set are with other settings. A class of what that takes, as it is handed to other processes, which no function
    within another can be."""

    planned: PlanSet
    model: ModelFacts
    gpu: Gpu
    facts: EngineFacts
    steps_ahead: bool
    engine: str
    version: str

    def __call__(self, settings: Settings) -> Variant:
        chosen = self.planned
        for setting, value in sorted(settings.items()):
            chosen = changed(chosen, setting, value, engine=self.engine, version=self.version)
        limits = limits_of(
            chosen, model=self.model, gpu=self.gpu, engine=self.facts, steps_ahead=self.steps_ahead
        )
        times = believed(chosen, model=self.model, gpu=self.gpu, engine=self.facts, limits=limits)
        return Variant(times=times, limits=limits, capacity=capacity_of(chosen))


def tunable_of(
    planned: PlanSet, task: Task, slot: Slot, asked: Tuning, restarts: Restarts, *, plan: Plan, fixed: bool
) -> Tunable:
    """What may be retuned of one set, on the devices of `slot`."""
    return Tunable(
        consent=Consent.of(asked, fixed=fixed_settings(task.intent.binds)),
        knobs=knobs_of(planned.settings, planned.layout),
        has_watermark=task.engine.has_watermark,
        restarts=restarts,
        variant=PlannedSet(
            planned=planned,
            model=task.model,
            gpu=slot.gpu,
            facts=task.engine,
            steps_ahead=steps_ahead(task, slot.gpu),
            engine=plan.engine,
            version=plan.engine_version,
        ),
        fixed=fixed,
    )
