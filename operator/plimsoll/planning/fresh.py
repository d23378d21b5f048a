"""The plan that would be made if there were none.

`weighing` says which layouts work on which devices, `cheapest` which of them to run, and how many, and `assemble` makes their sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from plimsoll.facts.inventory import Inventory
from plimsoll.planning.ask.checks import products_of
from plimsoll.planning.ask.context_length import shortened
from plimsoll.planning.ask.reading import Reading
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.advice import advise
from plimsoll.planning.choice.assemble import alternatives, build_set, build_sets
from plimsoll.planning.choice.candidate import unfitting
from plimsoll.planning.choice.cheapest import ROUNDING, Chosen, Demand, choose, replicas_for
from plimsoll.planning.choice.late import load_undeclared, partly_kept
from plimsoll.planning.choice.money import in_money
from plimsoll.planning.choice.outcomes import (
    above_most,
    does_not_fit,
    fleet_findings,
    no_devices,
    replicas_reason,
    spanning,
    to_be_made,
    why_chosen,
)
from plimsoll.planning.choice.shortage import shortage
from plimsoll.planning.choice.targets import nearest_to_target
from plimsoll.planning.choice.weighing import SURE, Weighed, rejected, weigh
from plimsoll.planning.memory.ledger import Verdict
from plimsoll.planning.placing.cost import rescaled, total_cost
from plimsoll.planning.placing.placement import same_devices, shape_of
from plimsoll.planning.plan import SCHEMA, Advice, Alternative, Cost, Finding, Outcome, Plan, PlanSet


def fresh_plan(reading: Reading, task: Task, inventory: Inventory, demand: Demand) -> Plan:
    """The plan that would be made if there were none yet."""
    if not reading.slots:
        products, _ = products_of(task.intent, inventory)
        missing = no_devices(task.intent, inventory, products)
        return without_sets(reading, Outcome.DOES_NOT_FIT, *reading.findings, missing)
    task, weighed, findings, money = _weighed(reading, task, demand)
    without = [slot.name for slot in reading.slots if slot.price is None and slot.name in weighed.kinds]
    unpriced = () if money else tuple(dict.fromkeys(without))
    findings = (*findings, *fleet_findings(inventory, task.intent, demand, unpriced=unpriced))
    if not weighed.candidates:
        return _without_layout(reading, task, weighed, findings)
    if not weighed.options:
        task, weighed, missed = nearest_to_target(
            task, weighed, reading.slots, demand, reading.owner, money=money
        )
        findings = (*findings, *missed)
    if not weighed.options:
        # What fits does so in the short steps alone that a target asks for, and does not keep that target for a single request.
        task = replace(task, intent=replace(task.intent, ttft_ms=None, itl_ms=None))
        weighed = weigh(task, reading.slots, demand, reading.owner, money=money)
        if not weighed.options:
            return _without_layout(reading, task, weighed, findings)
    chosen = choose(weighed.options, demand)
    if chosen is None:
        return _without_room(reading, task, weighed=weighed, demand=demand, findings=findings)
    return _with_sets(
        reading, task, weighed=weighed, chosen=chosen, demand=demand, findings=findings, money=money
    )


def _without_layout(reading: Reading, task: Task, weighed: Weighed, findings: tuple[Finding, ...]) -> Plan:
    """A plan without sets where no layout fits: the one that came nearest is shown."""
    nearest = _nearest(task, weighed)
    outcome, finding = does_not_fit(task.intent, weighed, nearest)
    return without_sets(reading, outcome, *findings, finding, weighed=weighed, nearest=nearest)


def _weighed(reading: Reading, task: Task, demand: Demand) -> tuple[Task, Weighed, tuple[Finding, ...], bool]:
    """The layouts, weighed, and whether by money. A context length that nobody asked for is cut until a layout surely fits, or comes nearest
    to that."""
    money = in_money(task, reading.slots, demand)
    weighed = weigh(task, reading.slots, demand, reading.owner, money=money)
    best = (task, weighed, reading.findings, money)
    for tokens in task.context.shorter:
        if weighed.quality >= SURE:
            break
        shorter = replace(task, context=shortened(task.context, tokens))
        # With less context a device without a price may hold the model as well.
        money = in_money(shorter, reading.slots, demand)
        weighed = weigh(shorter, reading.slots, demand, reading.owner, money=money)
        if weighed.quality > best[1].quality:
            kept_findings = tuple(f for f in reading.findings if f not in task.context.findings)
            best = (shorter, weighed, (*kept_findings, *shorter.context.findings), money)
    return best


def _with_sets(
    reading: Reading,
    task: Task,
    *,
    weighed: Weighed,
    chosen: Chosen,
    demand: Demand,
    findings: tuple[Finding, ...],
    money: bool,
) -> Plan:
    """A plan with the chosen sets."""
    sets = build_sets(task, chosen, demand, reading.owner)
    late = partly_kept(task, chosen, demand)
    if late or (reading.task is not None and reading.task.intent.targets != task.intent.targets):
        # Too many would be late, or all of the target, or a part of it, was dropped because nothing keeps it.
        sets = tuple(replace(chosen_set, meets_slo=False) for chosen_set in sets)
    findings = (*findings, *load_undeclared(task, weighed.options, chosen, demand), *late)
    needed = chosen.replicas
    if chosen.covered < demand.amount - ROUNDING or needed < demand.least:
        rest, each = demand.amount - chosen.covered, chosen.sets[0][0].capacity
        needed += max(demand.least - needed, ceil(max(0.0, rest) / each - ROUNDING))
    wanted = needed if demand.most is None else min(needed, demand.most)
    if needed > wanted:
        findings = (*findings, above_most(sets[0], demand, needed, wanted))
    short = chosen.replicas < wanted
    if short:
        findings = (
            *findings,
            shortage(reading.slots, reading.owner, sets[0], demand, wanted=wanted, placed=chosen.replicas),
        )
    if task.intent.bounds.fixed == 0:
        sets, wanted, short = tuple(rescaled(chosen_set, 0) for chosen_set in sets), 0, False
    tight = any(chosen_set.ledger.verdict is Verdict.TIGHT for chosen_set in sets)
    return _plan(
        reading,
        task,
        outcome=Outcome.SHORT if short else Outcome.TIGHT if tight else Outcome.FITS,
        wanted=wanted,
        findings=(*findings, *findings_of_sets(reading, sets)),
        weighed=weighed,
        sets=sets,
        alternatives=alternatives(task, weighed.options, chosen, demand, money=money),
        choice=why_chosen(
            chosen,
            task.intent,
            demand,
            money=money,
            kinds=len(weighed.kinds),
            layouts=len(weighed.candidates),
        ),
        cost=total_cost(sets),
    )


def _without_room(
    reading: Reading, task: Task, *, weighed: Weighed, demand: Demand, findings: tuple[Finding, ...]
) -> Plan:
    """A plan without sets where a layout fits, but no device is free or allowed: the best layout is shown."""
    best = weighed.options[0]
    shown = build_set(task, best.candidate, 0, max(1, best.candidate.most), reading.owner)
    stopped = task.intent.bounds.fixed == 0
    wanted = replicas_for(best, demand)
    if demand.most is not None:
        wanted = min(wanted, demand.most)
    if not stopped:
        findings = (*findings, shortage(reading.slots, reading.owner, shown, demand, wanted=wanted, placed=0))
    return _plan(
        reading,
        task,
        outcome=Outcome.FITS if stopped else Outcome.SHORT,
        wanted=0 if stopped else wanted,
        findings=findings,
        weighed=weighed,
        nearest=shown,
        choice=f"{best.candidate.layout} on {best.candidate.slot.hardware} would be chosen if there were room",
    )


def findings_of_sets(reading: Reading, sets: Sequence[PlanSet]) -> tuple[Finding, ...]:
    return (*spanning(sets, reading.slots), *to_be_made(sets, reading.slots, reading.owner))


def _nearest(task: Task, weighed: Weighed) -> PlanSet | None:
    """Of the layouts that were turned down for memory alone, the one that has the most memory, without replicas."""
    heavy = [
        (slot, refusal.layout)
        for slot, refusal in weighed.refusals
        if slot is not None and refusal.rule == "memory"
    ]
    if not heavy:
        return None
    slot, layout = max(
        heavy, key=lambda pair: (pair[1].gpus * pair[0].hardware.memory_bytes, str(pair[0].hardware), pair[1])
    )
    shape = shape_of(layout, slot.site())
    if shape is None:
        return None
    return build_set(task, unfitting(task, slot, shape, layout), 0, 1, "")


def without_sets(
    reading: Reading,
    outcome: Outcome,
    *findings: Finding,
    weighed: Weighed | None = None,
    nearest: PlanSet | None = None,
) -> Plan:
    """A plan without sets: its findings say why."""
    return _plan(
        reading,
        reading.task,
        outcome=outcome,
        wanted=0,
        findings=findings or reading.findings,
        weighed=weighed,
        nearest=nearest,
    )


def _advice(reading: Reading, task: Task | None, shown: Sequence[PlanSet]) -> tuple[Advice, ...]:
    if task is None or not shown:
        return ()
    gpu = next(slot.gpu for slot in reading.slots if same_devices(slot.hardware, shown[0].hardware))
    return advise(task, gpu, shown[0], reading.hints)


def _plan(
    reading: Reading,
    task: Task | None,
    *,
    outcome: Outcome,
    wanted: int,
    findings: Sequence[Finding],
    weighed: Weighed | None = None,
    sets: tuple[PlanSet, ...] = (),
    alternatives: tuple[Alternative, ...] = (),
    nearest: PlanSet | None = None,
    choice: str = "",
    cost: Cost | None = None,
) -> Plan:
    model, engine = reading.facts.model, reading.engine
    return Plan(
        schema=SCHEMA,
        name=reading.deployment.name,
        namespace=reading.deployment.namespace,
        model=reading.deployment.spec.model.source,
        model_digest=model.digest if model is not None else "",
        model_origin=model.origin if model is not None else "",
        engine=engine.name if engine is not None else "",
        engine_version=engine.version if engine is not None else "",
        spec_digest=reading.digest,
        outcome=outcome,
        replicas_wanted=wanted,
        replicas_reason=replicas_reason(task.intent) if task is not None else "",
        sets=sets,
        findings=tuple(findings),
        rejected=rejected(weighed.refusals) if weighed is not None else (),
        alternatives=alternatives,
        advice=_advice(reading, task, (*sets, *((nearest,) if nearest is not None else ()))),
        nearest=nearest,
        choice=choice,
        cost=cost,
    )
