"""What is told where a chosen layout keeps the first token's target for a typical request, but not for 99 of 100 as users send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.cheapest import Chosen, Demand, Option
from plimsoll.planning.choice.steady import least_first_ms, pace_of, traffic_of
from plimsoll.planning.plan import Finding, Severity
from plimsoll.planning.speed.open_loop import LATE, at

PARTLY: Final = "PartlyAttainable"
"""The reason of the finding, for whoever goes by it."""
TTFT: Final = "slo.ttftP99Ms"
TOLD_FROM: Final = 1.5 * LATE
"""The least share that is told: lengths stand for ranges of them, so that smaller ones are not told apart."""


def partly_kept(task: Task, chosen: Chosen, demand: Demand) -> tuple[Finding, ...]:
    """Of the chosen layout of which most requests would be late, where that are too many."""
    ttft, share = task.intent.ttft_ms, min(1.0, demand.amount / chosen.covered) if chosen.covered else 1.0
    rows = [] if ttft is None else [row for option, _ in chosen.sets for row in _late(task, option, share)]
    if ttft is None or not rows:
        return ()
    late, alone, least, option = max(rows, key=lambda row: row[:3])
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


def _late(task: Task, option: Option, share: float) -> Sequence[tuple[float, float, int | None, Option]]:
    """The share of first tokens that are late, that of prompts which are so even alone, and the target that 99 of 100 would keep; none
    where they are few."""
    steady, performance = option.steady, option.candidate.at_most
    if steady is None or performance is None:
        return ()
    traffic = traffic_of(task, cached=option.candidate.settings.prefix_caching)
    pace = pace_of(task, option.candidate, performance, traffic)
    in_flight = steady.in_flight * share
    late = at(traffic, pace, in_flight).late
    if late < TOLD_FROM:
        return ()
    return ((late, at(traffic, pace, 0.0).late, least_first_ms(traffic, pace, in_flight), option),)
