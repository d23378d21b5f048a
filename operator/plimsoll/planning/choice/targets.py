"""What to run when no layout keeps the latency target: the one that comes nearest to it, with a finding that says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import Candidate, evaluate, room_for
from plimsoll.planning.choice.cheapest import Demand, allowed, option_of
from plimsoll.planning.choice.weighing import Weighed
from plimsoll.planning.load import Performance
from plimsoll.planning.plan import Finding, Severity

UNATTAINABLE: Final = "Unattainable"
"""The reason of the finding, for whoever goes by it."""


def distance(intent: Intent, performance: Performance) -> float:
    """How many times its target the worse of the two predicted latencies is."""
    ratios = [0.0]
    if intent.ttft_ms is not None:
        ratios.append(performance.ttft_ms.high / intent.ttft_ms)
    if intent.itl_ms is not None:
        ratios.append(performance.tpot_ms.high / intent.itl_ms)
    return max(ratios)


def nearest_to_target(
    task: Task, weighed: Weighed, demand: Demand, owner: str, *, money: bool
) -> tuple[Task, Weighed, tuple[Finding, ...]]:
    """Where no layout keeps the target even for one request: the candidate nearest to it, weighed again as if there were no target."""
    intent = task.intent
    predicted = [(c, c.at_most) for c in weighed.candidates if c.at_most is not None]
    best, performance = min(
        predicted,
        key=lambda pair: (
            not min(allowed(pair[0], demand), room_for(pair[0], owner)),
            distance(intent, pair[1]),
            pair[0].gpu_hours,
            pair[0].layout,
            pair[0].slot.order,
        ),
    )
    open_ended = replace(task, intent=replace(intent, ttft_ms=None, itl_ms=None))
    again = evaluate(open_ended, best.slot, best.shape, best.layout)
    option = None
    if isinstance(again, Candidate):
        option = option_of(open_ended, again, demand, room_for(again, owner), money=money)
    if option is None:
        return task, weighed, ()
    return (
        open_ended,
        replace(weighed, options=(option,)),
        (_unattainable(intent, option.candidate, performance),),
    )


def _unattainable(intent: Intent, best: Candidate, performance: Performance) -> Finding:
    promised = []
    if intent.ttft_ms is not None:
        promised.append(f"TTFT {performance.ttft_ms.high:,.0f} ms for slo.ttftP99Ms {intent.ttft_ms:,}")
    if intent.itl_ms is not None:
        promised.append(f"ITL {performance.tpot_ms.high:,.1f} ms for slo.itlP99Ms {intent.itl_ms:,}")
    return Finding(
        severity=Severity.WARNING,
        reason=UNATTAINABLE,
        message=(
            f"no layout on these GPUs keeps the target even for a single request; the nearest, {best.layout} on "
            f"{best.slot.hardware}, is predicted at up to {' and '.join(promised)}. It is planned all the same"
        ),
        field="slo",
        remedy="a longer target, faster GPUs, or a smaller or quantized model",
    )
