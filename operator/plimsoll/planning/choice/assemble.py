"""From chosen candidates to the sets of a plan: the load each replica carries, its pods, its cost, its digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import counted, explained
from plimsoll.planning.choice.candidate import Candidate, attains, hosts_of, load_of, predictor, settled
from plimsoll.planning.choice.cheapest import ROUNDING, Chosen, Demand, Option, replicas_for
from plimsoll.planning.load import Performance
from plimsoll.planning.placing.budgets import UNLIMITED
from plimsoll.planning.placing.cost import cost_of
from plimsoll.planning.placing.placement import spread
from plimsoll.planning.plan import Alternative, Origin, PlanSet, Value
from plimsoll.planning.settle.changed import set_digest
from plimsoll.planning.settle.sequences import queue_limit
from plimsoll.planning.speed.open_loop import Steady

MOST_ALTERNATIVES = 3


def build_sets(task: Task, chosen: Chosen, demand: Demand, owner: str) -> tuple[PlanSet, ...]:
    """The sets of all chosen options, with the number of replicas that was chosen for each."""
    total = chosen.covered
    return tuple(
        build_set(
            task,
            option.candidate,
            count,
            concurrency_of(task, option, demand, total, chosen.replicas),
            owner,
            steady=option.steady,
        )
        for option, count in chosen.sets
    )


def concurrency_of(task: Task, option: Option, demand: Demand, total: float, replicas: int) -> int:
    """Requests in flight that are expected on one replica of an option: its part of the declared load, else a modest load."""
    most = max(1, option.candidate.most)
    intent = task.intent
    if demand.unit == "concurrency":
        wanted = ceil(demand.amount * option.capacity / total - ROUNDING)
    elif option.steady is not None:
        wanted = ceil(option.steady.in_flight * min(1.0, demand.amount / total) - ROUNDING)
    elif intent.concurrency is not None:
        wanted = ceil(Fraction(intent.concurrency, max(1, replicas)))
    else:
        wanted = task.modest
    return max(1, min(most, wanted))


def build_set(
    task: Task,
    candidate: Candidate,
    replicas: int,
    concurrency: int,
    owner: str,
    *,
    steady: Steady | None = None,
) -> PlanSet:
    """The set of a candidate, predicted at so many requests in flight on each replica."""
    candidate = settled(task, candidate)
    limit, why = queue_limit(task, candidate.at_most.requests_per_second if candidate.at_most else None)
    settings = replace(candidate.settings, max_queued_requests=limit)
    performance: Performance | None = None
    if candidate.at_most is not None:
        performance = predictor(task, candidate.slot, candidate.layout, settings, candidate.ledger)(
            concurrency
        )
    hardware, engine = candidate.slot.hardware, task.engine
    has_target = task.intent.has_target
    return PlanSet(
        digest=set_digest(
            hardware,
            candidate.layout,
            settings,
            candidate.resources,
            engine=engine.name,
            version=engine.version,
        ),
        hardware=hardware,
        layout=candidate.layout,
        settings=settings,
        replicas=replicas,
        pods_per_replica=candidate.shape.pods,
        resources=candidate.resources,
        ledger=candidate.ledger,
        load=load_of(task.intent, concurrency),
        performance=performance,
        max_concurrency=candidate.most,
        meets_slo=attains(task.intent, performance) if has_target and performance is not None else None,
        cost=cost_of(hardware, candidate.devices, replicas, performance, generates=task.intent.generates),
        values=(*candidate.values, why, _layout_value(candidate)),
        placements=spread(hosts_of(candidate, owner), candidate.shape, candidate.layout, replicas, owner),
        most_per_second=None if candidate.at_most is None else candidate.at_most.requests_per_second,
        steady_per_second=None if steady is None else steady.per_second,
    )


def alternatives(
    task: Task, offered: Sequence[Option], chosen: Chosen, demand: Demand, *, money: bool
) -> tuple[Alternative, ...]:
    """The best single layouts that were not taken, with what they would have cost."""
    taken = {id(option) for option, _ in chosen.sets}
    rows = []
    for option in offered:
        if id(option) in taken:
            continue
        count = replicas_for(option, demand)
        total = option.cost * count
        rows.append((option.room < count or _over(demand, count), total, option.order, option, count))
    rows.sort(key=lambda row: row[:3])
    return tuple(
        _alternative(task, option, count, best=chosen.cost, demand=demand, money=money)
        for _, _, _, option, count in rows[:MOST_ALTERNATIVES]
    )


def _alternative(
    task: Task, option: Option, count: int, *, best: float, demand: Demand, money: bool
) -> Alternative:
    candidate = option.candidate
    concurrency = concurrency_of(task, option, demand, option.capacity * count, count)
    performance = candidate.at_most
    if performance is not None and concurrency != candidate.most:
        performance = predictor(task, candidate.slot, candidate.layout, candidate.settings, candidate.ledger)(
            concurrency
        )
    has_target = task.intent.has_target and performance is not None
    return Alternative(
        sets=(f"{count} x {candidate.layout} on {candidate.slot.hardware}",),
        replicas=count,
        gpus=float(candidate.gpu_hours * count),
        cost=cost_of(
            candidate.slot.hardware, candidate.devices, count, performance, generates=task.intent.generates
        ),
        verdict=candidate.ledger.verdict,
        tpot_ms=performance.tpot_ms if performance else None,
        ttft_ms=performance.ttft_ms if performance else None,
        output_tokens_per_second=performance.output_tokens_per_second * count if performance else None,
        meets_slo=attains(task.intent, performance) if has_target and performance else None,
        reason=_why_not(option, count, best, demand, unit=_unit(task.intent, demand, money=money)),
    )


def _why_not(option: Option, count: int, best: float, demand: Demand, *, unit: str) -> str:
    if _over(demand, count):
        return f"would need {counted(count, 'replica')}, and at most {demand.most} are allowed"
    if option.room < count:
        kept = "there is room for" if demand.limits == UNLIMITED else "room and budget are for"
        return f"would need room for {counted(count, 'replica')}, and {kept} {option.room:,}"
    total = option.cost * count
    if total > best * (1 + ROUNDING) > 0:
        more = (total / best - 1) * 100
        return f"{f'{more:.0f}' if more >= 1 else 'less than 1'}% more {unit}"
    return f"the same {unit}; more devices a replica, a less simple layout or a larger GPU"


def _unit(intent: Intent, demand: Demand, *, money: bool) -> str:
    unit = "cost" if money else intent.hours
    return f"{unit} for each {intent.work}" if demand.unit == "replicas" else unit


def _over(demand: Demand, count: int) -> bool:
    return demand.most is not None and count > demand.most


def _layout_value(candidate: Candidate) -> Value:
    layout = candidate.layout
    return explained(
        "layout",
        str(layout),
        "the cheapest that passes all rules and the ledger; see the choice and the rejected ones",
        inputs={
            "tensor": str(layout.tensor),
            "pipeline": str(layout.pipeline),
            "data": str(layout.data),
            "pods": str(candidate.shape.pods),
        },
        origin=Origin.DERIVED,
        source="rules, ledger and cost",
        changes="topology, slo, workload, GPUs or prices",
        field="topology",
    )
