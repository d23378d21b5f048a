"""What a deployment teaches about itself: how long its replicas take to start, and how much one of them carries.

A plan's prediction is where it begins. While the limits hold at more requests in flight than was believed possible, more
is believed; while they are missed at fewer, less. Nothing is learned while replicas come and go: latencies look back five
minutes, and would be those of another number of replicas.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from plimsoll.control import forecast, prompts
from plimsoll.control.copying import replace
from plimsoll.control.curve import Points, measured, work_of
from plimsoll.control.demand import Demand, Load, firsts, is_queue, units_of, work_seen
from plimsoll.control.lateness import ALLOWED, AS_ALLOWED, TWICE
from plimsoll.control.law import Law
from plimsoll.control.memory import STARTS_KEPT, Learnt, RoleMemory
from plimsoll.control.signals import LATENCY_S, RATE_S, ReplicaSignals, Signals
from plimsoll.control.situation import Replica, ReplicaState, Role, Slo

EVERY_S: Final = 60.0
COMFORT: Final = 0.9
"""Share of a latency limit up to which the present load is taken to be fine."""
BORNE_MOST: Final = 1.25
"""Times its limit, up to which a latency is borne that hours have left room for."""
GROWTH_MOST: Final = 1.25
"""Times the seen requests in flight, up to which more are believed to be fine: latency does not grow in a straight line."""
STEP_UP: Final = 1.02
STEP_DOWN: Final = 0.85
"""Bounds of how far one minute moves what a replica is believed to carry."""
FADES: Final = 1 / 480
"""Share of the way back to the plan that each minute within the limits goes: what one bad hour taught is forgotten in a day."""
RISES: Final = 1 / 120
"""The same of the most that a replica finishes: what a queue of long answers taught holds for no more than those, and is doubled within one
and a half hours without a queue."""
STARTS_LEAST: Final = 10
KNOWN_MOST: Final = 2**13
"""Answers that are cached: more than one operator has deployments."""
MOST_WEIGHT: Final = 0.3
"""Weight of the newest minute in the most that a replica finishes, where all replicas have a queue."""
LEAST_SHARE: Final = 0.2
MOST_SHARE: Final = 4.0
"""Bounds around the plan's own prediction."""


def ratio_of(
    signals: Signals, slo: Slo, lasting_s: float = math.inf, most_s: float = math.inf
) -> float | None:
    """The worse of both p99 latencies, as a share of its limit; None where nothing is promised or too little was seen.

    `lasting_s`: a gap that is there at any load. If it breaks the limit gaps are left out, since no number of replicas changes them.
    `most_s`: the longest gap that any load makes. If it keeps the limit, gaps in the limit's own bucket count as 0, since one wide bucket
    does not tell how near they are.
    """
    shares = (share for share in _shares(signals, slo, lasting_s, most_s) if share is not None)
    return max(shares, default=None)


def _shares(signals: Signals, slo: Slo, lasting_s: float, most_s: float) -> list[float | None]:
    """The same of first tokens and of gaps."""
    return [
        None
        if spread is None or not spread.trusted or not limit or limit < lasting <= spread.p99
        else 0.0
        if max(most, spread.p99_of(limit, most)) <= limit
        else spread.p99 / limit
        for spread, limit, lasting, most in (
            (signals.latencies.ttft, slo.ttft_p99_s, math.inf, math.inf),
            (signals.latencies.itl, slo.itl_p99_s, lasting_s, most_s),
        )
    ]


def is_borne(steps: prompts.StepMemory, signals: Signals, slo: Slo, lasting_s: float, most_s: float) -> bool:
    """Whether each latency that is beyond its limit is so by little, and hours had fewer late than may be. What is promised is promised of
    hours, so it is kept although these minutes had more. Gaps count as in `ratio_of`."""
    first, gap = _shares(signals, slo, lasting_s, most_s)
    beyond = [
        (share, late.share)
        for share, late in (
            (first, steps.late.against(slo.ttft_p99_s, TWICE)),
            (gap, steps.late_gaps.against(slo.itl_p99_s, AS_ALLOWED)),
        )
        if share is not None and share > 1
    ]
    return bool(beyond) and all(share <= BORNE_MOST and late < ALLOWED for share, late in beyond)


