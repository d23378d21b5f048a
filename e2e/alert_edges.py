"""Of each number that an alert holds something against: what lies two in a hundred beyond it fires, and what lies as much before it
does not. The numbers are those of the table itself, or promises of the resource in these cases; none is written a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from alert_case import Case, case
from alert_series import (
    AGAIN,
    AVAILABLE,
    ERRORS,
    FAILED,
    FINISHED,
    KV,
    MEASURED,
    PREDICTED,
    PREEMPTIONS,
    RUNNING,
    WAITING,
    WAITING_BESIDE,
    histogram,
    prompts,
    rising,
    slo,
    steady,
)
from plimsoll.alerts.thresholds import TABLE

BEYOND: Final = 1.02
A_MINUTE: Final = 60
"""Requests, as all is well."""
TOKENS: Final = 6000
"""Gaps between tokens in that minute."""
LIMITS: Final[Mapping[str, float]] = {"ttft_p99": 2.0, "itl_p99": 0.1, "availability": 0.99}
"""What the resource promises here."""
LONG_PROMPTS: Final = prompts(le_1000=0, le_5000=30, le_10000=60, inf=60)

Change = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Edge:
    change: Callable[[float], Change]
    """Series that lie at this value of the number."""
    fires: tuple[str, ...]
    """Beyond it."""
    still: tuple[str, ...] = ()
    """Before it: what fires at a lesser number."""
    beyond: float = BEYOND


def first_tokens(p99: float, requests: float = A_MINUTE) -> Change:
    """All in one bucket, in which that is the 99th percentile."""
    bounds = (0.5, 3.0, 10.0)
    low = max(bound for bound in bounds if bound < p99)
    high = low + (p99 - low) / 0.99
    counts = {bound: 0.0 if bound <= low else requests for bound in (*bounds, high)}
    return histogram(
        "vllm:time_to_first_token_seconds",
        {**{f"{bound:g}": counts[bound] for bound in sorted(counts)}, "+Inf": requests},
    )


def gaps(p50: float, p99: float) -> Change:
    """Five of six in one bucket, in which the median is that, and the others in another one with the 99th percentile."""
    bounds = (0.01, 0.025, 0.075, 0.15, 0.5)
    most = TOKENS * 5 / 6
    low, lower = (max(bound for bound in bounds if bound < value) for value in (p99, p50))
    high = low + (p99 - low) * (TOKENS - most) / (0.99 * TOKENS - most)
    median = lower + (p50 - lower) * most / (0.5 * TOKENS)
    counts = {
        bound: 0.0 if bound <= lower else most if bound <= low else TOKENS
        for bound in (*bounds, median, high)
    }
    return histogram(
        "vllm:inter_token_latency_seconds",
        {**{f"{bound:.9g}": counts[bound] for bound in sorted(counts)}, "+Inf": TOKENS},
    )


def lengths(p95: float) -> Change:
    high = 1000 + (p95 - 1000) / 0.95
    return histogram(
        "vllm:request_prompt_tokens", {"1000": 0, f"{high:g}": 60, "5000": 60, "10000": 60, "+Inf": 60}
    )


def spikes(p50: float, p99: float) -> Change:
    return {**gaps(p50, p99), **LONG_PROMPTS, slo("itl_p99"): steady(2 * p99)}


def falling(seconds: float) -> Change:
    """A queue of 100, at the moment of the look, that is no matter in so many seconds."""
    each = -(100 - TABLE["QUEUE_LEAST"].value) / (seconds / 60)
    return {WAITING: rising(each, 100 - 30 * each)}


def failing(share: float) -> Change:
    return {ERRORS: rising(A_MINUTE * share / (1 - share)), AVAILABLE: steady(LIMITS["availability"])}


EDGES: Final[Mapping[str, Edge]] = {
    "KV_FULL": Edge(lambda at: {KV: steady(at)}, ("KVPressure",)),
    "PREEMPTED_WARN": Edge(lambda at: {PREEMPTIONS: rising(A_MINUTE * at)}, ("Preemption",)),
    "PREEMPTED_ACT": Edge(
        lambda at: {PREEMPTIONS: rising(A_MINUTE * at)}, ("Preemption", "Preemption!"), ("Preemption",)
    ),
    "PREEMPTIONS_LEAST": Edge(
        lambda at: {PREEMPTIONS: rising(at / 5), FINISHED: rising(4)}, ("Preemption", "Preemption!"), ("Preemption",)
    ),
    "QUEUE_LEAST": Edge(lambda at: {WAITING: steady(at)}, ("QueueGrowth",)),
    "QUEUE_SOON": Edge(falling, ("QueueGrowth",)),
    "QUEUE_SHARE": Edge(lambda at: {WAITING: steady(400 * at), RUNNING: steady(400)}, ("QueueGrowth",)),
    "QUEUE_UNEVEN": Edge(lambda at: {WAITING: steady(100), WAITING_BESIDE: steady(100 * at), RUNNING: steady(400)}, (), ("UnevenLoad",)),
    "SAMPLES": Edge(lambda at: first_tokens(2.9, at / 5), ("TTFTOverSLO",)),
    "FEW_SAMPLES": Edge(lambda at: first_tokens(3.95, at / 5), ("TTFTOverSLO",)),
    "FAILURES_LEAST": Edge(lambda at: {FINISHED: steady(9), ERRORS: rising(at / 25)}, ("AnswersFail!",)),
    "SLO_ACT": Edge(
        lambda at: first_tokens(LIMITS["ttft_p99"] * at), ("TTFTOverSLO", "TTFTOverSLO!"), ("TTFTOverSLO",)
    ),
    "SPIKE": Edge(lambda at: spikes(0.2 / at, 0.2), ("PrefillContention",)),
    "SPIKE_LEAST": Edge(lambda at: spikes(0.015, at), ("PrefillContention",)),
    "LONG_PROMPT": Edge(
        lambda at: {**spikes(0.02, 0.2), **lengths(at)}, ("PrefillContention",)
    ),
    "STALL": Edge(lambda at: gaps(0.027 * at, 0.09), ("TensorParallelStall",)),
    "STALL_LEAST": Edge(lambda at: {**gaps(at, 0.09), PREDICTED: steady(0.009)}, ("TensorParallelStall",)),
    "PREDICTION": Edge(lambda at: {MEASURED: steady(100_000 * (1 - at))}, ("PredictionError",)),
    "RESTARTS": Edge(lambda at: {AGAIN: rising(at / 15)}, ("CrashLoop!",)),
    "FAILING": Edge(lambda at: {FAILED: rising(10 * at)}, ("TurnsFailing",)),
}  # fmt: skip
"""By the number's name in the table."""

PROMISES: Final[Mapping[str, Edge]] = {
    "ttft_p99": Edge(first_tokens, ("TTFTOverSLO",)),
    "itl_p99": Edge(lambda at: gaps(0.02, at), ("ITLOverSLO",)),
    "availability": Edge(lambda at: failing(1 - at), ("AnswersFail!",), beyond=1 / (1 + 0.02 * 0.01 / 0.99)),
}
"""By the resource's own number; one of them is passed downwards."""


def cases() -> Iterator[Case]:
    values = {name: one.value for name, one in TABLE.items()}
    for name, edge in {**EDGES, **PROMISES}.items():
        value = values[name] if name in EDGES else LIMITS[name]
        yield case(f"just beyond {name}", dict(edge.change(value * edge.beyond)), *edge.fires)
        yield case(f"just before {name}", dict(edge.change(value / edge.beyond)), *edge.still)
