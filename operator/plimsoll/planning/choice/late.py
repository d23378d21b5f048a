"""What is told where a chosen layout keeps the first token's target for a typical request, but not for 99 of 100 as users send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.cheapest import Chosen, Demand, Option
from plimsoll.planning.choice.steady import WORTH, least_first_ms, queues_of, steady_of
from plimsoll.planning.choice.targets import TTFT
from plimsoll.planning.plan import Finding, Severity
from plimsoll.planning.speed.open_loop import LATE, at

PARTLY: Final = "PartlyAttainable"
"""The reason of the finding, for whoever goes by it."""
LOOKED_AT: Final = 4
FAR_MORE: Final = 1.5
"""Times what the chosen layout carries on each device."""
TOLD_FROM: Final = 1.5 * LATE
"""The least share that is told: lengths stand for ranges of them, so that smaller ones are not told apart."""


def partly_kept(task: Task, chosen: Chosen, demand: Demand) -> tuple[Finding, ...]:
    """Of the chosen layout of which most requests would be late, where that are too many."""
    ttft, share = task.intent.ttft_ms, min(1.0, demand.amount / chosen.covered) if chosen.covered else 1.0
    rows = [] if ttft is None else [row for option, _ in chosen.sets for row in _late(task, option, share)]
    if ttft is None or not rows:
        return ()
    late, alone, least, option = max(rows, key=lambda row: row[:2])
    candidate = option.candidate
    why = (
        f"{alone:.0%} even where nobody else is there" if alone >= TOLD_FROM else "those behind long prompts"
    )
    longer = "a longer one" if least is None else f"{TTFT} of {least:,} or more"
    return (
        Finding(
            severity=Severity.WARNING,
            reason=PARTLY,
            message=(
                f"{candidate.layout} on {candidate.slot.hardware} keeps {TTFT} {ttft:,} for typical requests, but about {late:.0%} of all "
                f"are predicted later at {demand.amount:,g} a second, {why}"
            ),
            field=TTFT,
            value=str(ttft),
            remedy=f"{longer}, shorter prompts, faster GPUs, or a smaller or quantized model",
        ),
    )


def load_undeclared(
    task: Task, offered: Sequence[Option], chosen: Chosen, demand: Demand
) -> tuple[Finding, ...]:
    """Where no load is declared, layouts are compared at a modest one, at which hardly anybody waits. Where another layout carries far more
    for its cost as users send requests, that is worth a word."""
    if demand.unit != "replicas" or task.intent.bounds.fixed is not None or task.intent.ttft_ms is None:
        return ()
    mine = chosen.sets[0][0]
    own, rows = _in_time(task, mine), [(_in_time(task, one), one) for one in offered[:LOOKED_AT]]
    best, other = max(rows, key=lambda row: row[0], default=(0.0, mine))
    if best <= FAR_MORE * own or other.candidate.slot.hardware != mine.candidate.slot.hardware:
        return ()
    layout, device = other.candidate.layout, task.intent.device
    less = f"{own:.2g}" if own else f"less than {WORTH:.0%} of what it answers"
    return (
        Finding(
            severity=Severity.INFO,
            reason="LoadUndeclared",
            message=(
                f"no load is declared, so layouts are compared at a modest one; under more, {layout} carries {best:.2g} requests a second in "
                f"time on each {device}, and {mine.candidate.layout} {less}"
            ),
            field="workload.requestsPerSecond",
            remedy=f"workload.requestsPerSecond at the peak, or topology.tensor: {layout.tensor}",
        ),
    )


def _in_time(task: Task, option: Option) -> float:
    """Requests a second on each device that it answers in time as users send them; 0 where too few for the target to be worth keeping."""
    steady = steady_of(task, option.candidate)
    return steady.per_second / option.candidate.devices if steady is not None and steady.kept else 0.0


def _late(task: Task, option: Option, share: float) -> Sequence[tuple[float, float, int | None, Option]]:
    """The share of first tokens that are late, that of prompts which are so even alone, and the target that 99 of 100 would keep; none
    where they are few."""
    steady, performance = option.steady, option.candidate.at_most
    if steady is None or performance is None:
        return ()
    traffic, pace = queues_of(task, option.candidate, performance)
    in_flight = steady.in_flight * share
    late = at(traffic, pace, in_flight).late
    if late < TOLD_FROM:
        return ()
    return ((late, at(traffic, pace, 0.0).late, least_first_ms(traffic, pace, in_flight), option),)
