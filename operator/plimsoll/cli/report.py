"""A plan as text for people: the answer first, then memory, speed, settings, what else was looked at, what to know.

Everything printed is in the plan; here it is only put in order, and shortened unless everything is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, gib, short, spread
from plimsoll.planning.ledger import Ledger
from plimsoll.planning.plan import (
    Advice,
    Alternative,
    Finding,
    FleetPlan,
    Outcome,
    Plan,
    PlanSet,
    Rejected,
    Severity,
    Value,
)

_OUTCOME_STYLE: Final = {
    Outcome.FITS: "bold green",
    Outcome.TIGHT: "bold yellow",
    Outcome.SHORT: "bold red",
    Outcome.DOES_NOT_FIT: "bold red",
    Outcome.INVALID: "bold red",
}
_SEVERITY: Final = {
    Severity.ERROR: ("Error", "bold red"),
    Severity.WARNING: ("Warning", "yellow"),
    Severity.INFO: ("Note", "dim"),
}
FEW: Final = 6
"""Lines of a list that are shown when not everything is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a report is printed."""

    everything: bool = False
    colour: bool = False
    currency: str | None = None

    def money(self, amount: str) -> str:
        return f"{Decimal(amount):,.2f}{f' {self.currency}' if self.currency else ''}"


def fleet_report(fleet: FleetPlan, style: Style) -> Iterator[RenderableType]:
    """All plans, the most important first, and what they leave of the pools."""
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
    for title, block in (
        ("Settings", _settings(plan.values, style)),
        ("Alternatives", _alternatives(plan.alternatives, style)),
        ("Rejected", _rejected(plan, style)),
        ("To know", _to_know(plan, style)),
    ):
        if block is not None:
            yield ""
            yield Text(title, style="bold")
            yield block


def _headline(plan: Plan, style: Style) -> Text:
    outcome = (f"{plan.outcome.value.upper()}  ", _OUTCOME_STYLE[plan.outcome])
    mark = Text.assemble(outcome, (f"{plan.namespace}/{plan.name}", "bold"))
    if plan.sets:
        said = " + ".join(f"{chosen.replicas} x {_where(chosen)}" for chosen in plan.sets)
        devices = f"{plan.devices} {'device' if plan.devices == 1 else 'devices'}"
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
    places = ", ".join(f"{place.replicas} on {place.pool}" for place in chosen.placements)
    rows = [
        *cache_report(chosen.ledger),
        *_speed(chosen),
        ("Cost", _cost(chosen, style)),
        ("Pod", _pod(chosen)),
    ]
    yield drawing.facts([*rows, ("Where", places)] if places else rows)


def memory_report(ledger: Ledger, *, colour: bool, everything: bool) -> Iterator[RenderableType]:
    drawn = drawing.bar(ledger, colour=colour, width=drawing.bar_width())
    drawn.append(f"  {gib(ledger.budget_bytes)} of {gib(ledger.device_bytes)} GiB for the engine")
    yield drawing.facts([("Memory", drawn), ("", drawing.legend(ledger, colour=colour))])
    style = drawing.VERDICT_STYLE[ledger.verdict]
    verdict = Text.assemble(
        (ledger.verdict.value, style), f", risk of running out {ledger.risk.value}: {ledger.reason}"
    )
    yield drawing.facts([("Verdict", verdict)])
    if everything:
        rows = [
            (
                f"  {term.name}",
                gib(term.bytes.mid, 2),
                f"{gib(term.bytes.low, 2)} to {gib(term.bytes.high, 2)}",
                term.certainty.value,
                f"{term.formula}{_inputs(term.inputs)}",
            )
            for term in ledger.terms
            if term.bytes.high > 0 or term.name == "headroom"
        ]
        yield ""
        heads = ("  TERM", "GIB", "90% WITHIN", "KNOWN", "FORMULA")
        yield drawing.table(heads, rows, left=(0, 3, 4), fold=4)
        yield ""


def _inputs(inputs: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name} {value}" for name, value in inputs.items())
    return f"  [{listed}]" if listed else ""


def cache_report(ledger: Ledger) -> Iterator[tuple[str, str]]:
    capacity = ledger.capacity
    if capacity is None:
        return
    if not capacity.blocks.high:
        yield "KV cache", "none: this model keeps nothing from one request to the next"
        return
    tokens = spread(capacity.tokens, show=count)
    blocks = spread(capacity.blocks, show=count)
    yield "KV cache", f"{tokens} tokens in {blocks} blocks of {capacity.block_size}"
    longest, usual = capacity.concurrency_at_max_len.mid, capacity.concurrency_at_workload.mid
    yield "", f"{short(longest)} requests at full length, {short(usual)} at the workload's"


def _speed(chosen: PlanSet) -> Iterator[tuple[str, str | Text]]:
    predicted, load = chosen.performance, chosen.load
    if predicted is not None:
        met = {True: ", target met", False: ", TARGET MISSED", None: ""}[chosen.meets_slo]
        first, then = spread(predicted.ttft_ms, " ms"), spread(predicted.tpot_ms, " ms")
        yield "Latency", f"first token {first}, then {then} a token{met}"
        lengths = f"{count(load.input_tokens)} + {count(load.output_tokens)} tokens"
        flight = f"with {count(load.concurrency)} requests of {lengths} in flight on each replica"
        yield "", f"{flight}, {count(predicted.running)} of them decoding"
        tokens, requests = count(predicted.output_tokens_per_second), short(predicted.requests_per_second)
        rate = f"{tokens} tokens/s and {requests} requests/s on each replica"
        yield "Throughput", f"{rate}; {predicted.bound} binds"


def _cost(chosen: PlanSet, style: Style) -> str:
    cost, devices = chosen.cost, chosen.cost.gpu_hours_per_hour
    said = [f"{short(devices)} {'device' if devices == 1 else 'devices'}"]
    said.append("price unknown" if cost.per_hour is None else f"{style.money(cost.per_hour)} an hour")
    if cost.per_million_output_tokens is not None:
        said.append(f"{style.money(cost.per_million_output_tokens)} per million output tokens")
    return ", ".join(said)


def _pod(chosen: PlanSet) -> str:
    asks = chosen.resources
    many = f"{chosen.pods_per_replica} pods a replica, each " if chosen.pods_per_replica > 1 else ""
    disk = f", {gib(asks.disk_bytes, 0)} GiB disk" if asks.disk_bytes else ""
    return (
        f"{many}{asks.devices} x {asks.resource}, {short(asks.cpu_millis / 1000)} cores, "
        f"{gib(asks.memory_bytes, 0)} GiB memory ({gib(asks.shm_bytes, 0)} GiB of it /dev/shm){disk}"
    )


def _settings(values: Sequence[Value], style: Style) -> RenderableType | None:
    """What was decided and why; how a value was computed in full is for --all and `explain`."""
    told = [value for value in values if style.everything or value.name not in _TOLD_ELSEWHERE]
    rows = [(f"  {value.name}", value.value, _because(value, style)) for value in told]
    heads = ("  NAME", "VALUE", "BECAUSE")
    return drawing.table(heads, rows, left=range(3), fold=2, clip=not style.everything) if rows else None


def _because(value: Value, style: Style) -> str:
    why = value.source if value.formula == "as set" else f"{value.source}: {value.formula}"
    return f"{why}{_inputs(value.inputs)}" if style.everything else why


_TOLD_ELSEWHERE: Final = frozenset(
    {"layout", "replicas", "cpu_millis", "memory_bytes", "shm_bytes", "disk_bytes"}
)


def _alternatives(alternatives: Sequence[Alternative], style: Style) -> RenderableType | None:
    if not alternatives:
        return None
    rows = [
        (
            f"  {' + '.join(other.sets)}",
            short(other.gpus),
            "?" if other.cost.per_hour is None else f"{Decimal(other.cost.per_hour):,.2f}",
            short(other.ttft_ms.mid) if other.ttft_ms else "?",
            short(other.tpot_ms.mid) if other.tpot_ms else "?",
            count(other.output_tokens_per_second) if other.output_tokens_per_second else "?",
            other.reason,
        )
        for other in alternatives
    ]
    heads = (
        "  LAYOUT",
        "GPUS",
        f"{style.currency or 'COST'}/H",
        "TTFT MS",
        "TPOT MS",
        "TOKENS/S",
        "NOT TAKEN BECAUSE",
    )
    return drawing.table(heads, rows, left=(0, 6), fold=6, clip=not style.everything)


def _rejected(plan: Plan, style: Style) -> RenderableType | None:
    """By rule, each with the layout that stands nearest to what was chosen; all of them with --all."""
    if not plan.rejected:
        return None
    if style.everything:
        each = [(f"  {one.layout}", ", ".join(one.hardware), one.rule, one.message) for one in plan.rejected]
        return drawing.table(("  LAYOUT", "ON", "RULE", "BECAUSE"), each, left=range(4), fold=3)
    shown = plan.sets[0] if plan.sets else plan.nearest
    chosen = str(shown.hardware) if shown else ""
    ordered = sorted(plan.rejected, key=lambda one: one.rule)
    grouped = [(rule, list(group)) for rule, group in groupby(ordered, key=lambda one: one.rule)]
    grouped.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    rows = [(f"  {rule}", count(len(group)), _example(group, chosen)) for rule, group in grouped[:FEW]]
    if len(grouped) > FEW:
        rows.append(
            (
                "  ...",
                count(sum(len(group) for _, group in grouped[FEW:])),
                "by other rules; see them with --all",
            )
        )
    return drawing.table(("  RULE", "LAYOUTS", "FOR EXAMPLE"), rows, left=(0, 2), fold=2, clip=True)


def _example(rejected: Sequence[Rejected], chosen: str) -> str:
    one = next((one for one in rejected if chosen in one.hardware), rejected[0])
    where = chosen if chosen in one.hardware else next(iter(one.hardware), "")
    return f"{one.layout}{f' on {where}' if where else ''}: {one.message}"


def _to_know(plan: Plan, style: Style) -> RenderableType | None:
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    findings = sorted(plan.findings, key=lambda finding: order[finding.severity])
    lines = [_finding(finding, style) for finding in findings]
    lines += [("Advice", _advice(advice)) for advice in plan.advice]
    if not lines:
        return None
    hidden = 0 if style.everything else max(0, len(lines) - FEW)
    if hidden:
        lines = [*lines[:FEW], ("", Text(f"{hidden} more with --all"))]
    return drawing.facts(lines, width=8)


def _advice(advice: Advice) -> Text:
    """A preset's hint says itself what it takes."""
    message = advice.message.rstrip(".")
    return Text(message if advice.topic == "preset" else f"{message}. Takes {advice.takes}")


def _finding(finding: Finding, style: Style) -> tuple[str, Text]:
    word, colour = _SEVERITY[finding.severity]
    named = finding.field is not None and finding.field not in finding.message
    value = f" {finding.value}" if finding.value else ""
    said = Text(f"{finding.field}{value}: {finding.message}" if named else finding.message)
    if finding.remedy and (style.everything or finding.severity is Severity.ERROR):
        said.append(f". What helps: {finding.remedy}")
    return word, Text.assemble((f"{finding.reason}: ", colour), said)
