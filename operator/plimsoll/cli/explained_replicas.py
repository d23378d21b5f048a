"""What the number of replicas follows from: the declared load, what one replica carries, and the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.api.defaults import Effective
from plimsoll.cli.drawing import short
from plimsoll.planning.ask.intent import Intent, read_intent
from plimsoll.planning.ask.reading import source_of
from plimsoll.planning.plan import Plan, PlanSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    formula: str
    inputs: Mapping[str, str]
    source: str


def counted(plan: Plan, merged: Effective) -> Counted:
    intent = read_intent(plan.namespace, plan.name, merged.spec, source_of(merged))
    if intent.bounds.fixed is not None:
        return Counted(
            formula=plan.replicas_reason,
            inputs={"replicas": str(intent.bounds.fixed)},
            source=str(merged.source_of("replicas")),
        )
    most = intent.bounds.most
    bounds = {
        "scaling.min": str(intent.bounds.least),
        "scaling.max": "not set" if most is None else str(most),
    }
    load = dict(_load(intent, plan.used))
    return Counted(
        formula=f"{plan.replicas_reason}: {next(iter(load))} / what a replica carries, rounded up"
        if _CARRIES in load
        else plan.replicas_reason,
        inputs=load | bounds,
        source="load and bounds",
    )


_CARRIES = "a replica carries"


def _load(intent: Intent, sets: tuple[PlanSet, ...]) -> Iterator[tuple[str, str]]:
    """The declared load, and what it is divided by; nothing where none is declared, or where it is not known what a replica carries."""
    if not sets:
        return
    if intent.concurrency is not None:
        yield "concurrency", str(intent.concurrency)
        yield _CARRIES, _each(sets, [f"{one.max_concurrency} in flight" for one in sets])
    elif intent.rate is not None and all(one.steady_per_second is not None for one in sets):
        carried = [short(one.steady_per_second or 0.0) for one in sets]
        yield "requestsPerSecond", f"{float(intent.rate):g}"
        yield _CARRIES, _each(sets, [f"{one} a second, as users send them" for one in carried])


def _each(sets: tuple[PlanSet, ...], carried: list[str]) -> str:
    if len(set(carried)) < 2:
        return "".join(carried[:1])
    return " and ".join(f"{said} on {one.hardware}" for one, said in zip(sets, carried, strict=True))
