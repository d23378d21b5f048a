"""What comes, and what a replica carries of it: arrivals, requests in flight, and the three limits of a replica.

Where a role has sets of different hardware, everything is counted in replicas of its first set: a replica of another one
counts by what it carries beside the first's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.control import prompts
from plimsoll.control.curve import Curve, curve_of, planned_point, work_of
from plimsoll.control.forecast import arrivals
from plimsoll.control.law import Law
from plimsoll.control.memory import Learnt, LoadMemory, RoleMemory
from plimsoll.control.signals import RECENT_S, ReplicaSignals, Signals
from plimsoll.control.situation import NO_LIMITS, Capacity, ReplicaState, Role, ServingSet, Slo
from plimsoll.values import light

AWAITED: Final = frozenset({ReplicaState.NODE_COMING, ReplicaState.QUEUED})
"""States in which a replica counts as coming however long it takes: somebody makes a node for it, or keeps its turn."""
CALM_SHARE: Final = 0.1
"""Requests that may wait, as a share of those that run, without being a queue."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a whole role is asked to do. None: no replica says it."""

    arrivals: float | None
    """Requests a second."""
    running: float | None
    """Requests that are being worked on now."""
    inflight: float | None
    """Requests in flight, in the mean of two minutes."""
    waiting: float
    """In the replicas' queues and at the gateway."""
    finished: float | None = None
    """Requests a second."""
    burstiness: float = 1.0
    rush: float = math.inf
    """The most requests a second in half a minute of the last hours."""

    @property
    def owing(self) -> bool:
        return is_queue(self.waiting, self.running)

    def crest(self, rate: float, sigmas: float) -> float:
        """What a rate of arrivals comes to in a burst: no more than hours have shown, where that is more than independent arrivals come to."""
        independent = sigmas * math.sqrt(rate / RECENT_S)
        return rate + min(independent * math.sqrt(self.burstiness), max(independent, self.rush - rate))


def is_queue(waiting: float, running: float | None) -> bool:
    """Whether more requests wait than the engine's next steps would take up anyway."""
    return waiting > CALM_SHARE * (running or 0.0) + 1


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What fills one replica of the first set, by each of the things that limit it."""

    by_pool: float | None
    """Requests in flight that the pool holds, at the length that they have now; None where there is no pool or nothing runs."""
    by_limits: float
    """Requests in flight that keep the latency limits, and no more than the engine runs at once."""
    curve: Curve | None
    most: float | None = None
    """Requests a second beyond which a queue grows: the least of what was seen beside a queue and of what full steps come to."""
    prompt: float | None = None
    """Requests a second up to which first tokens come in time; None where no limit is set, or nothing is known."""
    even: float | None = None
    """The same where requests come independently of one another, as they do within a rush."""
    spent: float = 1.0
    """How many first tokens were late over hours, as a share of how many may be; 1 where no limit is set, or nothing is known."""
    gap_s: float = math.inf
    """Seconds of the 99th percentile gap that is there at any load; infinite where fewer requests would make it shorter."""
    longest_s: float = math.inf
    """Seconds of the longest gap that any load makes while no request is preempted; infinite where that is not known."""

    def rate(self, full: float) -> float:
        """The highest rate of one replica that has `full` requests in flight, in requests a second."""
        planned = self.curve.rate(full) if self.curve is not None else math.inf
        return planned if self.most is None else min(planned, self.most)

    @property
    def least(self) -> float:
        return self.by_limits if self.by_pool is None else min(self.by_pool, self.by_limits)


def weights(sets: tuple[ServingSet, ...]) -> Mapping[str, float]:
    """By set: what one replica of it carries, in replicas of the first set."""
    if not sets:
        return {}
    if len(sets) == 1:
        return {sets[0].name: 1.0}
    first = sets[0].capacity
    return {each.name: _weight(each.capacity, first) for each in sets}


def beside(sets: tuple[ServingSet, ...], name: str) -> tuple[float, float]:
    """What one replica of the named set carries, in replicas of the first set; and what the ready replicas of all other sets carry, in
    replicas of the named one."""
    weight = weights(sets)
    others = sum(weight[one.name] * one.ready for one in sets if one.name != name)
    return weight[name], others / weight[name]


def _weight(capacity: Capacity, first: Capacity) -> float:
    for mine, theirs in (
        (capacity.requests_per_second, first.requests_per_second),
        (capacity.concurrency, first.concurrency),
        (capacity.kv_tokens, first.kv_tokens),
    ):
        if mine and theirs:
            return max(0.05, mine / theirs)
    return 1.0


def units_of(role: Role, weight: Mapping[str, float]) -> Mapping[str, float]:
    """By replica: what it carries, in replicas of the first set."""
    return {replica.id: weight[each.name] for each in role.sets for replica in each.replicas}


def firsts(role: Role) -> tuple[ReplicaSignals, ...]:
    """What replicas of the first set say."""
    if len(role.sets) == 1:
        return role.signals.replicas
    ours = {replica.id for replica in role.sets[0].replicas}
    return tuple(each for each in role.signals.replicas if each.replica in ours)


def demand_of(signals: Signals, load: LoadMemory) -> Demand:
    return Demand(
        arrivals=arrivals(load, signals.arrivals_per_s, signals.recent_arrivals_per_s),
        running=signals.sum("running"),
        inflight=signals.sum("inflight_mean"),
        waiting=(signals.sum("waiting") or 0.0) + (signals.gateway_waiting or 0.0),
        finished=signals.rate("finished"),
        burstiness=load.burstiness,
        rush=load.rush,
    )


def carried(role: Role, learnt: Learnt, weight: Mapping[str, float], slo: Slo) -> Carried:
    signals, capacity = role.signals, role.sets[0].capacity
    most = float(capacity.max_num_seqs)
    # Once no limit is promised, nothing would teach otherwise what one taught.
    taught = None if slo == NO_LIMITS else learnt.concurrency
    known = taught if taught is not None else capacity.concurrency
    full = prompts.most_tokens(learnt.steps, capacity)
    lengths = prompts.lengths_of(signals, capacity)
    each = prompts.tokens_each(lengths)
    calm = even = None
    if full is not None and slo.ttft_p99_s is not None:
        about = learnt.steps, full, capacity, signals, slo.ttft_p99_s
        calm = full * prompts.within_limit(*about) / each
        even = full * prompts.within_limit(*about, even=True) / each
    step_s = prompts.step_s(full, capacity)
    limits = [limit for limit in (learnt.most, None if full is None else full / each) if limit is not None]
    return Carried(
        by_pool=_by_pool(role, weight),
        by_limits=max(1.0, most if known is None else min(most, float(known))),
        curve=curve_of(learnt.points, planned_point(capacity, work_seen(signals))),
        most=min(limits, default=None),
        prompt=calm,
        even=even,
        spent=1.0 if calm is None else prompts.spent(learnt.steps, slo.ttft_p99_s),
        gap_s=prompts.lasting_gap_s(step_s, lengths, capacity),
        longest_s=prompts.longest_gap_s(learnt.steps, step_s, slo.itl_p99_s),
    )


def work_seen(signals: Signals) -> float | None:
    prompt, output = signals.latencies.prompt, signals.latencies.output
    if prompt is None or output is None or not output.trusted or prompt.mean is None or output.mean is None:
        return None
    return work_of(prompt.mean, output.mean)


def _by_pool(role: Role, weight: Mapping[str, float]) -> float | None:
    pool = _pool(role, weight)
    each = role.signals.held_each(pool)
    return max(1.0, pool / each) if pool and each else None


def _pool(role: Role, weight: Mapping[str, float]) -> float:
    """KV tokens of one replica of the first set: as the engines report, else as planned."""
    if len(role.sets) == 1:
        said = [each.kv_tokens for each in role.signals.replicas if each.kv_tokens]
        return sum(said) / len(said) if said else float(role.sets[0].capacity.kv_tokens)
    carries = units_of(role, weight)
    tokens = units = 0.0
    for each in role.signals.replicas:
        if each.kv_tokens and each.replica in carries:
            tokens += each.kv_tokens
            units += carries[each.replica]
    return tokens / units if units else float(role.sets[0].capacity.kv_tokens)


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What there is, counted in replicas of the first set."""

    ready: float
    counted: float
    """Those that are ready, that have been starting for not too long, or that are asked for and will be made. Not those for which no node has
    room, nor those on nodes that do not answer."""


