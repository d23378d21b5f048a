"""The traffic as the engines saw it, beside what was declared, and whether knowing it would have made another plan.

Lengths are kept for about a day, peaks for about a week, so that a quiet hour does not look like the whole load. A plan is
never changed by this: where another one would follow, the user is told what to declare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from plimsoll import names
from plimsoll.api.quantity import format_decimal
from plimsoll.api.v1alpha1 import status
from plimsoll.api.v1alpha1.status import DeclaredWorkload, ObservedWorkload
from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.decision import Told
from plimsoll.control.latencies import Spread
from plimsoll.control.law import LAW
from plimsoll.control.signals import LATENCY_S, Signals
from plimsoll.facts.spans import DAY_S
from plimsoll.planning.apart import apart
from plimsoll.planning.choice.outcomes import NOT_ENOUGH, TOO_FEW
from plimsoll.planning.plan import Plan

LENGTHS_S: Final = DAY_S
PEAK_S: Final = 7 * DAY_S
BACKLOG_S: Final = DAY_S
"""In which most of a standing queue comes to count as load: one of an hour is left from an outage, and one of a day is the load."""
WATCHED_S: Final = 3600.0
"""How long traffic must have been watched, and with the next how much of it, before anything is proposed."""
REQUESTS_LEAST: Final = 1000.0
QUIET_S: Final = DAY_S
"""How long it must have been watched before less is proposed: a quiet night says nothing of the morning."""
BURSTY: Final = 2.0
"""Burstiness from which queues are clearly longer than those of plans, which take it as 1: they grow with the mean of it and the spread of
what requests take, so by half here."""
APART: Final = 0.25
"""By which share the seen and the declared figure may differ for the declaration to be right."""
MOST_TOKENS: Final = 2**24
MOST_CONCURRENCY: Final = 1_000_000
"""More than these the API does not take."""
ROUNDED: Final = 2
"""Digits of the numbers that are proposed."""
PERCENTILES: Final = ("p50", "p95", "p99")
_DECLARED: Final = ("inputTokens", "outputTokens", "sharedPrefixPercent", "concurrency", "requestsPerSecond")
"""What is shown of a declaration beside what was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    p50: float
    p95: float
    p99: float

    def toward(self, seen: Spread, weight: float) -> Lengths:
        """Lengths spread over decades, so what moves is their order of magnitude."""

        def moved(old: float, new: float) -> float:
            return math.exp((1 - weight) * math.log(max(1.0, old)) + weight * math.log(max(1.0, new)))

        return Lengths(
            p50=moved(self.p50, seen.p50), p95=moved(self.p95, seen.p95), p99=moved(self.p99, seen.p99)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    since: float | None = None
    """When the observation began; moved on by every time that nobody watched. None: nothing was seen yet."""
    at: float | None = None
    """Of the last look."""
    prompt: Lengths | None = None
    output: Lengths | None = None
    requests: float = 0.0
    """How many requests the lengths rest on; older ones count less."""
    prefix_share: float | None = None
    peak_rate: float | None = None
    """Arrivals a second."""
    peak_inflight: float | None = None
    burstiness: float = 1.0
    """Variance of arrivals over that of independent ones."""

    @property
    def watched_s(self) -> float:
        return 0.0 if self.since is None or self.at is None else self.at - self.since


def observe(before: Observed, signals: Signals, now: float, *, burstiness: float = 1.0) -> Observed:
    """The observation with what the replicas say now."""
    if now == before.at:
        return before
    went = 0.0 if before.at is None else now - before.at
    # Signals look back for so long and no longer; and a clock that is put back does not undo what was seen.
    passed = min(max(0.0, went), LATENCY_S)
    rate = signals.arrivals_per_s
    kept = before.requests * math.exp(-passed / LENGTHS_S)
    fresh = (signals.rate("finished") or 0.0) * passed
    weight = fresh / (kept + fresh) if fresh > 0 else 0.0
    prompt, output = signals.latencies.prompt, signals.latencies.output
    share = signals.prefix_share
    return Observed(
        since=now if before.since is None else before.since + (went - passed),
        at=now,
        prompt=_lengths(before.prompt, prompt, weight),
        output=_lengths(before.output, output, weight),
        requests=kept + fresh,
        prefix_share=_mean(before.prefix_share, share, weight),
        peak_rate=_peak(before.peak_rate, rate, passed),
        peak_inflight=_held(before.peak_inflight, signals, passed),
        burstiness=burstiness,
    )


def status_of(observed: Observed, declared: Workload | None = None) -> ObservedWorkload:
    """As it stands in status, beside what is declared."""
    return ObservedWorkload(
        declared=None if declared is None else _declared(declared),
        input_tokens=_percentiles(observed.prompt),
        output_tokens=_percentiles(observed.output),
        shared_prefix_percent=None if observed.prefix_share is None else round(100 * observed.prefix_share),
        concurrency=None if observed.peak_inflight is None else math.ceil(observed.peak_inflight),
        requests_per_second=_decimal(observed.peak_rate),
        # Of arrivals that nobody counts nothing is known, not that they are even.
        burstiness=None if observed.peak_rate is None else _decimal(round(observed.burstiness, 1)),
        advice=None if declared is None else bursts_of(observed, declared),
    )


def bursts_of(observed: Observed, declared: Workload) -> str | None:
    """What helps where a declared rate is planned for and arrivals are in bursts, of which no plan knows. In words without a figure, which
    would be others at each look."""
    rate = declared.requests_per_second
    if rate is None or not _is_enough(observed) or observed.burstiness < BURSTY:
        return None
    return (
        "requests come in bursts, and plans take them as coming independently (burstiness 1): more wait, and for longer, than is planned for; "
        f'declare the rate of the bursts as workload.requestsPerSecond, above "{rate}", or set scaling.min'
    )


def _is_enough(observed: Observed) -> bool:
    """Whether so much was seen that anything may be proposed."""
    return observed.watched_s >= WATCHED_S and observed.requests >= REQUESTS_LEAST


def better_declaration(
    observed: Observed,
    declared: Workload,
    pinned: Plan,
    replan: Callable[[Workload], Plan | None],
    *,
    numbered: bool = False,
    context: int | None = None,
) -> Told | None:
    """What to declare, where another plan would follow from it. `replan` plans anew with another workload; None where it cannot.

    `numbered`: the plan says how many replicas there are, and neither live traffic nor a person does. `context`: what contextTokens
    should be, where each request is known with prompt and answer; else it follows from their percentiles.
    """
    if not _is_enough(observed):
        return None
    watched = observed.watched_s
    proposed, changes = _proposed(observed, declared, context)
    if not changes:
        return None
    fresh = replan(proposed)
    if fresh is None or not fresh.sets:
        return None
    less = _memory(fresh) < _memory(pinned) or (numbered and fresh.replicas < pinned.replicas)
    if (less and watched < QUIET_S) or _identity(fresh, numbered) == _identity(pinned, numbered):
        return None
    sets = " + ".join(f"{each.replicas} x {each.layout} on {each.hardware}" for each in fresh.sets)
    otherwise = apart(fresh, pinned)
    message = f"the traffic is not the declared one; with {', '.join(changes)} in spec.workload the plan would be {sets}"
    if otherwise:
        message += f", with {otherwise}"
    if not_enough := "; ".join(_lacks(fresh)):
        message += f"; that alone is not enough: {not_enough}"
    if bursts := bursts_of(observed, proposed):
        message += f"; {bursts}"
    return Told(type=names.BETTER_PLAN, status="True", reason="WorkloadDiffers", message=message)


def _lacks(plan: Plan) -> Iterator[str]:
    """What a plan misses of its load, with what helps: who declares a load that it cannot carry may serve fewer in time than before."""
    for one in sorted(plan.findings, key=lambda one: one.reason not in TOO_FEW):
        if one.reason in NOT_ENOUGH:
            yield one.message + (f" (what helps: {one.remedy})" if one.remedy else "")


def _identity(plan: Plan, numbered: bool) -> list[tuple[object, ...]]:
    return [
        (str(each.layout), each.hardware.gpu, each.digest, each.replicas if numbered else None)
        for each in plan.sets
    ]


def _memory(plan: Plan) -> int:
    """Memory of the largest replica's devices, which tells a larger plan from a smaller one; the number of replicas follows the load."""
    return max((each.devices_per_replica * each.hardware.memory_bytes for each in plan.sets), default=0)


Change = tuple[str, object, str]
"""A field of spec.workload, its new value, and both in words."""


def _proposed(
    observed: Observed, declared: Workload, needed: int | None = None
) -> tuple[Workload, list[str]]:
    """The declared workload with what was seen in its place, and in words what of it is new. The API takes every value."""
    context = _context(observed, declared) if needed is None else min(MOST_TOKENS, needed)
    changes: list[Change] = []
    if context != declared.context_tokens:
        changes.append(("context_tokens", context, f"contextTokens {context}"))
    changes += _length_changes(observed, declared, context)
    changes += _prefix_change(observed, declared)
    changes += _load_change(observed, declared)
    values = {field: value for field, value, _ in changes}
    return declared.model_copy(update=values), [said for _, _, said in changes]


def _length_changes(observed: Observed, declared: Workload, context: int | None) -> Iterator[Change]:
    for field, word, seen, old, most in (
        ("input_tokens", "inputTokens", observed.prompt, declared.input_tokens, (context or MOST_TOKENS) - 1),
        ("output_tokens", "outputTokens", observed.output, declared.output_tokens, MOST_TOKENS),
    ):
        if seen is None:
            continue
        new = TokenPercentiles(**{key: min(most, _nice(getattr(seen, key))) for key in PERCENTILES})
        if old is None or any(_apart(getattr(old, key), getattr(new, key)) for key in PERCENTILES):
            yield field, new, f"{word} p50 {new.p50}, p95 {new.p95}, p99 {new.p99}"


def _prefix_change(observed: Observed, declared: Workload) -> Iterator[Change]:
    if observed.prefix_share is None:
        return
    percent = round(100 * observed.prefix_share)
    if abs(percent - (declared.shared_prefix_percent or 0)) >= 100 * APART:
        yield "shared_prefix_percent", percent, f"sharedPrefixPercent {percent}"


def _load_change(observed: Observed, declared: Workload) -> Iterator[Change]:
    """In the terms in which the load is declared: requests in flight where those are declared, else arrivals a second."""
    if declared.concurrency is not None:
        peak = min(MOST_CONCURRENCY, _nice(observed.peak_inflight or declared.concurrency))
        if observed.peak_inflight and _apart(declared.concurrency, peak):
            yield "concurrency", peak, f"concurrency {peak}"
    elif observed.peak_rate:
        # In digits that do not change with each look: a peak is forgotten slowly.
        rate = _decimal(_nice(100 * observed.peak_rate) / 100)
        old_rate = declared.requests_per_second
        if rate is not None and (old_rate is None or _apart(float(old_rate), float(rate))):
            yield "requests_per_second", rate, f'requestsPerSecond "{rate}"'


def _context(observed: Observed, declared: Workload) -> int | None:
    """What contextTokens should be: more than is declared only where more than one prompt of 100 does not fit into that.

    An engine takes no such prompt, and no bound of its histograms is beyond its context. So live traffic shows some only where
    contextTokens was made smaller since.
    """
    context, prompt, output = declared.context_tokens, observed.prompt, observed.output
    if context is None or prompt is None or prompt.p99 < context:
        return context
    return min(MOST_TOKENS, _nice(prompt.p99 + (0.0 if output is None else output.p99)))


def _apart(old: float | None, new: float | None) -> bool:
    """Whether two figures differ by more than a quarter. One that was not declared contradicts nothing."""
    if old is None or new is None:
        return False
    return abs(math.log(max(new, 1e-9) / max(old, 1e-9))) > math.log(1 + APART)


def _lengths(before: Lengths | None, seen: Spread | None, weight: float) -> Lengths | None:
    if seen is None or not seen.trusted:
        return before
    if before is None:
        return Lengths(p50=max(1.0, seen.p50), p95=max(1.0, seen.p95), p99=max(1.0, seen.p99))
    return before.toward(seen, weight)


def _mean(before: float | None, seen: float | None, weight: float) -> float | None:
    if seen is None:
        return before
    return seen if before is None else before + weight * (seen - before)


def _peak(before: float | None, seen: float | None, passed: float) -> float | None:
    if seen is None:
        return before
    return seen if before is None else max(seen, before * math.exp(-passed / PEAK_S))


def _held(before: float | None, signals: Signals, passed: float) -> float | None:
    """The most that was in flight for two minutes."""
    seen = signals.sum("inflight_mean")
    if seen is None or not _queued(signals):
        return _peak(before, seen, passed)
    if before is None:
        return signals.sum("running")
    lasting = before + (seen - before) * (1 - math.exp(-passed / BACKLOG_S))
    return _peak(before, lasting, passed)


def _queued(signals: Signals) -> bool:
    """Whether a queue stands now or did in the last minutes: what has waited fills the engines after it has left the queue."""
    most, running = signals.sum("inflight_most") or signals.inflight or 0.0, signals.sum("running") or 0.0
    return LAW.is_alarming(most - running, running)


def _declared(workload: Workload) -> DeclaredWorkload | None:
    """None where neither the resource nor a preset says anything of traffic."""
    said = workload.to_dict()
    fields = {name: said[name] for name in _DECLARED if name in said}
    return DeclaredWorkload.model_validate(fields) if fields else None


def _percentiles(lengths: Lengths | None) -> status.Lengths | None:
    if lengths is None:
        return None
    return status.Lengths(p50=round(lengths.p50), p95=round(lengths.p95), p99=round(lengths.p99))


def _nice(value: float) -> int:
    """Rounded up to two digits, so that it reads as a proposal and not as a measurement."""
    digits: int = max(0, math.floor(math.log10(max(value, 1.0))) - ROUNDED + 1)
    step = int(10**digits)
    return max(1, math.ceil(value / step) * step)


def _decimal(value: float | None) -> str | None:
    return None if value is None else format_decimal(Decimal(str(round(value, 3))), places=3)
