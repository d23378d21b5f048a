"""How many replicas the load asks for, seen five ways, of which the largest counts.

By the pool, by the requests that keep the latency limits, by the prompts to compute, by the latencies themselves, and by what
will arrive one start-up from now. A queue is not demand but debt: it is paid back within minutes by all that a replica can
do, instead of being given replicas of its own. Latency is asked last and trusted least: it looks back five minutes, and more
replicas do not cure an engine that is slow with few requests; that is said instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plimsoll import names
from plimsoll.control import forecast
from plimsoll.control.copying import replace
from plimsoll.control.decision import Need, Told
from plimsoll.control.demand import Load
from plimsoll.control.laggard import laggard
from plimsoll.control.latencies import ENOUGH
from plimsoll.control.law import Law
from plimsoll.control.learning import is_borne, is_curable, is_settled, lead_s, ratio_of
from plimsoll.control.memory import RoleMemory
from plimsoll.control.pools import ROUNDING
from plimsoll.control.signals import LATENCY_S
from plimsoll.control.situation import Role, Slo
from plimsoll.values import light


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    need: Need
    wanted: float | None
    """In replicas of the first set; None where nothing says anything."""
    sought: float | None
    """How many of these there have to be: somewhat more than there is may be wanted, while nothing is late and the load does not rise."""
    memory: RoleMemory
    panic: bool
    told: Told | None
    """The condition SLOAttainable, where there is something to say."""


def asked(
    role: Role,
    memory: RoleMemory,
    load: Load,
    *,
    slo: Slo,
    now: float,
    law: Law,
) -> Asked:
    """What the load asks for, with everything that is told about it and remembered of it."""
    holds = load.holds
    ratio, lead = ratio_of(role.signals, slo, most_s=holds.longest_s), lead_s(memory, role, law)
    unknown = unsaid(role, slo) is not None
    slow = ratio is not None and ratio > 1
    memory = _slow(memory, slow=slow, unknown=unknown, now=now)
    since = memory.slow_since if slow else None
    lasted = since is not None and now - since >= _slow_s(role, memory, load, slo, law)
    curable = is_curable(role, law)
    # Without gaps that no number of replicas would shorten: they break their limit, and ask for nothing.
    pressing = ratio_of(role.signals, slo, holds.gap_s, holds.longest_s)
    latency, told = None, None
    if pressing is not None and pressing > 1:
        latency = _by_latency(memory, load, pressing, slow=lasted and curable, lead=lead, now=now, law=law)
    if lasted and (pressing is None or pressing <= 1):
        told = _unattainable_gap(holds.gap_s, slo)
    elif lasted and not curable and is_settled(memory, now):
        # Latencies look back five minutes, and more replicas might have cured those of a queue that was there then.
        told = _unattainable(role, ratio)
    coming = forecast.forecast(memory.load, now, lead)
    memory, predicted = _predicted(memory, load, coming, now=now, lead=lead, law=law)
    need = Need(
        tokens=None if holds.by_pool is None else _needed(load, holds.by_pool, law),
        running=_needed(load, holds.by_limits, law),
        prompts=None if load.demand.arrivals is None else _computing(load.demand.arrivals, load),
        latency=latency,
        forecast=predicted,
        lead_s=lead,
    )
    views = (need.tokens, need.running, need.prompts, need.latency, need.forecast)
    wanted, panic = max((value for value in views if value is not None), default=None), _panic(role, law)
    rises = coming is not None and coming > (1 + law.up_beyond) * memory.load.level
    late = load.demand.owing or (pressing is not None and pressing > 1)
    # Who has just begun to look has not asked for every histogram yet.
    watched = memory.begun is not None and now - memory.begun >= LATENCY_S
    presses = panic or rises or late or (unknown and watched)
    return Asked(
        need=need,
        wanted=wanted,
        sought=wanted if presses or wanted is None else wanted / (1 + law.up_beyond),
        memory=memory,
        panic=panic,
        told=told,
    )


def waking(load: Load, law: Law) -> float | None:
    """Replicas that pay back what waits at the gateway, while none serves yet that could say what is asked of it; None where nothing waits, or
    nobody knows how much a replica does."""
    if load.supply.ready or load.holds.curve is None or not load.demand.waiting:
        return None
    return _owed(load, load.holds.least, law)


def _owed(load: Load, full: float, law: Law) -> float:
    """Replicas that can pay back the queue, and do nothing else."""
    return load.demand.waiting / law.payback_s / load.holds.rate(full)


def _needed(load: Load, full: float, law: Law) -> float | None:
    """Replicas that would be filled to the target by what arrives, or that can pay back the queue."""
    demand, holds, ready = load.demand, load.holds, load.supply.ready
    counted = None if demand.running is None else demand.running / (law.target * full)
    if demand.arrivals is None or holds.curve is None:
        # Where no rate will ever be known, a queue is all that tells that more comes than is answered.
        queued = _owed(load, full, law) if load.counts and holds.curve is not None else demand.waiting / full
        return None if counted is None else min(counted, law.slow_most * max(ready, 1.0)) + queued
    steady = _carrying(demand.arrivals, full, law.target, load, law)
    debt = demand.arrivals / holds.rate(full) + _owed(load, full, law)
    # Requests in flight correct the line where it is wrong, a step at a time: beyond the target they grow faster than the load.
    # While a queue is paid back they do not count, as replicas may then be fuller than the target.
    corrected = 0.0 if demand.owing else min(counted or 0.0, ready * law.correction)
    return max(steady, debt, corrected)


def _carrying(rate: float, full: float, target: float, load: Load, law: Law) -> float:
    """Replicas of which each has no more in flight than the target, and none is overrun by a burst."""
    holds = load.holds
    calm = 0.0 if holds.curve is None else rate / holds.curve.rate(target * full)
    crest = load.demand.crest(rate, law.burst_sigmas)
    return max(calm, crest / (law.busy * holds.rate(full)))


def _computing(rate: float, load: Load) -> float | None:
    """Replicas whose first tokens all come in time; None where nothing is promised or known.

    A load that comes in rushes teaches that replicas must be half empty to be ready for one. In a rush they need not be half empty once
    more: what computes the highest half minute of hours in time, if requests come evenly within it, is enough for any lower rate too.
    """
    holds = load.holds
    if holds.prompt is None or holds.even is None:
        return None
    return min(rate / holds.prompt, max(rate, load.demand.rush) / holds.even)


def _by_latency(
    memory: RoleMemory, load: Load, pressing: float, *, slow: bool, lead: float, now: float, law: Law
) -> float | None:
    """Replicas that latencies ask for, which are at `pressing` times their limit. `slow`: they have been for long enough, and more
    replicas can cure it."""
    ready = load.supply.ready
    if slow and is_settled(memory, now):
        wanted = ready * min(law.latency_most, pressing)
    elif _unpaid(memory, now, law):
        wanted = ready * law.latency_most
    else:
        return None
    return min(wanted, load.supply.counted) if _awaited(memory, load, lead=lead, now=now, law=law) else wanted


def _unpaid(memory: RoleMemory, now: float, law: Law) -> bool:
    """Whether a queue stands that these replicas have not worked off in the time it should take: they cannot, or it does not reach them.

    Behind a Service a queue stays with the replicas that were there first, as clients find a new one only when they connect anew.
    New replicas are given as long as latencies look back: until then latencies are partly those of fewer replicas, and would ask a
    second time for the same cure.
    """
    waited = ((memory.owing_since, law.payback_s), (memory.since, LATENCY_S))
    return all(begun is not None and now - begun >= least for begun, least in waited)


def _awaited(memory: RoleMemory, load: Load, *, lead: float, now: float, law: Law) -> bool:
    """Whether replicas of the last step up are still on their way: latencies until they serve do not tell whether they will suffice.

    Otherwise each of them that comes to be ready would raise the number again, since latency asks for a share of those ready.
    """
    begun, supply = memory.up_at, load.supply
    return begun is not None and now - begun < law.credit_starts * lead and supply.counted > supply.ready


def unsaid(role: Role, slo: Slo) -> str | None:
    """What no replica says of a promised latency, though so many requests ended that there would be a p99; None where nothing lacks."""
    signals, latencies = role.signals, role.signals.latencies
    if latencies.ttft is not None and latencies.itl is not None:
        return None
    if (signals.rate("finished") or 0.0) * LATENCY_S < ENOUGH:
        return None
    finished, tokens = signals.sum("finished"), signals.sum("generation_tokens")
    # An answer of one token has no gap.
    spoke = tokens is not None and finished is not None and tokens >= 2 * finished
    for figure, said, promised, what in (
        ("ttft", latencies.ttft, slo.ttft_p99_s, "when first tokens come"),
        ("itl", latencies.itl, spoke and slo.itl_p99_s, "how long gaps between tokens are"),
    ):
        if said is None and promised and figure in role.exports:
            return what
    return None


def _slow(memory: RoleMemory, *, slow: bool, unknown: bool, now: float) -> RoleMemory:
    """A look that does not know ends nothing."""
    if slow == (memory.slow_since is not None) or (unknown and not slow):
        return memory
    return replace(memory, slow_since=now if slow else None)


def _slow_s(role: Role, memory: RoleMemory, load: Load, slo: Slo, law: Law) -> float:
    """How long a limit must be passed to count: for as long as latencies look back where it is borne so long, since alerts tell of it then."""
    steps, gaps = memory.learnt_of(role.sets[0]).steps, (load.holds.gap_s, load.holds.longest_s)
    borne = is_borne(steps, role.signals, slo, *gaps)
    return max(law.slow_s, LATENCY_S) if borne else law.slow_s


def _predicted(
    memory: RoleMemory, load: Load, coming: float | None, *, now: float, lead: float, law: Law
) -> tuple[RoleMemory, float | None]:
    demand, holds = load.demand, load.holds
    if coming is None or demand.arrivals is None:
        return memory, None
    memory = replace(memory, load=forecast.expecting(memory.load, now, lead, coming))
    if holds.curve is None:
        return memory, None
    calm = holds.curve.rate(law.forecast_target * holds.least)
    # First tokens are to come in time also where more arrives than the forecast says; how much more, follows from how many were late.
    sure = forecast.sure(memory.load, coming, holds.spent)
    computing = _computing(sure, load) or 0.0
    return memory, max(_carrying(coming, holds.least, law.forecast_target, load, law), sure / calm, computing)


def _panic(role: Role, law: Law) -> bool:
    """Whether half of the replicas are at their limit: waiting for a second look would only make the queue longer."""
    crowded = [
        each
        for each in role.signals.replicas
        if (each.kv_fraction or 0.0) >= law.panic_kv
        or (each.waiting or 0.0) > max(law.panic_waiting, each.running or 0.0)
    ]
    return bool(crowded) and 2 * len(crowded) >= role.signals.live


def _unattainable(role: Role, ratio: float | None) -> Told:
    each, slow = role.signals.mean("inflight") or 0.0, laggard(role)
    cure = (
        "a faster layout or GPU, or another limit in slo, would"
        if slow is None
        else f"{slow} works at less than half the speed of the others for each request that it has, so look at its node, and delete it to have "
        "another in its place"
    )
    return Told(
        type=names.SLO,
        status="False",
        reason="Unattainable",
        message=f"p99 latency is at {ratio or 0.0:.0%} of its limit with {each:.1f} requests in flight a replica and "
        f"no queue for minutes: more replicas would not help; {cure}",
    )


def _unattainable_gap(gap_s: float, slo: Slo) -> Told:
    limit = slo.itl_p99_s or 0.0
    return Told(
        type=names.SLO,
        status="False",
        reason="Unattainable",
        message=f"a step full of one prompt lasts {1000 * gap_s:.0f} ms, and slo.itlP99Ms promises gaps of {1000 * limit:.0f} ms: "
        "neither more nor fewer replicas would help; a smaller engine.maxBatchedTokens (or tuning, which may lower it), a faster "
        "layout or GPU, or another limit would",
    )


def whole_replicas(wanted: float) -> int:
    """Rounded up: a part of a replica is a replica."""
    return max(0, math.ceil(wanted - ROUNDING))
