"""A planned set with one setting changed by a retune: another set, with a digest of its own, that tells what it was changed by.

Its ledger stays true, as only settings that need no more memory than has been proven are changed this way. Where a plan is made
anew from the same spec, its sets take over what was changed, as far as they have the memory for it.
"""

from __future__ import annotations

from collections.abc import Iterable
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
"""Source of a value that a retune has changed."""
PLANNED: Final = "as planned"
"""Among the inputs of such a value: what it was before."""
NEVER_MORE: Final = frozenset({"watermark_permille"})
"""Settings that need no more memory, however large they are."""


def set_digest(
    hardware: Hardware,
    layout: Layout,
    settings: EngineSettings,
    resources: PodResources,
    *,
    engine: str,
    version: str,
) -> str:
    """The digest of what makes a set what it is. The price is left out, as it may change without a restart."""
    identity = (SCHEMA, replace(hardware, price_per_hour=None), layout, engine, version, settings, resources)
    return codec.digest(identity)


def planned_value(value: Value) -> str | None:
    """What a retuned setting was as planned; None where no retune has changed it."""
    return value.inputs.get(PLANNED) if value.source == RETUNED else None


def changed_set(
    chosen: PlanSet, settings: EngineSettings, *, field: str, value: str, why: str, engine: str, version: str
) -> PlanSet:
    """The set with new settings, of which `field` was changed, and why. `field` is spelled as in EngineSettings."""
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


def retained(fresh: Plan, before: Plan, *, named: bool = False) -> Plan:
    """The fresh plan with what was retuned in the plan before on the same hardware and layout. Its `choice` says what was kept and what was
    not. `named`: spec.tuning.allow says what may be retuned; else that is nothing that a person has set."""
    sets: list[PlanSet] = []
    kept: list[str] = []
    lost: list[str] = []
    for old in before.sets:
        if not any(alike(old, new) for new in fresh.sets):
            lost += [
                f"{one.name} {one.value}, as nothing of it runs on {old.hardware} any more"
                for one in _retuned(old)
            ]
    for new in fresh.sets:
        changes = [one for old in before.sets if alike(old, new) for one in _retuned(old)]
        sets.append(_with_changes(new, changes, fresh, named=named, kept=kept, lost=lost))
    said = [
        f"{words}: {'; '.join(dict.fromkeys(names))}"
        for words, names in (("kept of what was retuned", kept), ("not kept of what was retuned", lost))
        if names
    ]
    return replace(fresh, sets=tuple(sets), choice="; ".join([*filter(None, [fresh.choice]), *said]))


def _retuned(one: PlanSet) -> list[Value]:
    """The values of a set that a retune has changed."""
    return [value for value in one.values if value.source == RETUNED]


def _with_changes(
    chosen: PlanSet,
    changes: Iterable[Value],
    plan: Plan,
    *,
    named: bool,
    kept: list[str],
    lost: list[str],
) -> PlanSet:
    """The set with as many of the retuned values as may be and it has memory for; adds to `kept` and `lost` what becomes of each."""
    for one in changes:
        own = next((value for value in chosen.values if value.name == one.name), one)
        if own.origin.by_hand and own.value != one.value and not named:
            lost.append(
                f"{one.name} {one.value}, as the spec sets {own.value} and spec.tuning.allow does not name it"
            )
            continue
        settings = _settings_with(chosen, one, plan.engine_version)
        if settings is None:
            lost.append(f"{one.name} {one.value}, as it asks for more than is planned now")
        elif settings != chosen.settings:
            kept.append(f"{one.name} {one.value}")
            chosen = changed_set(
                chosen,
                settings,
                field=one.name,
                value=one.value,
                why=one.formula,
                engine=plan.engine,
                version=plan.engine_version,
            )
    return chosen


def alike(old: PlanSet, new: PlanSet) -> bool:
    """Whether two sets have the same devices and layout, so that what was learned on one is true of the other."""
    return same_devices(old.hardware, new.hardware) and old.layout == new.layout


def _settings_with(chosen: PlanSet, tuned: Value, version: str) -> EngineSettings | None:
    """The settings of a set with a retuned value; None where that would need memory that no ledger proved and nobody served with."""
    own = next((one.value for one in chosen.values if one.name == tuned.name), tuned.value)
    value = int(tuned.value)
    if tuned.name not in NEVER_MORE and value > int(own) and own != planned_value(tuned):
        return None
    settings = replace(chosen.settings, **{tuned.name: value})  # type: ignore[arg-type]
    # An engine refuses to start with a step that is too small for the sequences that may run.
    each = settings.tokens_each if checks_guesses(parse_version(version)) else 1
    return settings if settings.max_num_batched_tokens >= settings.max_num_seqs * each else None
