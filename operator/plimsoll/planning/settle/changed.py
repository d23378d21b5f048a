"""A planned set with one setting changed: another set, with a digest of its own, that says who changed it.

What the ledger said of it stands: only settings that ask for no more memory than was proven are changed this way. Where the
plan is made anew of the same spec, what was changed goes with it, set by set, as far as the new one bears it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.facts.engine_versions import parse_version
from plimsoll.planning import codec
from plimsoll.planning.ask.guesses import checks_guesses
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.placing.placement import same_devices
from plimsoll.planning.plan import SCHEMA, Hardware, Origin, Plan, PlanSet, PodResources, Value
from plimsoll.planning.settings import EngineSettings

RETUNED: Final = "a retune"
PLANNED: Final = "as planned"
NEVER_MORE: Final = frozenset({"watermark_permille"})
"""Settings that ask for no memory, however large they are."""


def set_digest(
    hardware: Hardware,
    layout: Layout,
    settings: EngineSettings,
    resources: PodResources,
    *,
    engine: str,
    version: str,
) -> str:
    """Of what makes a set what it is; a price may change without a restart."""
    identity = (SCHEMA, replace(hardware, price_per_hour=None), layout, engine, version, settings, resources)
    return codec.digest(identity)


def planned_value(value: Value) -> str | None:
    """What a retuned setting was as planned; None where it stands so."""
    return value.inputs.get(PLANNED) if value.source == RETUNED else None


def changed_set(
    chosen: PlanSet, settings: EngineSettings, *, field: str, value: str, why: str, engine: str, version: str
) -> PlanSet:
    """`field` is the setting as EngineSettings spells it."""
    values = tuple(
        replace(
            one,
            value=value,
            formula=why,
            inputs={PLANNED: planned_value(one) or one.value},
            origin=Origin.LEARNED,
            source=RETUNED,
        )
        if one.name == field
        else one
        for one in chosen.values
    )
    digest = set_digest(
        chosen.hardware, chosen.layout, settings, chosen.resources, engine=engine, version=version
    )
    return replace(chosen, digest=digest, settings=settings, values=values)


def retained(fresh: Plan, before: Plan) -> Plan:
    """With what was retuned of the plan before on the same hardware and layout; its choice says what was kept and what was not."""
    sets, kept, lost = [], [], []
    for old in before.sets:
        changes = [one for one in old.values if one.source == RETUNED]
        if changes and not any(alike(old, new) for new in fresh.sets):
            lost += [
                f"{one.name} {one.value}, as nothing of it runs on {old.hardware} any more" for one in changes
            ]
    for new in fresh.sets:
        chosen = new
        for one in (
            one for old in before.sets if alike(old, new) for one in old.values if one.source == RETUNED
        ):
            if chosen.settings == (bearing := _bearing(chosen, one, fresh.engine_version)):
                continue
            if bearing is None:
                lost.append(f"{one.name} {one.value}, as it asks for more than is planned now")
                continue
            kept.append(f"{one.name} {one.value}")
            chosen = changed_set(
                chosen,
                bearing,
                field=one.name,
                value=one.value,
                why=one.formula,
                engine=fresh.engine,
                version=fresh.engine_version,
            )
        sets.append(chosen)
    said = [
        f"{words}: {'; '.join(dict.fromkeys(names))}"
        for words, names in (("kept of what was retuned", kept), ("not kept of what was retuned", lost))
        if names
    ]
    return replace(fresh, sets=tuple(sets), choice="; ".join([*filter(None, [fresh.choice]), *said]))


def alike(old: PlanSet, new: PlanSet) -> bool:
    """Whether two sets have the same devices and layout, so that what was learned on one is true of the other."""
    return same_devices(old.hardware, new.hardware) and old.layout == new.layout


def _bearing(chosen: PlanSet, tuned: Value, version: str) -> EngineSettings | None:
    """The settings with the change; None where it would ask for memory that was neither proven nor served with."""
    own = next((one.value for one in chosen.values if one.name == tuned.name), tuned.value)
    value = int(tuned.value)
    if tuned.name not in NEVER_MORE and value > int(own) and own != planned_value(tuned):
        return None
    settings = replace(chosen.settings, **{tuned.name: value})  # type: ignore[arg-type]
    # An engine takes no step that is smaller than what may run.
    each = settings.tokens_each if checks_guesses(parse_version(version)) else 1
    return settings if settings.max_num_batched_tokens >= settings.max_num_seqs * each else None
