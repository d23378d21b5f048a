"""From one task and the devices it may use to weighed candidates, everything turned down named with its rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.planning.candidate import Candidate, evaluate
from plimsoll.planning.layout import Layout
from plimsoll.planning.layouts import Refusal, enumerate_layouts, largest_tried, sift
from plimsoll.planning.placement import Slot, shape_of
from plimsoll.planning.plan import Rejected
from plimsoll.planning.rules import CONTEXT_PARALLEL_FLAG, Question
from plimsoll.planning.task import Task

MOST_REJECTED = 400
"""Kept in a plan, most telling first; a ConfigMap holds one megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    candidates: tuple[Candidate, ...]
    refusals: tuple[tuple[Slot, Refusal], ...]

    @property
    def usable(self) -> tuple[Candidate, ...]:
        """Those that surely fit; where there are none, those that are expected to."""
        sure = tuple(candidate for candidate in self.candidates if candidate.fits)
        return sure or self.candidates


def question_of(task: Task, largest: int | None) -> Question:
    return Question(
        architecture=task.model.architecture,
        wishes=task.intent.wishes,
        context_parallel=CONTEXT_PARALLEL_FLAG in task.engine.flags,
        largest=largest,
    )


def weigh(task: Task, slots: Sequence[Slot], largest: int | None) -> Weighed:
    """Every layout on every kind of device: asked by the rules first, by the ledger last."""
    question = question_of(task, largest)
    seen: dict[Layout, tuple[str, str] | None] = {}
    candidates: list[Candidate] = []
    refusals: list[tuple[Slot, Refusal]] = []
    for slot in slots:
        site = slot.site()
        most = largest_tried(task.model, slot.hardware.memory_bytes)
        kept, refused = sift(enumerate_layouts(task.model.architecture, most, question), question, site, seen)
        refusals += [(slot, refusal) for refusal in refused]
        for layout in kept:
            found = _evaluated(task, slot, layout)
            if isinstance(found, Candidate):
                candidates.append(found)
            else:
                refusals.append((slot, found))
    return Weighed(candidates=tuple(candidates), refusals=tuple(refusals))


def _evaluated(task: Task, slot: Slot, layout: Layout) -> Candidate | Refusal:
    shape = shape_of(layout, slot.pools)
    if shape is None:
        sizes = sorted({pool.devices_per_node for pool in slot.pools})
        return Refusal(
            layout,
            "nodes",
            f"{layout.gpus} GPUs cannot be split evenly over nodes of {', '.join(map(str, sizes))} with tensor ranks together",
        )
    return evaluate(task, slot, shape, layout)


def rejected(refusals: Sequence[tuple[Slot, Refusal]]) -> tuple[Rejected, ...]:
    """Refusals that say the same of several kinds of hardware become one; small layouts first."""
    merged: dict[tuple[Layout, str, str], list[str]] = {}
    for slot, refusal in refusals:
        places = merged.setdefault((refusal.layout, refusal.rule, refusal.message), [])
        name = str(slot.hardware)
        if name not in places:
            places.append(name)
    rows = [
        Rejected(layout=layout, hardware=tuple(sorted(places)), rule=rule, message=message)
        for (layout, rule, message), places in merged.items()
    ]
    rows.sort(key=lambda row: (row.layout.gpus, row.layout, row.rule, row.hardware, row.message))
    return tuple(rows[:MOST_REJECTED])