def lead_s(memory: RoleMemory, role: Role, law: Law) -> float:
    """How long after it is asked for a replica serves: nine of ten start faster, on nodes of the set that has them soonest.

    A tenth cannot be told from less than ten, so first guesses fill them up: else the one start that took twenty minutes
    would be what every forecast looks ahead by, and what every step down waits for.
    """
    start = _start_s(memory.starts, law.start_first_s)
    provision = min((each.provision_s for each in role.sets if each.provision_s is not None), default=0.0)
    return min(law.start_most_s, max(law.start_least_s, start)) + provision


@lru_cache(maxsize=KNOWN_MOST)
def _start_s(starts: tuple[float, ...], first: float) -> float:
    """The time within which nine of ten starts are over. Cached, as it is asked for several times a tick and changes with each start only."""
    ordered = sorted((*starts, *(first,) * (STARTS_LEAST - len(starts))))
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def other_runs(memory: RoleMemory, law: Law) -> RoleMemory:
    """The memory once something else runs. Starts that were shorter than a first guess say nothing of it; longer ones are gone by until shorter
    ones are seen, as most edits leave the model as it is."""
    shorter = memory.starts and _start_s(memory.starts, law.start_first_s) <= law.start_first_s
    return replace(memory, starts=()) if shorter else memory


def started(memory: RoleMemory, role: Role, law: Law) -> RoleMemory:
    """With the start-up times of the replicas that came to be ready since the last tick."""
    found = sorted(
        (replica.since, replica.since - replica.begun, _came(replica, memory.started_until, law))
        for each in role.sets
        for replica in each.replicas
        if replica.state is ReplicaState.READY and replica.since > memory.started_until
    )
    if not found:
        return memory
    taken = [seconds for _, seconds, came in found if came and seconds > 0]
    return replace(
        memory, starts=(*memory.starts, *taken)[-STARTS_KEPT:], started_until=max(at for at, *_ in found)
    )


def _came(replica: Replica, until: float, law: Law) -> bool:
    """Whether the replica is ready for the first time, so that its start can be learned from.

    After an end of its engine, a silence of its node or a missed probe, a replica tells since when it is ready again, and not when it
    first was. So only a time that a first start may take counts, and of none that was seen to serve before; but one that got its GPUs after
    all known starts is new, however long it took.
    """
    first = replica.restarts == 0 and not replica.served
    likely = first and replica.since - replica.begun <= law.start_most_s
    return likely or 0 < until <= replica.begun


def is_settled(memory: RoleMemory, now: float) -> bool:
    return memory.changed is not None and now - memory.changed >= LATENCY_S


def is_curable(role: Role, law: Law) -> bool:
    """Whether more replicas can help: there is some sign of load, or nobody says that there is none."""
    signals = role.signals
    # Of many replicas one or another always has a request that its next step takes up.
    if is_queue(signals.sum("waiting") or 0.0, signals.sum("running")):
        return True
    if (signals.mean("kv_fraction") or 0.0) >= law.busy_kv:
        return True
    if (signals.sum("preemptions") or 0.0) > 0 or not signals.replicas:
        return True
    each = signals.mean("inflight")
    planned = role.sets[0].capacity.concurrency or role.sets[0].capacity.max_num_seqs
    return each is None or each > max(prompts.FEW, law.busy_share * planned)


def learned(memory: RoleMemory, role: Role, load: Load, *, slo: Slo, now: float, law: Law) -> RoleMemory:
    """The memory with what the last minute taught about replicas of the first set."""
    if memory.learnt_at is not None and now - memory.learnt_at < EVERY_S:
        return memory
    first, demand, ready = role.sets[0], load.demand, load.supply.ready
    known = memory.learnt_of(first)
    if ready > 0 and memory.changed is not None and now - memory.changed >= RATE_S:
        known = replace(known, points=_points(known.points, demand, ready))
    if ready > 0 and demand.owing and _steady(memory, now, RATE_S):
        known = replace(known, most=_most(known.most, load, role))
    elif known.most is not None and ready > 0:
        known = replace(known, most=_risen(known.most, load, (demand.finished or 0.0) / ready))
    if ready > 0:
        steps = prompts.learned(
            known.steps,
            role.signals,
            first.capacity,
            settled=is_settled(memory, now) or _steady(memory, now, LATENCY_S),
            owing=demand.owing,
            leaps=forecast.leaps(
                memory.load, role.signals.arrivals_per_s, role.signals.recent_arrivals_per_s
            ),
            ttft_s=slo.ttft_p99_s,
            itl_s=slo.itl_p99_s,
            units=units_of(role, load.weight),
        )
        known = replace(known, steps=steps)
    if ready > 0 and is_settled(memory, now):
        known = replace(known, concurrency=_concurrency(known, role, load, slo, law))
    kept = {
        each.known_by: memory.learnt_of(each)
        for each in role.sets
        if not memory.learnt.keys().isdisjoint((each.known_by, each.name))
    }
    return replace(memory, learnt={**kept, first.known_by: known}, learnt_at=now)


