"""Which candidates to run, and how many replicas of each: the cheapest sets that carry the load within the bounds.

Costs are money where every candidate has a price (`in_money`), else GPU-hours. With a declared load, the sets that carry it for the least cost are
chosen; without one, those with the lowest cost for the work that they do at a modest load. Sets on different hardware are found by an
exact search over at most one layout on each slot. A fixed order breaks every tie, so equal inputs give equal choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Final

from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice import rule
from plimsoll.planning.choice.candidate import Candidate, rate_at
from plimsoll.planning.choice.steady import steady_of
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.placing.budgets import UNLIMITED, Limits
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.planning.speed.open_loop import Steady

PER_SLOT: Final = 4
"""Candidates of one slot that enter the search: cheapest alone, cheapest replica, cheapest work, largest replica."""
NEAR: Final = rule.NEAR
ROUNDING: Final = 1e-9
"""Sums that differ by no more than this count as equal, as adding in another order changes the last digits."""
LEAST_RATE: Final = 0.001
"""Requests a second that every planned replica is taken to carry."""
MANY: Final = 10**9
"""A number of replicas that stands for no limit."""
MOST_STEPS: Final = 20_000
"""After how many steps the search ends with the best found so far. It is a count and no time limit, so that equal inputs choose alike."""
COUNTS_TRIED: Final = 8
"""How many numbers of replicas the search tries for an option, from the largest useful one down."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Option:
    """A candidate as the search sees it."""

    candidate: Candidate
    capacity: float
    """What one replica carries, in the demand's unit."""
    cost: float
    """Cost of one replica, in the unit that all options share."""
    room: int
    """Replicas for which there are devices and budget."""
    steady: Steady | None = None
    """The load that `capacity` stands for, where the demand is a rate."""

    @cached_property
    def order(self) -> tuple[object, ...]:
        """By cost; ties are broken by fewer devices, simpler layouts, smaller GPUs, and names."""
        candidate = self.candidate
        return (
            self.cost,
            candidate.devices,
            candidate.layout.decode_context,
            candidate.layout.pipeline,
            candidate.layout.data,
            candidate.layout,
            candidate.slot.order,
        )


Preference = Callable[[Option, float], float]
"""Of an option that would carry so much of what is left of the demand: the smaller, the sooner it is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the sets must carry together."""

    amount: float
    """Requests in flight, requests a second, or replicas."""
    unit: str
    """concurrency, rate or replicas."""
    least: int
    most: int | None
    limits: Limits = UNLIMITED
    stretch: float = 1.0
    """Of a rate: how many times a typical request the mean one is. Predictions are of typical requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Options and how many replicas of each."""

    sets: tuple[tuple[Option, int], ...]
    """The one that carries most first."""
    cost: float
    covered: float
    """How much of the demand they carry."""

    @property
    def replicas(self) -> int:
        return sum(count for _, count in self.sets)


def demand_of(intent: Intent, limits: Limits) -> Demand:
    """The declared load, within the bounds on replicas; a fixed number of replicas is obeyed exactly."""
    bounds = intent.bounds
    if intent.most_per_hour is not None:
        per_hour = (
            intent.most_per_hour if limits.per_hour is None else min(intent.most_per_hour, limits.per_hour)
        )
        limits = replace(limits, per_hour=per_hour)
    least, most = max(1, bounds.least), bounds.most
    if bounds.fixed is None and intent.concurrency is not None:
        return Demand(
            amount=float(intent.concurrency), unit="concurrency", least=least, most=most, limits=limits
        )
    if bounds.fixed is None and intent.rate is not None:
        return Demand(
            amount=float(intent.rate),
            unit="rate",
            least=least,
            most=most,
            limits=limits,
            stretch=intent.lengths.stretch,
        )
    # Zero replicas are planned as one, so that there is a plan when they are raised again.
    count = least if bounds.fixed is None else max(1, bounds.fixed)
    return Demand(amount=float(count), unit="replicas", least=count, most=count, limits=limits)


def more_of(demand: Demand, least: int, most: int | None) -> Demand:
    """The demand with at least so many replicas, within the user's own limit `most`."""
    least = least if most is None else min(least, most)
    if demand.unit != "replicas":
        return replace(demand, least=max(demand.least, least))
    count = max(demand.least, least)
    return replace(demand, amount=float(count), least=count, most=count)


def wanted_of(pinned: Plan, demand: Demand, intent: Intent, wished: int | None = None) -> int:
    """Replicas that the pinned sets need for today's demand. Those beyond their present number count as the first set's."""
    bounds = intent.bounds
    if bounds.fixed is not None:
        return bounds.fixed
    if wished is not None:
        return max(bounds.least, wished if bounds.most is None else min(wished, bounds.most))
    left, wanted = demand.amount, 0
    for chosen in pinned.sets:
        count = min(chosen.replicas, _replicas_needed(chosen, demand, left))
        wanted += count
        left -= count * _carried(chosen, demand)
    wanted = max(demand.least, wanted + _replicas_needed(pinned.sets[0], demand, left))
    return wanted if demand.most is None else min(wanted, demand.most)


