"""Which pairs of layout and device come into question, each with the most that it could carry before it has a ledger.

The others are turned down by the rules, by the bare weight of the model, or since their cache gains nothing from being sharded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from plimsoll.facts.gpus import GIB
from plimsoll.planning.ask.features import kv_word
from plimsoll.planning.ask.guesses import head_in_stages
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.bounds import (
    Bound,
    DeviceSpeed,
    Weight,
    bound_of,
    device_speed,
    tight_bound,
    weight_of,
)
from plimsoll.planning.choice.cheapest import Demand
from plimsoll.planning.layouts.every import TENSOR, Refusal, enumerate_layouts, largest_tried
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.layouts.rules import (
    CONTEXT_PARALLEL_FLAG,
    ENCODER_FLAG,
    FORMAT_RULES,
    PLACE_RULES,
    Question,
    Site,
    Wishes,
    first_refusal,
    refusal_on,
)
from plimsoll.planning.placing.placement import Slot, shape_of
from plimsoll.planning.settle.derive import most_utilization

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


class Prospects:
    """Makes the prospects of one task, and keeps why the other pairs are none."""

    def __init__(self, task: Task, demand: Demand, *, money: bool) -> None:
        self.task = task
        self.demand = demand
        self.money = money
        self.question = _question_of(task, demand)
        self.weights: dict[Layout, Weight] = {}
        self.refusals: list[tuple[Slot | None, Refusal]] = []

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
        # In money a slot without a price holds no layout (`in_money`): whatever it costs, the ledger is to say why.
        each = (slot.price or 0) if self.money else slot.part
        cost = layout.gpus * float(each)
        if self.demand.unit == "replicas":
            return cost * 1000 / max(1e-6, bound.tokens_per_second), 1.0
        rate = bound.requests_per_second / self.demand.stretch
        carried = bound.concurrency if self.demand.unit == "concurrency" else rate
        return cost, max(carried, 1e-6)

    def predicted(self, prospect: Prospect) -> Prospect:
        """The prospect with the tighter bound. One that misses the target even for a single request is put behind all others."""
        slot, layout = prospect.slot, prospect.layout
        bound = tight_bound(self.task, slot, layout, prospect.weight, prospect.budget)
        cost, capacity = self._worth(slot, layout, bound)
        if not bound.concurrency:
            cost *= HOPELESS
        return replace(prospect, bound=bound, predicted=True, cost=cost, capacity=capacity)


def _question_of(task: Task, demand: Demand) -> Question:
    """What the rules need to know about the task."""
    wish = task.intent.spec.speculative
    question = Question(
        architecture=task.model.architecture,
        wishes=task.intent.wishes,
        share=task.intent.share,
        kv_dtype=kv_word(task.intent.spec.memory.kv_cache_dtype, task.model.architecture),
        release=task.engine.release,
        generates=task.intent.generates,
        own_image=task.own_image,
        context_parallel=CONTEXT_PARALLEL_FLAG in task.engine.flags,
        head_in_stages=head_in_stages(task.intent.spec, task.engine),
        encoder_cut=not task.intent.spec.engine.tells(ENCODER_FLAG),
        draft=None if task.draft is None else task.draft.architecture,
        draft_tensor=None if wish is None or wish.method == "ngram" else wish.tensor,
        # A budget of no GPUs at all turns down no layout: the plan is to show the one that would run, and that the budget forbids it.
        largest=None if task.intent.on_cpu else demand.limits.largest or None,
    )
    alone = replace(question, wishes=Wishes())
    tensors = tuple(size for size in TENSOR if first_refusal(Layout(tensor=size), alone) is None)
    return replace(question, tensors=tensors)


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