def _steady(memory: RoleMemory, now: float, seconds: float) -> bool:
    """Whether a queue has stood, beside an unchanged number of replicas, for longer than the signals look back."""
    begun = [memory.since, memory.owing_since]
    return all(at is not None and now - at > seconds for at in begun)


def _most(before: float | None, load: Load, role: Role) -> float | None:
    """The most requests a second that a replica of the first set finishes, learned from those with a queue: what they finish is all that they can.

    Where only a few of the replicas have a queue, they met the heaviest requests, so what they show weighs the less.
    """
    work, replicas = work_seen(role.signals), firsts(role)
    full = [
        done / each.span_s
        for each in replicas
        if each.span_s > 0 and is_queue(each.waiting or 0.0, each.running) and (done := _done(each, work))
    ]
    if not full:
        return before
    shown = sum(full) / len(full)
    known = load.holds.rate(load.holds.least) if before is None else before
    if math.isinf(known):
        return shown
    return known + MOST_WEIGHT * len(full) / len(replicas) * (shown - known)


def _done(each: ReplicaSignals, work: float | None) -> float | None:
    """How many requests' worth of work a replica did, told by its tokens: long requests that began together work all the time and finish none
    for a while."""
    if work is None or each.prompt_tokens is None or each.generation_tokens is None:
        return each.finished
    return work_of(each.prompt_tokens, each.generation_tokens) / work


def _risen(before: float, load: Load, shown: float) -> float | None:
    """The most without a queue to learn from: a little more is believed each minute, until it limits nothing and is forgotten."""
    risen, curve = max(before * (1 + RISES), shown), load.holds.curve
    if curve is None:
        return max(before, shown)
    return risen if risen < curve.rate(load.holds.by_limits) else None


def _points(points: Points, demand: Demand, ready: float) -> Points:
    if not demand.arrivals or not demand.inflight or demand.owing:
        return points
    return measured(points, demand.inflight / ready, demand.arrivals / ready)


def _concurrency(learnt: Learnt, role: Role, load: Load, slo: Slo, law: Law) -> float | None:
    before, planned = learnt.concurrency, role.sets[0].capacity.concurrency
    gaps = load.holds.gap_s, load.holds.longest_s
    ratio = ratio_of(role.signals, slo, *gaps)
    if planned is None or ratio is None or not load.demand.inflight:
        return before
    each = load.demand.inflight / load.supply.ready
    known = before if before is not None else float(planned)
    # Latencies are of the worst moment of five minutes on the fullest replica. Beside the mean of now, the calm after a burst would look
    # like a replica that is slow with few requests.
    worst = max(each, role.signals.most("inflight_most") or 0.0)
    if ratio <= COMFORT:
        known += FADES * max(0.0, planned - known)
        shown = each * min(GROWTH_MOST, COMFORT / max(ratio, 0.1))
        known = max(known, min(shown, known * STEP_UP))
    elif ratio > 1 and worst < min(known, load.holds.least):
        if not is_curable(role, law):
            # Nothing is the load's doing: fewer requests in flight would only multiply replicas that are as slow, as they may have done.
            known += FADES * max(0.0, planned - known)
        elif not is_borne(learnt.steps, role.signals, slo, *gaps):
            known = max(worst / ratio, known * STEP_DOWN)
    return min(MOST_SHARE * planned, max(LEAST_SHARE * planned, 1.0, known))
