"""From one task and the devices it may use to weighed options, with the rule by which each other layout was turned down.

Of the pairs of layout and device that come into question (`prospects`) only promising ones are put to the ledger and the prediction,
the best bound first. Those that are left cannot be better than what was found, and are turned down for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, nsmallest
from math import inf
from typing import Final

from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.candidate import Candidate, evaluate, room_for
from plimsoll.planning.choice.cheapest import (
    ROUNDING,
    Demand,
    Option,
    carries_alone,
    choose,
    most_carried,
    option_of,
    replicas_for,
)
from plimsoll.planning.choice.prospects import Prospect, Prospects
from plimsoll.planning.layouts.every import Refusal
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.placing.placement import Slot, room
from plimsoll.planning.plan import Rejected

MOST_REJECTED: Final = 400
"""How many rejections a plan keeps, those that say most first, as a ConfigMap holds one megabyte."""
SURE, EXPECTED, POSSIBLE = 3, 2, 1
"""How likely a candidate is to fit."""
ENOUGH: Final = 4
"""Options that are looked for: the choice and its three alternatives."""
BY_BOUND: Final = frozenset({"cost", "target"})
"""Rules by which layouts are turned down whose weights the devices would hold."""
MOST_MISSES: Final = 48
"""After how many layouts that fit but miss the latency target no further ones are looked at, where none has kept it."""


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

    @property
    def kinds(self) -> frozenset[str]:
        """Devices that hold the model: with a layout that fits, or one that was turned down for nothing but what it costs or carries."""
        by_bound = (slot for slot, why in self.refusals if slot is not None and why.rule in BY_BOUND)
        return frozenset(slot.name for slot in (*(one.slot for one in self.candidates), *by_bound))


class _Weighing:
    """What was found so far, and whether a further pair of layout and device can matter."""

    def __init__(self, task: Task, demand: Demand, owner: str, *, money: bool) -> None:
        self.task = task
        self.demand = demand
        self.owner = owner
        self.money = money
        self.candidates: list[Candidate] = []
        self.refusals: list[tuple[Slot | None, Refusal]] = []
        self.sure: list[Option] = []
        self.late: list[Option] = []
        """Those that fit as surely, but of whose requests too many would be late, as users send them."""
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
        if self.late and most_carried(self.sure) < self.demand.amount:
            return [*self.sure, *self.late]
        return self.sure or self.tight

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
            kept = option.steady is None or option.steady.kept
            (self.tight if not result.fits else self.sure if kept else self.late).append(option)
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
        totals = [option.cost * replicas_for(option, demand) for option in options]
        covering = [
            total for option, total in zip(options, totals, strict=True) if carries_alone(option, demand)
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


def weigh(task: Task, slots: Sequence[Slot], demand: Demand, owner: str, *, money: bool) -> Weighed:
    """Weighs every layout on every kind of device: by rules first, then by bounds, then by predicted bounds, and by the ledger last."""
    prospects, weighing = Prospects(task, demand, money=money), _Weighing(task, demand, owner, money=money)
    waiting = [(prospect.order, prospect) for prospect in prospects.ask_rules(slots)]
    heapify(waiting)
    while waiting:
        prospect = heappop(waiting)[1]
        if not weighing.matters(prospect):
            refusal = Refusal(prospect.layout, "cost", _dearer(prospect, demand, task.intent.work))
            if prospect.bound.concurrency < 1:
                refusal = Refusal(prospect.layout, "target", _MISSED)
            weighing.refusals.append((prospect.slot, refusal))
        elif not prospect.predicted:
            tighter = prospects.predicted(prospect)
            heappush(waiting, (tighter.order, tighter))
        elif weighing.sure or weighing.tight or len(weighing.candidates) < MOST_MISSES:
            weighing.evaluate(prospect)
        else:
            weighing.refusals.append((prospect.slot, Refusal(prospect.layout, "target", _SLOWER)))
    return Weighed(
        options=tuple(sorted(weighing.options, key=lambda option: option.order)),
        candidates=tuple(weighing.candidates),
        refusals=(*prospects.refusals, *weighing.refusals),
    )


_MISSED: Final = "at its very best not even a single request keeps the latency target"
_SLOWER: Final = "at its best slower than others that miss the latency target"


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
