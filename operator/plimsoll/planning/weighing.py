"""From one task and the devices it may use to weighed options, everything turned down named with its rule.

Pairs of layout and device are asked by the rules, then by cheap bounds, and only the promising ones by the ledger and the
prediction, best bound first: the rest cannot be better than what was found, and is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from math import ceil, inf
from typing import Final

from plimsoll.api.quantity import format_gib
from plimsoll.planning.bounds import Bound, Weight, bound_of, weight_of
from plimsoll.planning.candidate import Candidate, evaluate, room_for
from plimsoll.planning.choice import Demand, Option, choose, option_of
from plimsoll.planning.derive import most_utilization
from plimsoll.planning.layout import Layout
from plimsoll.planning.layouts import TENSOR, Refusal, enumerate_layouts, largest_tried
from plimsoll.planning.placement import Shape, Slot, room, shape_of
from plimsoll.planning.plan import Rejected
from plimsoll.planning.rules import CONTEXT_PARALLEL_FLAG, Question, Wishes, first_refusal, refusal_on
from plimsoll.planning.task import Task

MOST_REJECTED: Final = 400
"""Kept in a plan, most telling first; a ConfigMap holds one megabyte."""
ENOUGH: Final = 4
"""The choice and its three alternatives."""


MOST_MISSES: Final = 48
"""Layouts that fit and miss the latency target, after which only the fastest of the rest are still asked."""
LAST_ASKED: Final = 16
PLENTY: Final = 256
"""Typical sequences in the cache beyond which sharding it over ranks gains nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prospect:
    """A layout on some devices before its ledger: what it costs, and the most it could carry for that."""

    slot: Slot
    layout: Layout
    shape: Shape
    room: int
    cost: float
    """Of a replica; with no declared load, of the work it could do at best."""
    capacity: float
    bound: Bound

    @property
    def unit(self) -> float:
        return self.cost / self.capacity

    @property
    def order(self) -> tuple[object, ...]:
        return (self.unit, self.layout.gpus, self.layout, self.slot.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    options: tuple[Option, ...] = ()
    """Best first; sure ones where there are any, else those expected to fit."""
    candidates: tuple[Candidate, ...] = ()
    """All that fit, those that miss the latency target included."""
    refusals: tuple[tuple[Slot | None, Refusal], ...] = ()
    """None: wherever it would run."""


class _Weighing:
    """What was found so far, and whether anything further can matter."""

    def __init__(self, task: Task, demand: Demand, owner: str, *, money: bool) -> None:
        self.task = task
        self.demand = demand
        self.owner = owner
        self.money = money
        self.question = question_of(task, demand)
        self.weights: dict[Layout, Weight] = {}
        self.candidates: list[Candidate] = []
        self.refusals: list[tuple[Slot | None, Refusal]] = []
        self.sure: list[Option] = []
        self.tight: list[Option] = []

    @property
    def options(self) -> list[Option]:
        return self.sure or self.tight

    def ask_rules(self, slots: Sequence[Slot]) -> list[Prospect]:
        """What the rules, the bare weight of the model and the bounds let through."""
        kept = self._ask_model(slots)
        prospects: list[Prospect] = []
        for slot in slots:
            site, most = slot.site(), largest_tried(self.task.model, slot.hardware.memory_bytes)
            budget = slot.hardware.memory_bytes * most_utilization(self.task, slot)
            for layout in kept:
                if layout.gpus > most:
                    continue
                refused = refusal_on(layout, self.question, site)
                if refused is not None:
                    self.refusals.append((slot, Refusal(layout, *refused)))
                    continue
                prospect = self._prospect(slot, layout, budget)
                if isinstance(prospect, Prospect):
                    prospects.append(prospect)
                else:
                    self.refusals.append((slot, prospect))
        return sorted(prospects, key=lambda prospect: prospect.order)

    def _ask_model(self, slots: Sequence[Slot]) -> list[Layout]:
        """Layouts that the model, the wishes and the format allow; the others are refused once, wherever they would run."""
        model = self.task.model
        most = max((largest_tried(model, slot.hardware.memory_bytes) for slot in slots), default=0)
        kept = []
        for layout in enumerate_layouts(model.architecture, most, self.question):
            refusal = first_refusal(layout, self.question)
            if refusal is None:
                kept.append(layout)
            else:
                self.refusals.append((None, Refusal(layout, *refusal)))
        return kept

    def _prospect(self, slot: Slot, layout: Layout, budget: float) -> Prospect | Refusal:
        if not self.task.intent.spec.memory.cpu_offload:
            share = self.task.model.weights.total // layout.gpus
            if share > budget:
                # Cheap and enough: a rank holds at least its part.
                return _too_heavy(layout, share, budget, slot)
        shape = shape_of(layout, slot.pools)
        if shape is None:
            sizes = ", ".join(str(size) for size in sorted({pool.devices_per_node for pool in slot.pools}))
            return Refusal(
                layout,
                "nodes",
                f"{layout.gpus} GPUs cannot be split evenly over nodes of {sizes} with tensor ranks together",
            )
        weight = self.weights.get(layout)
        if weight is None:
            weight = self.weights[layout] = weight_of(self.task, layout)
        if weight.largest > budget and not self.task.intent.spec.memory.cpu_offload:
            return _too_heavy(layout, weight.largest, budget, slot)
        if layout.decode_context > 1:
            plenty = _held_unsharded(self.task, layout, weight, budget)
            if plenty is not None:
                return Refusal(layout, "context-parallel", plenty)
        bound = bound_of(self.task, slot, layout, weight, budget)
        hours = slot.part * layout.gpus
        cost = float(slot.price * layout.gpus if self.money and slot.price is not None else hours)
        capacity = 1.0
        if self.demand.unit == "replicas":
            cost = cost * 1000 / bound.tokens_per_second
        else:
            capacity = bound.concurrency if self.demand.unit == "concurrency" else bound.requests_per_second
        free = sum(room(pool, shape, layout, self.owner) for pool in slot.pools)
        return Prospect(
            slot=slot,
            layout=layout,
            shape=shape,
            room=free,
            cost=cost,
            capacity=max(capacity, 1e-9),
            bound=bound,
        )

    def evaluate(self, prospect: Prospect) -> None:
        result = evaluate(self.task, prospect.slot, prospect.shape, prospect.layout)
        if isinstance(result, Refusal):
            self.refusals.append((prospect.slot, result))
            return
        self.candidates.append(result)
        free = room_for(result, self.owner)
        option = option_of(self.task, result, self.demand, free, money=self.money)
        if option is not None:
            (self.sure if result.fits else self.tight).append(option)

    def matters(self, prospect: Prospect) -> bool:
        """Whether a pair could still be part of the best answer, or be one of its alternatives, at its very best."""
        if len(self.options) < ENOUGH:
            return True
        cheapest = min(float(option.cost / option.capacity) for option in self.options)
        rest = max(0.0, float(self.demand.amount) - prospect.capacity)
        return prospect.cost + rest * min(cheapest, prospect.unit) < self._threshold()

    def _threshold(self) -> float:
        totals = [(float(option.cost) * self._count(option), option) for option in self.options]
        best = min((total for total, option in totals if option.room >= self._count(option)), default=inf)
        if best == inf:
            chosen = choose(self.options, self.demand)
            if chosen is not None and chosen.covered >= self.demand.amount:
                best = float(chosen.cost)
        return max(best, nsmallest(ENOUGH, (total for total, _ in totals))[-1])

    def _count(self, option: Option) -> int:
        return max(self.demand.least, ceil(self.demand.amount / option.capacity))


def question_of(task: Task, demand: Demand) -> Question:
    question = Question(
        architecture=task.model.architecture,
        wishes=task.intent.wishes,
        context_parallel=CONTEXT_PARALLEL_FLAG in task.engine.flags,
        largest=None if demand.limits.devices is None else int(demand.limits.devices),
    )
    alone = replace(question, wishes=Wishes())
    tensors = tuple(size for size in TENSOR if first_refusal(Layout(tensor=size), alone) is None)
    return replace(question, tensors=tensors)


def weigh(task: Task, slots: Sequence[Slot], demand: Demand, owner: str, *, money: bool) -> Weighed:
    """Every layout on every kind of device: rules first, bounds next, the ledger last."""
    weighing = _Weighing(task, demand, owner, money=money)
    waiting = weighing.ask_rules(slots)
    misses = 0
    while waiting:
        prospect = waiting.pop(0)
        if not weighing.matters(prospect):
            weighing.refusals.append(
                (prospect.slot, Refusal(prospect.layout, "cost", _dearer(prospect, demand)))
            )
            continue
        before = len(weighing.candidates)
        weighing.evaluate(prospect)
        misses = 0 if weighing.options else misses + len(weighing.candidates) - before
        if misses == MOST_MISSES:
            # None of the cheapest keeps the target: what is left to try are the fastest.
            waiting.sort(key=lambda p: (-p.bound.tokens_per_second / max(1.0, p.bound.concurrency), p.order))
            for slower in waiting[LAST_ASKED:]:
                weighing.refusals.append((slower.slot, Refusal(slower.layout, "target", _SLOWER)))
            waiting = waiting[:LAST_ASKED]
    return Weighed(
        options=tuple(sorted(weighing.options, key=lambda option: option.order)),
        candidates=tuple(weighing.candidates),
        refusals=tuple(weighing.refusals),
    )


_SLOWER: Final = "at its best slower than others that miss the latency target"


def _too_heavy(layout: Layout, weights: int, budget: float, slot: Slot) -> Refusal:
    device = slot.hardware.memory_bytes
    return Refusal(
        layout,
        "memory",
        f"{format_gib(weights)} of weights on each GPU, and the engine may take {format_gib(int(budget))} "
        f"of {format_gib(device)}",
    )


def _held_unsharded(task: Task, layout: Layout, weight: Weight, budget: float) -> str | None:
    """Sharding the cache pays only where the cache binds: words for where it does not."""
    tokens = (budget - weight.largest) / (weight.token * layout.decode_context) if weight.token else inf
    wanted = max(task.context.tokens, PLENTY * task.intent.lengths.live)
    if tokens < wanted * 1.5:
        return None
    return f"the cache holds about {tokens:,.0f} tokens on each rank without it, {wanted:,} are plenty"


def _dearer(prospect: Prospect, demand: Demand) -> str:
    """Why a bound was enough."""
    if demand.unit == "replicas":
        return (
            f"at its very best {prospect.bound.tokens_per_second:,.0f} output tokens/s on {prospect.layout.gpus} GPUs, "
            f"which cost more a token than the layouts that were worked out"
        )
    unit = "requests in flight" if demand.unit == "concurrency" else "requests a second"
    return (
        f"at its very best {prospect.capacity:,.1f} {unit} on {prospect.layout.gpus} GPUs, which cost more for the load "
        f"than the layouts that were worked out"
    )


def rejected(refusals: Sequence[tuple[Slot | None, Refusal]]) -> tuple[Rejected, ...]:
    """Refusals that say the same of several kinds of hardware become one; small layouts first, bounds last."""
    merged: dict[tuple[Layout, str, str], list[str]] = {}
    for slot, refusal in refusals:
        places = merged.setdefault((refusal.layout, refusal.rule, refusal.message), [])
        if slot is not None and (name := str(slot.hardware)) not in places:
            places.append(name)
    rows = [
        Rejected(layout=layout, hardware=tuple(sorted(places)), rule=rule, message=message)
        for (layout, rule, message), places in merged.items()
    ]
    rows.sort(
        key=lambda row: (row.rule == "cost", row.layout.gpus, row.layout, row.rule, row.hardware, row.message)
    )
    return tuple(rows[:MOST_REJECTED])
