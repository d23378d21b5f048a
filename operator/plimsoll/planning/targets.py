"""What to run when no layout keeps the promised latency: the one that comes nearest, said as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.planning.candidate import Candidate, evaluate, predictor
from plimsoll.planning.intent import Intent
from plimsoll.planning.load import Performance
from plimsoll.planning.plan import Finding, Severity
from plimsoll.planning.task import Task


def rate_at(task: Task, candidate: Candidate, concurrency: int) -> float | None:
    """Output tokens a second of one replica at a load; None where nothing can be predicted."""
    if candidate.at_most is None:
        return None
    if concurrency == candidate.most:
        return candidate.at_most.output_tokens_per_second
    at = predictor(task, candidate.slot, candidate.layout, candidate.settings, candidate.ledger)
    return at(concurrency).output_tokens_per_second


def distance(intent: Intent, performance: Performance) -> float:
    """How many times over its target the worse of the two latencies is."""
    ratios = [0.0]
    if intent.ttft_ms is not None:
        ratios.append(performance.ttft_ms.high / intent.ttft_ms)
    if intent.itl_ms is not None:
        ratios.append(performance.tpot_ms.high / intent.itl_ms)
    return max(ratios)


def nearest_to_target(
    task: Task, candidates: Sequence[Candidate]
) -> tuple[tuple[Candidate, ...], Finding] | None:
    """Where no candidate keeps the target even for one request: the nearest one, weighed without it."""
    intent = task.intent
    predicted = [(c, c.at_most) for c in candidates if c.at_most is not None]
    if not intent.has_target or not predicted or any(candidate.most for candidate in candidates):
        return None
    best, performance = min(
        predicted,
        key=lambda pair: (
            distance(intent, pair[1]),
            pair[0].gpu_hours,
            pair[0].layout,
            str(pair[0].slot.hardware),
        ),
    )
    open_ended = replace(task, intent=replace(intent, ttft_ms=None, itl_ms=None))
    again = evaluate(open_ended, best.slot, best.shape, best.layout)
    if not isinstance(again, Candidate):
        return None
    promised = []
    if intent.ttft_ms is not None:
        promised.append(f"TTFT {performance.ttft_ms.high:,.0f} ms for slo.ttftP99Ms {intent.ttft_ms:,}")
    if intent.itl_ms is not None:
        promised.append(f"ITL {performance.tpot_ms.high:,.1f} ms for slo.itlP99Ms {intent.itl_ms:,}")
    finding = Finding(
        severity=Severity.WARNING,
        reason="Unattainable",
        message=(
            f"no layout on these GPUs keeps the target even for a single request; the nearest, {best.layout} on "
            f"{best.slot.hardware}, is predicted at up to {' and '.join(promised)}. It is planned all the same"
        ),
        field="slo",
        remedy="a longer target, faster GPUs, or a smaller or quantized model",
    )
    return (again,), finding
