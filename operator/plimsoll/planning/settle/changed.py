"""A planned set with one setting changed: another set, with a digest of its own, that says who changed it.

What the ledger said of it stands: only settings that ask for no more memory than was proven are changed this way.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.planning import codec
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import SCHEMA, Hardware, Origin, PlanSet, PodResources
from plimsoll.planning.settings import EngineSettings


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


def changed_set(
    chosen: PlanSet, settings: EngineSettings, *, field: str, value: str, why: str, engine: str, version: str
) -> PlanSet:
    """`field` is the setting as EngineSettings spells it."""
    values = tuple(
        replace(one, value=value, formula=why, inputs={}, origin=Origin.LEARNED, source="a retune")
        if one.name == field
        else one
        for one in chosen.values
    )
    digest = set_digest(
        chosen.hardware, chosen.layout, settings, chosen.resources, engine=engine, version=version
    )
    return replace(chosen, digest=digest, settings=settings, values=values)
