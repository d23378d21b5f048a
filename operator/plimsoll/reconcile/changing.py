"""A retune's effect on sets: the set that it tries beside the one that serves, and the plan that holds it once it is good.

A step names the set that it is about by the digest of its entry in the plan, so that a plan made anew ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plimsoll.control.retune import Effect, RetuneMemory, effect_of
from plimsoll.control.retune.scene import SETTINGS, changed
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.planning.settle.changed import planned_value


@dataclass(frozen=True, slots=True)
class Changed:
    entry: PlanSet
    """The set that is tried, without replicas."""
    place: int
    """Of the set that serves, in the plan."""
    effect: Effect
    serves: str
    """Name that the set had when the retune began; empty where an older release did not note it."""


def change_of(plan: Plan, retune: RetuneMemory) -> Changed | None:
    """What the retune asks for; None where it asks for nothing, or the plan no longer has the set that it is about."""
    effect = effect_of(retune)
    if effect is None or retune.step is None or effect.setting not in SETTINGS:
        return None
    place = next((i for i, one in enumerate(plan.sets) if one.digest == effect.set), None)
    if place is None:
        return None
    served = plan.sets[place]
    entry = _entry(plan, served, effect, retune.step.why)
    # Two sets of one name would be written as one object with two numbers of replicas.
    return None if entry.digest == served.digest else Changed(entry, place, effect, retune.step.serves)


def adopted(plan: Plan, retune: RetuneMemory) -> Plan:
    """The plan with the retune's change in its set, where the change was found good; else the plan as it is."""
    change = change_of(plan, retune)
    if change is None or not change.effect.adopt:
        return plan
    sets = list(plan.sets)
    served = sets[change.place]
    sets[change.place] = replace(
        change.entry, replicas=served.replicas, placements=served.placements, cost=served.cost
    )
    return replace(plan, sets=tuple(sets))


def _entry(plan: Plan, served: PlanSet, effect: Effect, why: str) -> PlanSet:
    engine, version = plan.engine, plan.engine_version
    entry = changed(served, effect.setting, effect.value, engine=engine, version=version, why=why)
    return replace(entry, replicas=0, placements=())


def before_of(chosen: PlanSet) -> dict[str, str]:
    """Settings that retunes changed, as they were planned, in the words of spec.tuning.allow."""
    values = {one.name: planned_value(one) for one in chosen.values}
    return {
        setting: before for setting, field in SETTINGS.items() if (before := values.get(field)) is not None
    }
