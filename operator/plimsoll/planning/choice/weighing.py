"""From one task and the devices it may use to weighed options, with the rule by which each other layout was turned down.

Each pair of layout and device is put to the rules first, then to cheap bounds, and only promising pairs to the ledger and the
prediction, the best bound first. Those that are left cannot be better than what was found, and are turned down for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, nsmallest
from math import inf
from typing import Final

from plimsoll.facts.gpus import GIB
from plimsoll.planning.ask.features import kv_dtype
from plimsoll.planning.ask.guesses import head_in_stages
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.bounds import (
    Bound,
    DeviceSpeed,
    Weight,
    bound_of,
    device_speed,
    tight_bound,
    weight_of,
)
from plimsoll.planning.choice.candidate import Candidate, evaluate, room_for
from plimsoll.planning.choice.cheapest import (
    ROUNDING,
    Demand,
    Option,
    choose,
    most_carried,
    option_of,
    replicas_for,
)
from plimsoll.planning.layouts.every import TENSOR, Refusal, enumerate_layouts, largest_tried
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.layouts.rules import (
    CONTEXT_PARALLEL_FLAG,
    FORMAT_RULES,
    PLACE_RULES,
    Question,
    Site,
    Wishes,
    first_refusal,
    refusal_on,
)
from plimsoll.planning.placing.placement import Slot, room, shape_of
from plimsoll.planning.plan import Rejected
from plimsoll.planning.settle.derive import most_utilization

MOST_REJECTED: Final = 400
"""How many rejections a plan keeps, those that say most first, as a ConfigMap holds one megabyte."""
SURE, EXPECTED, POSSIBLE = 3, 2, 1
"""How likely a candidate is to fit."""
ENOUGH: Final = 4
"""Options that are looked for: the choice and its three alternatives."""


MOST_MISSES: Final = 48
"""After how many layouts that fit but miss the latency target no further ones are looked at, where none has kept it."""
HOPELESS: Final = 1e6
"""Factor on the cost of a layout that misses the target at its very best, so that it is looked at after all others, by cost still."""
PLENTY: Final = 64
"""Typical sequences in the cache beyond which sharding it over ranks gains nothing."""
PLENTY_SURE: Final = 1.5
"""How many times as many tokens as are plenty a rough count of the cache must show, to be relied on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prospect:
    """A layout on some devices before it has a ledger: what it costs, and the most that it could carry."""

    slot: Slot
    layout: Layout
    shape: Shape
    weight: Weight
    budget: float
    """Bytes of a device that the engine may take."""
    bound: Bound
    predicted: bool
    """Whether the bound is the tighter one, which is a prediction."""
    cost: float
    """Cost of a replica; without a declared load, of a thousand output tokens a second at best."""
    capacity: float
    """The most that a replica could carry, in the demand's unit."""

    @property
    def order(self) -> tuple[object, ...]:
        """The key by which prospects are looked at, the most promising first."""
        return (self.cost / self.capacity, *self.layout.size_order, self.slot.order, self.predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What is left of all layouts on all devices, and what was turned down."""

    options: tuple[Option, ...] = ()
    """Best first: those that surely fit where there are any, else those that are tight."""
    candidates: tuple[Candidate, ...] = ()
    """All that fit, including those that miss the latency target."""
    refusals: tuple[tuple[Slot | None, Refusal], ...] = ()
    """Each with its devices; None where the layout is refused on any devices."""

    @property
    def quality(self) -> int:
        """How likely the likeliest candidate is to fit (SURE, EXPECTED, POSSIBLE); 0 where there is none."""
        return max((_likelihood(candidate) for candidate in self.candidates), default=0)


class _Weighing:
    """What was found so far, and whether a further pair of layout and device can matter."""

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
        self._threshold: float | None = None
        """Cost that a further pair with room must stay below to matter; None where it is to be worked out again."""
        self._fourth = inf
        """The same for a pair without room: the cost of the last alternative."""
        self._cheapest = inf
        """The least cost of a unit of the demand among the options."""
        self._rooms: dict[tuple[object, ...], bool] = {}

    @property
    def options(self) -> list[Option]:
        return self.sure or self.tight

    def ask_rules(self, slots: Sequence[Slot]) -> list[Prospect]:
        """The pairs that the rules and the bare weight of the model let through, with their first bounds."""
        kept = self._ask_model(slots)
        prospects: list[Prospect] = []
        for slot in slots:
            site, most = (
                slot.site(),
                largest_tried(self.task.model, slot.hardware.memory_bytes, self.question.wishes),
            )
            budget = slot.hardware.memory_bytes * most_utilization(self.task, slot)
            speed = device_speed(self.task, slot)
            barred = refusal_on(Layout(), self.question, site, FORMAT_RULES)
            for layout in kept:
                if layout.gpus > most:
                    continue
                refused = barred or refusal_on(layout, self.question, site, PLACE_RULES)
                if refused is not None:
                    self.refusals.append((slot, Refusal(layout, *refused)))
                    continue
                prospect = self._prospect(slot, site, speed, layout, budget)
                if isinstance(prospect, Prospect):
                    prospects.append(prospect)
                else:
                    self.refusals.append((slot, prospect))
        return prospects

    def _ask_model(self, slots: Sequence[Slot]) -> list[Layout]:
        """Layouts that the model, the user's wishes and the format allow. The others are refused once, for all devices."""
        model = self.task.model
        wishes = self.question.wishes
        most = max((largest_tried(model, slot.hardware.memory_bytes, wishes) for slot in slots), default=0)
        kept = []
        for layout in enumerate_layouts(model.architecture, most, self.question):
            refusal = first_refusal(layout, self.question)
            if refusal is None:
                kept.append(layout)
            else:
                self.refusals.append((None, Refusal(layout, *refusal)))
        return kept

    def _prospect(
        self, slot: Slot, site: Site, speed: DeviceSpeed, layout: Layout, budget: float
    ) -> Prospect | Refusal:
        """A layout on devices with its first bound, or why its weights or its shape rule it out."""
        spills = self.task.intent.spec.memory.cpu_offload is not None
        share = self.task.model.weights.total // layout.gpus
        if share > budget and not spills:
            # A rank holds at least its equal part, which is cheap to work out and often settles it.
            return _too_heavy(layout, share, budget, slot)
        shape = shape_of(layout, site)
        if shape is None:
            return Refusal(
                layout,
                "nodes",
                f"{layout.gpus} GPUs cannot be split evenly over nodes of up to {site.devices_per_node} with tensor ranks "
                f"together",
            )
        weight = self.weights.get(layout)
        if weight is None:
            weight = self.weights[layout] = weight_of(self.task, layout)
        if weight.largest > budget and not spills:
            return _too_heavy(layout, weight.largest, budget, slot)
        if layout.decode_context > 1:
            plenty = _held_unsharded(self.task, layout, weight, budget)
            if plenty is not None:
                return Refusal(layout, "context-parallel", plenty)
        bound = bound_of(self.task, speed, layout, weight, budget)
        cost, capacity = self._worth(slot, layout, bound)
        return Prospect(
            slot=slot,
            layout=layout,
            shape=shape,
            weight=weight,
            budget=budget,
            bound=bound,
            predicted=False,
            cost=cost,
            capacity=capacity,
        )

    def _worth(self, slot: Slot, layout: Layout, bound: Bound) -> tuple[float, float]:
        """Cost and capacity of a replica by its bound."""
        cost = layout.gpus * float(slot.price if self.money and slot.price is not None else slot.part)
        if self.demand.unit == "replicas":
            return cost * 1000 / max(1e-6, bound.tokens_per_second), 1.0
        carried = bound.concurrency if self.demand.unit == "concurrency" else bound.requests_per_second
        return cost, max(carried, 1e-6)

    def predicted(self, prospect: Prospect) -> Prospect:
        """The prospect with the tighter bound. One that misses the target even for a single request is put behind all others."""
        slot, layout = prospect.slot, prospect.layout
        bound = tight_bound(self.task, slot, layout, prospect.weight, prospect.budget)
        cost, capacity = self._worth(slot, layout, bound)
        if not bound.concurrency:
            cost *= HOPELESS
        return replace(prospect, bound=bound, predicted=True, cost=cost, capacity=capacity)

    def evaluate(self, prospect: Prospect) -> None:
        """Works a prospect out with its ledger, and keeps it as a candidate and an option, or as refused."""
        result = evaluate(self.task, prospect.slot, prospect.shape, prospect.layout)
        if isinstance(result, Refusal):
            self.refusals.append((prospect.slot, result))
            return
        self.candidates.append(result)
        free = room_for(result, self.owner)
        option = option_of(self.task, result, self.demand, free, money=self.money)
        if option is not None:
            (self.sure if result.fits else self.tight).append(option)
            self._threshold = None

    def matters(self, prospect: Prospect) -> bool:
        """Whether a pair could still be part of the best choice or one of its alternatives, if it were as good as its bound."""
        if self._threshold is None:
            self._weigh_options()
        # A pair without room can only be an alternative.
        threshold = (self._threshold if self._has_room(prospect) else self._fourth) or inf
        rest = max(0.0, self.demand.amount - prospect.capacity)
        unit = prospect.cost / prospect.capacity
        return prospect.cost + rest * min(self._cheapest, unit) < threshold

    def _has_room(self, prospect: Prospect) -> bool:
        slot, shape, layout = prospect.slot, prospect.shape, prospect.layout
        place = (slot.order, shape, layout.tensor > shape.devices)
        found = self._rooms.get(place)
        if found is None:
            found = any(room(pool, shape, layout, self.owner) for pool in slot.pools)
            self._rooms[place] = found
        return found

    def _weigh_options(self) -> None:
        """Works out what a further pair must cost less than: the best choice so far and its alternatives."""
        # Only options that surely fit count here: a tight one is taken only where none surely fits, so it must not stop the search.
        options, demand = self.sure, self.demand
        self._threshold = self._fourth = inf
        if len(options) < ENOUGH:
            return
        self._cheapest = min(option.cost / option.capacity for option in options)
        counts = [replicas_for(option, demand) for option in options]
        totals = [option.cost * count for option, count in zip(options, counts, strict=True)]
        covering = [
            total
            for option, total, count in zip(options, totals, counts, strict=True)
            if option.room >= count
        ]
        best = min(covering, default=inf)
        if best == inf and most_carried(options) >= demand.amount:
            chosen = choose(options, demand)
            if chosen is not None and chosen.covered >= demand.amount - ROUNDING:
                best = chosen.cost
        self._fourth = nsmallest(ENOUGH, totals)[-1]
        self._threshold = max(best, self._fourth)


def _likelihood(candidate: Candidate) -> int:
    if candidate.fits:
        return SURE
    capacity = candidate.ledger.capacity
    return EXPECTED if capacity is not None and capacity.concurrency_at_max_len.mid >= 1 else POSSIBLE


def question_of(task: Task, demand: Demand) -> Question:
    """What the rules need to know about the task."""
    question = Question(
        architecture=task.model.architecture,
        wishes=task.intent.wishes,
        share=task.intent.share,
        kv_dtype=kv_dtype(task.intent, task.model.architecture)[0],
        release=task.engine.release,
        context_parallel=CONTEXT_PARALLEL_FLAG in task.engine.flags,
        head_in_stages=head_in_stages(task.intent.spec, task.engine),
        # A budget of no GPUs at all turns down no layout: the plan is to show the one that would run, and that the budget forbids it.
        largest=None if task.intent.on_cpu else demand.limits.largest or None,
    )
    alone = replace(question, wishes=Wishes())
    tensors = tuple(size for size in TENSOR if first_refusal(Layout(tensor=size), alone) is None)
    return replace(question, tensors=tensors)


def weigh(task: Task, slots: Sequence[Slot], demand: Demand, owner: str, *, money: bool) -> Weighed:
    """Weighs every layout on every kind of device: by rules first, then by bounds, then by predicted bounds, and by the ledger last."""
    weighing = _Weighing(task, demand, owner, money=money)
    waiting = [(prospect.order, prospect) for prospect in weighing.ask_rules(slots)]
    heapify(waiting)
    while waiting:
        prospect = heappop(waiting)[1]
        if not weighing.matters(prospect):
            refusal = Refusal(prospect.layout, "cost", _dearer(prospect, demand, task.intent.work))
            if prospect.bound.concurrency < 1:
                refusal = Refusal(prospect.layout, "target", _MISSED)
            weighing.refusals.append((prospect.slot, refusal))
        elif not prospect.predicted:
            tighter = weighing.predicted(prospect)
            heappush(waiting, (tighter.order, tighter))
        elif weighing.options or len(weighing.candidates) < MOST_MISSES:
            weighing.evaluate(prospect)
        else:
            weighing.refusals.append((prospect.slot, Refusal(prospect.layout, "target", _SLOWER)))
    return Weighed(
        options=tuple(sorted(weighing.options, key=lambda option: option.order)),
        candidates=tuple(weighing.candidates),
        refusals=tuple(weighing.refusals),
    )


_MISSED: Final = "at its very best not even a single request keeps the latency target"
_SLOWER: Final = "at its best slower than others that miss the latency target"


def _too_heavy(layout: Layout, weights: int, budget: float, slot: Slot) -> Refusal:
    device = slot.hardware.memory_bytes
    return Refusal(
        layout,
        "memory",
        f"{weights / GIB:.1f} GiB of weights on each GPU, and the engine may take {budget / GIB:.1f} of "
        f"{device / GIB:.1f} GiB",
    )


def _held_unsharded(task: Task, layout: Layout, weight: Weight, budget: float) -> str | None:
    """Why sharding the cache over ranks would not pay: without it the cache is large enough already. None where it may pay."""
    tokens = (budget - weight.largest) / (weight.token * layout.decode_context) if weight.token else inf
    wanted = max(task.context.tokens, PLENTY * task.intent.lengths.live)
    if tokens < wanted * PLENTY_SURE:
        return None
    return f"the cache holds about {tokens:,.0f} tokens on each rank without it, {wanted:,} are plenty"


def _dearer(prospect: Prospect, demand: Demand, work: str) -> str:
    """Why a layout was turned down by its bound alone: it costs more than what was found."""
    if demand.unit == "replicas":
        return (
            f"at its very best {prospect.bound.tokens_per_second:,.0f} {work}s/s on {counted(prospect.layout.gpus, 'GPU')}, which cost "
            f"more for each than the layouts that were worked out"
        )
    unit = "requests in flight" if demand.unit == "concurrency" else "requests a second"
    return (
        f"at its very best {prospect.capacity:,.1f} {unit} on {counted(prospect.layout.gpus, 'GPU')}, which cost more for the load "
        f"than the layouts that were worked out"
    )


def rejected(refusals: Sequence[tuple[Slot | None, Refusal]]) -> tuple[Rejected, ...]:
    """The refusals as a plan keeps them: those that say the same of several kinds of hardware are one. Small layouts come first, and
    those that were turned down for their cost last."""
    merged: dict[tuple[Layout, str, str], list[str]] = {}
    for slot, refusal in refusals:
        places = merged.setdefault((refusal.layout, refusal.rule, refusal.message), [])
        if slot is not None and slot.name not in places:
            places.append(slot.name)
    rows = [
        Rejected(layout=layout, hardware=tuple(sorted(places)), rule=rule, message=message)
        for (layout, rule, message), places in merged.items()
    ]
    rows.sort(
        key=lambda row: (row.rule == "cost", *row.layout.size_order, row.rule, row.hardware, row.message)
    )
    return tuple(rows[:MOST_REJECTED])
