"""May replicas go, and how many: only after a whole window that never asked for them, and only if those left stay calm.

Each check answers why not; the first that objects is what the user is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from plimsoll.control.demand import Load
from plimsoll.control.latencies import ENOUGH
from plimsoll.control.law import Law
from plimsoll.control.memory import RoleMemory
from plimsoll.control.need import Asked, replicas
from plimsoll.control.pools import shrunk, spare
from plimsoll.control.signals import LATENCY_S
from plimsoll.control.situation import ReplicaState, Situation
from plimsoll.control.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    replicas: Mapping[str, int]
    """By set."""
    why_not: str | None = None
    """One clause; None where replicas may go."""


def window_s(situation: Situation, memory: RoleMemory, lead: float, law: Law) -> float:
    """How long less must be wanted: longer for whoever had to take a step down back."""
    return (situation.down_window_s or max(law.down_window_s, law.down_starts * lead)) * min(
        law.regret_most, memory.regret
    )


def regretted(memory: RoleMemory, now: float, window: float, law: Law) -> RoleMemory:
    """At a step up: did the last step down go too far? Each time it did, the next one waits twice as long."""
    if memory.down_at is None or memory.up_at is None or memory.down_at < memory.up_at:
        return memory
    soon = now - memory.down_at < law.regret_windows * window
    return replace(
        memory, regret=min(law.regret_most, 2 * memory.regret) if soon else max(1.0, memory.regret / 2)
    )


def down(turn: Turn, asked: Asked, load: Load) -> Down:
    role, law, there = turn.role, turn.law, turn.there
    # With a wake signal the last replica goes by idleness alone, never by a small load.
    least = max(1, role.bounds.min)
    window = window_s(turn.situation, asked.memory, asked.need.lead_s, law)
    # Replicas that do not serve yet cost nobody an answer when they go.
    idle = sum(
        each.count(ReplicaState.STARTING, ReplicaState.UNSCHEDULABLE, ReplicaState.FAILED)
        for each in role.sets
    )
    peak = replicas(asked.memory.most_wished)
    enough = spare(role, load.weight, asked.memory.most_wished)
    step = max(1, idle, math.ceil(law.down_share * enough))
    count = min(step, enough, there - least)
    if count <= 0:
        wanted = f"up to {peak} were wanted in the last {window / 60:.0f} minutes"
        return Down(replicas=turn.told, why_not=wanted if there > least else f"{least} is the least")
    fewer = shrunk(role, load.weight, count, least).replicas
    after = min(load.supply.ready, sum(fewer[name] * load.weight[name] for name in fewer))
    objection = (
        _timing(turn, asked.memory, window)
        or _missing(turn)
        or _alarm(turn)
        or _calm(asked, load, after=after, law=law)
    )
    return Down(replicas=turn.told if objection else fewer, why_not=objection)


def _timing(turn: Turn, memory: RoleMemory, window: float) -> str | None:
    if turn.situation.busy is not None:
        return f"{turn.situation.busy} is under way"
    for at, since in (
        (memory.begun, "of watching"),
        (memory.up_at, "since the last step up"),
        (memory.down_at, "since the last step down"),
    ):
        if at is not None and turn.now - at < window:
            return f"{(turn.now - at) / 60:.0f} of {window / 60:.0f} minutes {since}"
    return None


def _missing(turn: Turn) -> str | None:
    """What no replica says though the engine has a word for it, and there was something to say.

    Some counters are there from the first request on that they count, and a histogram of nothing has no quantiles: where nothing ran
    for as long as latencies look back, or too little ended for a p99, none of them is missed.
    """
    role, signals, slo = turn.role, turn.role.signals, turn.situation.slo
    worked = bool(signals.most("inflight_most"))
    finished, tokens = signals.sum("finished"), signals.sum("generation_tokens")
    judged = (signals.rate("finished") or 0.0) * LATENCY_S >= ENOUGH
    # An answer of one token has no gap.
    spoke = tokens is not None and finished is not None and tokens >= 2 * finished
    for figure, said, expected, what in (
        (
            "kv_fraction",
            signals.mean("kv_fraction"),
            any(each.capacity.kv_tokens for each in role.sets),
            "how much of its pool is in use",
        ),
        ("finished", finished, worked, "how many requests end"),
        ("preemptions", signals.sum("preemptions"), worked, "whether requests are preempted"),
        ("ttft", signals.latencies.ttft, judged and slo.ttft_p99_s, "when first tokens come"),
        (
            "itl",
            signals.latencies.itl,
            judged and spoke and slo.itl_p99_s,
            "how long gaps between tokens are",
        ),
    ):
        if said is None and expected and figure in role.exports:
            return f"no replica says {what}"
    return None


def _alarm(turn: Turn) -> str | None:
    """What an alert about the load fires on, in the same figures: whether somebody's Alertmanager is there, and whom it tells,
    decides nothing. Those that do not serve yet stay too."""
    signals, slo, law = turn.role.signals, turn.situation.slo, turn.law
    if (signals.preempted_share or 0.0) > law.healthy_preempted:
        return "requests are preempted"
    if (kv := signals.mean("kv_fraction") or 0.0) > law.alert_kv:
        return f"{kv:.0%} of the pool is in use, above {law.alert_kv:.0%}"
    waiting, running = signals.sum("waiting") or 0.0, signals.sum("running") or 0.0
    if waiting > max(law.alert_waiting, law.alert_queue * running):
        return f"{waiting:.0f} requests wait"
    for what, seen, limit in (
        ("of the first token", signals.latencies.ttft, slo.ttft_p99_s),
        ("between tokens", signals.latencies.itl, slo.itl_p99_s),
    ):
        if seen is not None and seen.trusted and limit is not None and seen.p99 > limit:
            return f"p99 {what} is {seen.p99 * 1000:,.0f} ms, above the {limit * 1000:,.0f} promised"
    return None


def _calm(asked: Asked, load: Load, *, after: float, law: Law) -> str | None:
    """Would those that are left be calm?"""
    if after >= load.supply.ready:
        return None
    full = _full(load, after)
    if full is None:
        return "no replica says how full it is"
    if (busy := _busy(load, after, law)) > law.down_busy:
        return f"a burst would keep the {after:g} left {min(busy, 9.99):.0%} busy, above {law.down_busy:.0%}"
    prompts = _prompts(load, after, law)
    if prompts > 1:
        return f"prompts would keep the {after:g} left {min(prompts, 9.99):.0%} as busy as first tokens in time allow"
    if full > law.down_target:
        share = "more than 100%" if full > 1 else f"{full:.0%}"
        return f"the {after:g} left would be {share} full, above {law.down_target:.0%}"
    if load.demand.waiting >= max(1.0, after):
        return "requests wait"
    if asked.slow is not None and asked.slow > law.down_latency:
        return f"p99 latency is at {asked.slow:.0%} of its limit, above {law.down_latency:.0%}"
    return None


def _full(load: Load, after: float) -> float | None:
    """How full so many replicas would be. Those that do not say it now carry what they carry: they count as full."""
    demand, holds, free = load.demand, load.holds, after - load.missing
    if demand.inflight is None:
        return None
    if free <= 0:
        return float("inf")
    each = demand.inflight / free
    if demand.arrivals is not None and holds.curve is not None:
        each = max(each, holds.curve.inflight(demand.arrivals / free))
    elif load.supply.ready:
        # Without a line: as if the time a request takes grew with the requests beside it.
        each *= load.supply.ready / free
    return each / holds.least


def _prompts(load: Load, after: float, law: Law) -> float:
    """Share of what first tokens in time allow, with the gap that keeps the number still; 0 where nothing is known."""
    rate, free = load.demand.arrivals, after - load.missing
    if rate is None or load.holds.prompt is None:
        return 0.0
    return rate * law.target / law.down_target / (free * load.holds.prompt) if free > 0 else math.inf


def _busy(load: Load, after: float, law: Law) -> float:
    """Share of their highest rate that a burst would ask of so many replicas; 0 where no rate is known."""
    rate, free = load.demand.arrivals, after - load.missing
    if rate is None or load.holds.curve is None:
        return 0.0
    crest = load.demand.crest(rate, law.burst_sigmas)
    return crest / (free * load.holds.rate(load.holds.least)) if free > 0 else math.inf