def _replicas_needed(chosen: PlanSet, demand: Demand, left: float) -> int:
    """Replicas of a set that carry what is left of the demand."""
    return max(0, ceil(left / _carried(chosen, demand) - ROUNDING))


def _carried(chosen: PlanSet, demand: Demand) -> float:
    """What one replica of a set carries, in the demand's unit."""
    if demand.unit == "concurrency":
        return max(1.0, chosen.max_concurrency)
    if demand.unit == "rate" and chosen.steady_per_second is not None:
        return max(LEAST_RATE, chosen.steady_per_second)
    if demand.unit == "rate" and chosen.performance is not None:
        return max(LEAST_RATE, chosen.performance.requests_per_second / demand.stretch)
    return 1.0


def option_of(task: Task, candidate: Candidate, demand: Demand, room: int, *, money: bool) -> Option | None:
    """A candidate as the search sees it; None where it carries nothing within the target."""
    goes_on = steady_of(task, candidate, demand.amount) if demand.unit == "rate" else None
    if demand.unit == "rate":
        carries = 0.0 if goes_on is None else goes_on.per_second
    else:
        carries = float(candidate.most) if demand.unit == "concurrency" else 1.0
    if carries <= 0 or (task.intent.has_target and not candidate.most):
        return None
    cost = float(candidate.price if money and candidate.price is not None else candidate.gpu_hours)
    if demand.unit == "replicas":
        work = rate_at(task, candidate, max(1, min(task.modest, candidate.most)))
        # The cost of a thousand output tokens a second; without a prediction, of a replica.
        cost = cost * 1000 / max(1.0, work) if work is not None else cost
        cost *= 1 + NEAR * mechanisms(candidate.layout)
    return Option(
        candidate=candidate,
        capacity=carries,
        cost=cost,
        room=min(room, allowed(candidate, demand)),
        steady=goes_on,
    )


def mechanisms(layout: Layout) -> int:
    """How many kinds of parallelism a layout uses beside tensor. Each makes it count as dearer by what predictions cannot tell apart, so
    that it is chosen only where it is clearly better."""
    extras = (layout.decode_context > 1, layout.pipeline > 1, layout.data > 1, layout.expert_parallel)
    return sum(extras)


def allowed(candidate: Candidate, demand: Demand) -> int:
    """Replicas that the limits allow where no other candidate runs; the search holds a mix of several to them."""
    most = demand.limits.allows(candidate.claim)
    return MANY if most is None else most


def choose(offered: Sequence[Option], demand: Demand) -> Chosen | None:
    """The cheapest options that carry the demand within the bounds; else as much as finds room; None where nothing does."""
    slots = _by_slot([option for option in offered if option.room > 0])
    if most_carried(offered) >= demand.amount - ROUNDING:
        search = _Search(_promising(slots, demand), demand)
        search.run(0, demand.amount, 0, 0.0, ())
        if search.best is not None:
            return _chosen(search.best)
    return _as_much_as_possible(slots, demand)


def most_carried(offered: Sequence[Option]) -> float:
    """The most that could be carried if each slot were filled with its best option. A demand beyond it needs no search."""
    best: dict[tuple[int, str, str], float] = {}
    for option in offered:
        place = option.candidate.slot.order
        best[place] = max(best.get(place, 0.0), option.room * option.capacity)
    return sum(best.values())


def _by_slot(offered: Sequence[Option]) -> list[list[Option]]:
    grouped: dict[int, list[Option]] = {}
    for option in offered:
        grouped.setdefault(id(option.candidate.slot), []).append(option)
    return list(grouped.values())


def _promising(slots: Sequence[Sequence[Option]], demand: Demand) -> list[list[Option]]:
    """A few options of each slot; the slots in the order of their lowest cost for what they carry."""
    few = []
    for group in slots:
        picks = [
            min(group, key=lambda option: (option.cost / option.capacity, option.order)),
            # The one that carries all for the least, with no more replicas than may be where there is one.
            min(
                group,
                key=lambda option: (
                    not carries_alone(option, demand),
                    option.cost * replicas_for(option, demand),
                    option.order,
                ),
            ),
            min(group, key=lambda option: option.order),
            # The one whose single replica carries most of the demand.
            min(group, key=lambda option: (-min(option.capacity, demand.amount), option.order)),
        ]
        few.append(list(dict.fromkeys(picks))[:PER_SLOT])
    return sorted(few, key=lambda group: min((o.cost / o.capacity, o.order) for o in group))


