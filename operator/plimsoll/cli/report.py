"""A plan as text for people: the answer first, then memory, speed, settings, alternatives and findings.

Everything that is printed is in the plan. Here it is put in order, and shortened unless everything is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, gib, many, short, spread
from plimsoll.cli.ledgers import cache_report, memory_report
from plimsoll.cli.remarks import Style, generates, missed_target, remarks
from plimsoll.facts.gpus import GIB
from plimsoll.planning.plan import FleetPlan, Outcome, Placement, Plan, PlanSet

_OUTCOME_STYLE: Final = {
    Outcome.FITS: "bold green",
    Outcome.TIGHT: "bold yellow",
    Outcome.SHORT: "bold red",
    Outcome.DOES_NOT_FIT: "bold red",
    Outcome.INVALID: "bold red",
}
_MISSED_STYLE: Final = "bold red"


def fleet_report(fleet: FleetPlan, style: Style) -> Iterator[RenderableType]:
    """All plans, the most important first, and what is left of the pools."""
    by_name = {f"{plan.namespace}/{plan.name}": plan for plan in fleet.plans}
    for place, name in enumerate(fleet.order):
        if place:
            yield ""
        yield from plan_report(by_name[name], style)
    moved = [use for use in fleet.pools if style.everything or use.free_before != use.free_after]
    if moved and (len(fleet.plans) > 1 or style.everything):
        yield ""
        yield Text("Free devices, before and after", style="bold")
        rows = [
            (f"  {use.pool}", count(use.devices), count(use.free_before), count(use.free_after))
            for use in moved
        ]
        yield drawing.table(("  POOL", "DEVICES", "BEFORE", "AFTER"), rows)


def plan_report(plan: Plan, style: Style) -> Iterator[RenderableType]:
    yield _headline(plan, style)
    yield drawing.facts(_decision(plan))
    for chosen in plan.sets:
        yield from _set(chosen, style, alone=len(plan.sets) == 1)
    if not plan.sets and plan.nearest:
        yield ""
        yield Text(f"  Nearest: {_where(plan.nearest)}", style="bold")
        yield from memory_report(plan.nearest.ledger, colour=style.colour, everything=style.everything)
    yield from remarks(plan, style)


def _headline(plan: Plan, style: Style) -> Text:
    outcome, missed = (plan.outcome.value.upper(), _OUTCOME_STYLE[plan.outcome]), missed_target(plan)
    misses = (f", MISSES {missed}" if missed else "", _MISSED_STYLE)
    mark = Text.assemble(outcome, misses, "  ", (f"{plan.namespace}/{plan.name}", "bold"))
    if plan.sets:
        said = " + ".join(f"{chosen.replicas} x {_where(chosen)}" for chosen in plan.sets)
        devices = many(plan.devices, "device")
        cost = plan.cost
        money = f", {style.money(cost.per_hour)} an hour" if cost and cost.per_hour is not None else ""
        mark.append(f"  {said}, {devices}{money}")
    return mark


def _where(chosen: PlanSet) -> str:
    return f"{chosen.layout} on {chosen.hardware}"


def _decision(plan: Plan) -> Iterator[tuple[str, str]]:
    origin = f" ({plan.model_origin})" if plan.model_origin else ""
    yield "Model", f"{plan.model}{origin}, {plan.engine} {plan.engine_version}".rstrip(", ")
    yield from (
        (name, said) for name, said in (("Replicas", plan.replicas_reason), ("Choice", plan.choice)) if said
    )
    if plan.pinning and plan.pinning.reason != "FirstPlan":
        yield "Pinned" if plan.pinning.kept else "New plan", plan.pinning.message
    if plan.pinning and plan.pinning.better:
        yield "Better", plan.pinning.better


def _set(chosen: PlanSet, style: Style, *, alone: bool) -> Iterator[RenderableType]:
    yield ""
    if not alone:
        yield Text(f"{chosen.replicas} x {_where(chosen)}", style="bold")
    yield from memory_report(chosen.ledger, colour=style.colour, everything=style.everything)
    places = ", ".join(_place(place, style) for place in chosen.placements)
    rows = [
        *cache_report(chosen.ledger),
        *_speed(chosen),
        ("Cost", _cost(chosen, style)),
        ("Pod", _pod(chosen)),
    ]
    yield drawing.facts([*rows, ("Where", places)] if places else rows)


def _place(place: Placement, style: Style) -> str:
    waits = " (its nodes are still to be made)" if place.pool in style.empty else ""
    return f"{place.replicas} on {place.pool}{waits}"


def _speed(chosen: PlanSet) -> Iterator[tuple[str, str | Text]]:
    predicted, load = chosen.performance, chosen.load
    if predicted is not None:
        met = {True: ", target met", False: ", TARGET MISSED", None: ""}[chosen.meets_slo]
        first, then = spread(predicted.ttft_ms, " ms"), spread(predicted.tpot_ms, " ms")
        lengths, requests = count(load.input_tokens), f"{short(predicted.requests_per_second)} requests/s"
        flight = many(load.concurrency, "request")
        if generates(chosen):
            yield "Latency", f"first token {first}, then {then} a token{met}"
            lengths = f"{lengths} + {count(load.output_tokens)}"
            decoding = f", {count(predicted.running)} of them decoding"
            requests = f"{count(predicted.output_tokens_per_second)} tokens/s and {requests}"
        else:
            yield "Latency", f"answer {first}{met}"
            decoding = ""
        yield "", f"with {flight} of {lengths} tokens in flight on each replica{decoding}"
        yield "Throughput", f"{requests} on each replica at that load; {predicted.bound} binds"
        # Where even a single request misses the target there is nothing that it carries, and of a declared rate it is told below.
        if chosen.most_per_second is not None and chosen.max_concurrency and chosen.steady_per_second is None:
            yield "", _most(chosen, chosen.most_per_second)
    if chosen.steady_per_second is not None:
        yield (
            "Carries",
            f"{short(chosen.steady_per_second)} requests/s on each replica as users send them, by chance and of all lengths",
        )


def _most(chosen: PlanSet, per_second: float) -> str:
    """What a replica carries. Without a target, and where it is missed all the same, the cache and the number of sequences say how much that is."""
    within = " within slo" if chosen.meets_slo else ""
    if chosen.load.concurrency >= chosen.max_concurrency:
        return f"which is the most that it carries{within}"
    return f"it carries up to {short(per_second)} such requests/s{within}, with {count(chosen.max_concurrency)} in flight"


def _cost(chosen: PlanSet, style: Style) -> str:
    cost, devices = chosen.cost, chosen.cost.gpu_hours_per_hour
    said = [many(devices, "device", short)]
    said.append("price unknown" if cost.per_hour is None else f"{style.money(cost.per_hour)} an hour")
    for money, what in (
        (cost.per_million_output_tokens, "output tokens"),
        (cost.per_million_requests, "requests"),
    ):
        if money is not None:
            said.append(f"{style.money(money)} per million {what}")
    return ", ".join(said)


def _pod(chosen: PlanSet) -> str:
    asks = chosen.resources
    each = f"{chosen.pods_per_replica} pods a replica, each " if chosen.pods_per_replica > 1 else ""
    # A replica on CPUs has no devices; the cores that it asks for come next.
    devices = "" if asks.resource == "cpu" else f"{asks.devices} x {asks.resource}, "
    shared = gib(asks.shm_bytes, 0 if asks.shm_bytes >= GIB else 1)
    disk = f", {gib(asks.disk_bytes, 0)} GiB disk" if asks.disk_bytes else ""
    return (
        f"{each}{devices}{many(asks.cpu_millis / 1000, 'core', short)}, "
        f"{gib(asks.memory_bytes, 0)} GiB memory ({shared} GiB of it /dev/shm){disk}"
    )