def supply_of(
    role: Role, weight: Mapping[str, float], now: float, *, credit_s: float, unplaced_s: float
) -> Supply:
    ready = counted = 0.0
    for each in role.sets:
        serving = coming = present = 0
        for replica in each.replicas:
            if replica.state is ReplicaState.LEAVING:
                continue
            present += 1
            if replica.state is ReplicaState.READY:
                serving += 1
            elif replica.is_unplaced(now, unplaced_s, each.node_s):
                continue
            elif replica.state is not ReplicaState.FAILED and (
                now - replica.begun < credit_s or replica.state in AWAITED
            ):
                coming += 1
        if not each.refused:
            coming += max(0, each.told - present - each.lost)
        ready += serving * weight[each.name]
        counted += (serving + coming) * weight[each.name]
    return Supply(ready=ready, counted=counted)


def _missing(role: Role, weight: Mapping[str, float], *, once: bool) -> float:
    """Ready replicas that do not say how many requests they have; with `once` also those that were heard only once, so that nobody knows yet how
    many come."""
    signals, single = role.signals, len(role.sets) == 1
    # As nearly all replicas speak at nearly all looks.
    if not (once and any(each.span_s <= 0 for each in signals.replicas)) and (single or not signals.silent):
        return float(signals.silent)
    spoke = {each.replica for each in signals.replicas if each.speaks and (each.span_s > 0 or not once)}
    if single:
        return float(signals.live - len(spoke))
    silent = (
        weight[each.name]
        for each in role.sets
        for replica in each.replicas
        if replica.state is ReplicaState.READY and replica.id not in spoke
    )
    return sum(silent, 0.0)


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Demand, what a replica holds of it, and supply, together."""

    demand: Demand
    holds: Carried
    supply: Supply
    weight: Mapping[str, float]
    missing: float
    """Ready replicas that do not say how many requests they have, in replicas of the first set."""
    unheard: float = 0.0
    """Those, and those of which nobody knows yet how many requests come."""
    counts: bool = False
    """Whether engines count the requests that end, so that a rate of arrivals is known from the second look on."""


def load_of(
    role: Role, memory: RoleMemory, *, now: float, lead_s: float, law: Law, slo: Slo = NO_LIMITS
) -> Load:
    weight, demand = weights(role.sets), demand_of(role.signals, memory.load)
    counts = "finished" in role.exports
    starts = law.credit_owing if demand.owing else law.credit_starts
    return Load(
        demand=demand,
        holds=carried(role, memory.learnt_of(role.sets[0]), weight, slo),
        supply=supply_of(role, weight, now, credit_s=starts * lead_s, unplaced_s=law.unplaced_s),
        weight=weight,
        missing=_missing(role, weight, once=False),
        unheard=_missing(role, weight, once=counts),
        counts=counts,
    )
