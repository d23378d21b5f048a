"""Engines with other settings than planned: what a retune may change, and what an engine is with the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plimsoll.api.config import Restarts
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.control.capacity import capacity_of
from plimsoll.control.retune import Consent, Knobs
from plimsoll.control.retune.scene import changed, knobs_of
from plimsoll.control.situation import Capacity
from plimsoll.planning.ask.task import Task
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.simulate.steps import Limits, StepTimes, believed, limits_of

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


def tunable_of(
    planned: PlanSet, task: Task, slot: Slot, asked: Tuning, restarts: Restarts, *, plan: Plan, fixed: bool
) -> Tunable:
    """What may be retuned of one set, on the devices of `slot`."""

    def variant(settings: Settings) -> Variant:
        chosen = planned
        for setting, value in sorted(settings.items()):
            chosen = changed(chosen, setting, value, engine=plan.engine, version=plan.engine_version)
        limits = limits_of(chosen, task, slot.gpu)
        times = believed(chosen, model=task.model, gpu=slot.gpu, engine=task.engine, limits=limits)
        return Variant(times=times, limits=limits, capacity=capacity_of(chosen))

    return Tunable(
        consent=Consent.of(asked),
        knobs=knobs_of(planned.settings),
        has_watermark=task.engine.has_watermark,
        restarts=restarts,
        variant=variant,
        fixed=fixed,
    )