class _Search:
    """A depth-first search over slots that tries many replicas first, and gives a branch up where even the cheapest way to carry what is
    left of the demand would cost more than the best found so far."""

    def __init__(self, slots: list[list[Option]], demand: Demand) -> None:
        self.slots = slots
        self.demand = demand
        self.steps = 0
        self.best: tuple[tuple[Option, int], ...] | None = None
        self.best_rank: tuple[object, ...] | None = None
        cheapest = [min(option.cost / option.capacity for option in group) for group in slots]
        self.cheapest_from = [min(cheapest[index:]) for index in range(len(cheapest))]
        """The least cost of a unit of the demand, from this slot on."""

    def run(
        self, index: int, left: float, replicas: int, cost: float, taken: tuple[tuple[Option, int], ...]
    ) -> None:
        self.steps += 1
        if left <= ROUNDING and replicas >= self.demand.least:
            self._keep(cost, taken)
            return
        if index == len(self.slots) or self.steps > MOST_STEPS or self._hopeless(index, left, cost):
            return
        for option in self.slots[index]:
            for count in self._counts(option, left, replicas, taken):
                self.run(
                    index + 1,
                    left - count * option.capacity,
                    replicas + count,
                    cost + count * option.cost,
                    (*taken, (option, count)),
                )
        self.run(index + 1, left, replicas, cost, taken)

    def _hopeless(self, index: int, left: float, cost: float) -> bool:
        if self.best_rank is None:
            return False
        floor = cost + max(0.0, left) * self.cheapest_from[index]
        best = self.best_rank[0]
        return isinstance(best, float) and floor > best + ROUNDING

    def _counts(
        self, option: Option, left: float, replicas: int, taken: tuple[tuple[Option, int], ...]
    ) -> range:
        need = max(_replicas_carrying(left, option), self.demand.least - replicas)
        top = min(need, option.room, _still_allowed(self.demand, taken, option))
        return range(top, max(0, top - COUNTS_TRIED), -1)

    def _keep(self, cost: float, taken: tuple[tuple[Option, int], ...]) -> None:
        devices = sum(option.candidate.devices * count for option, count in taken)
        rank = (
            round(cost, 9),
            len(taken),
            devices,
            tuple(sorted((option.order, count) for option, count in taken)),
        )
        if self.best_rank is None or rank < self.best_rank:
            self.best, self.best_rank = taken, rank


def replicas_for(option: Option, demand: Demand) -> int:
    """Replicas of an option that carry the whole demand alone."""
    return max(demand.least, _replicas_carrying(demand.amount, option))


def carries_alone(option: Option, demand: Demand) -> bool:
    """Whether an option carries the whole demand with replicas that have room, and no more than may be."""
    most = MANY if demand.most is None else demand.most
    return replicas_for(option, demand) <= min(option.room, most)


def _replicas_carrying(left: float, option: Option) -> int:
    """Replicas of an option that carry what is left of the demand."""
    return ceil(left / option.capacity - ROUNDING) if left > 0 else 0


def _as_much_as_possible(slots: list[list[Option]], demand: Demand) -> Chosen | None:
    """What is chosen where the search finds nothing that carries the demand whole: of three ways to fill what there is the one that carries most,
    and the cheapest of those that carry about as much with no fewer of the least replicas.

    Where GPUs end, the cheapest for what they carry come furthest; where the number of replicas ends, the largest do.
    """
    preferred: tuple[Preference, ...] = (
        lambda option, _: option.cost / option.capacity,
        lambda option, _: -min(option.capacity, demand.amount),
        lambda _, carried: -carried,
    )
    ways = [way for each in preferred if (way := _filled(slots, demand, each)).sets]
    most = max((min(way.covered, demand.amount) for way in ways), default=0.0)
    whole = most >= demand.amount - ROUNDING
    near = [way for way in ways if way.covered >= (most - ROUNDING if whole else (1 - NEAR) * most)]
    return min(near, key=lambda way: (-min(way.replicas, demand.least), way.cost), default=None)


def _filled(slots: list[list[Option]], demand: Demand, preference: Preference) -> Chosen:
    """One option after another, at most one of a slot, until the demand is carried, or room or limits end."""
    taken: list[tuple[Option, int]] = []
    left, replicas, free = demand.amount, 0, list(slots)

    def fits(option: Option) -> int:
        need = max(_replicas_carrying(left, option), demand.least - replicas)
        return min(need, option.room, _still_allowed(demand, taken, option))

    def rank(offer: tuple[int, Option, list[Option]]) -> tuple[object, ...]:
        count, option, _ = offer
        carried = min(count * option.capacity, max(0.0, left))
        return preference(option, carried), option.cost / option.capacity, option.order

    while offers := [
        (count, option, slot) for slot in free for option in slot if (count := fits(option)) > 0
    ]:
        count, option, slot = min(offers, key=rank)
        free.remove(slot)
        taken.append((option, count))
        left -= count * option.capacity
        replicas += count
    return _chosen(tuple(taken))


def _still_allowed(demand: Demand, taken: Sequence[tuple[Option, int]], option: Option) -> int:
    """Replicas of an option that the limits allow beside those that are taken already."""
    limits = demand.limits
    most = MANY if demand.most is None else demand.most - sum(count for _, count in taken)
    if limits != UNLIMITED:
        for other, count in taken:
            limits = limits.less(other.candidate.claim, count)
        allowed = limits.allows(option.candidate.claim)
        most = most if allowed is None else min(most, allowed)
    return max(0, most)


def _chosen(taken: tuple[tuple[Option, int], ...]) -> Chosen:
    return Chosen(
        sets=tuple(sorted(taken, key=lambda pair: (-pair[1] * pair[0].capacity, pair[0].order))),
        cost=sum(option.cost * count for option, count in taken),
        covered=sum(option.capacity * count for option, count in taken),
    )
