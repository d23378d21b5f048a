"""Whether costs can be compared in money: where no device without a price holds the model. One that does not is never a choice."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import Candidate, evaluate
from plimsoll.planning.choice.cheapest import Demand
from plimsoll.planning.choice.prospects import Prospects
from plimsoll.planning.placing.placement import Slot


def in_money(task: Task, slots: Sequence[Slot], demand: Demand) -> bool:
    """Whether every slot that holds the model has a price. A layout that fits tightly, or does not keep the target, counts as well: such
    ones are chosen where there are no better ones."""
    without = [slot for slot in slots if slot.price is None]
    if len(without) == len(slots):
        return False
    prospects = Prospects(task, demand, money=False).ask_rules(without)
    return not any(
        isinstance(evaluate(task, prospect.slot, prospect.shape, prospect.layout), Candidate)
        for prospect in sorted(prospects, key=lambda prospect: prospect.order)
    )
