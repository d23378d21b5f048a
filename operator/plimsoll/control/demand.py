"""How much there is to do, in replicas that would be full: by tokens in the pool, and by requests in flight.

Where a role has sets of different hardware, everything is counted in replicas of its first set: a replica of another one
counts by what it carries beside the first's. A replica is full when its pool is, or when as many requests are in flight as
it carries within the latency limits; what is aimed at is a share of that, and `need` knows which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.control.memory import Learnt, RoleMemory
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Capacity, ReplicaState, Role, ServingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """None: nobody says."""

    tokens: float | None
    running: float | None

    @property
    def full(self) -> float | None:
        said = [value for value in (self.tokens, self.running) if value is not None]
        return max(said) if said else None


def weights(sets: tuple[ServingSet, ...]) -> Mapping[str, float]:
    """What a replica of each set carries, beside one of the first."""
    if not sets:
        return {}
    first = sets[0].capacity
    return {each.name: _weight(each.capacity, first) for each in sets}


def _weight(capacity: Capacity, first: Capacity) -> float:
    for mine, theirs in (
        (capacity.requests_per_second, first.requests_per_second),
        (capacity.concurrency, first.concurrency),
        (capacity.kv_tokens, first.kv_tokens),
    ):
        if mine and theirs:
            return max(0.05, mine / theirs)
    return 1.0


def carried(first: ServingSet, learnt: Learnt, signals: Signals) -> float:
    """Requests in flight that fill a replica of the first set."""
    slots = max((each.max_num_seqs for each in signals.replicas if each.max_num_seqs), default=None)
    most = float(slots or first.capacity.max_num_seqs)
    known = learnt.concurrency if learnt.concurrency is not None else first.capacity.concurrency
    return max(1.0, most if known is None else min(most, float(known)))


def demand_of(role: Role, memory: RoleMemory, weight: Mapping[str, float]) -> Demand:
    signals, first = role.signals, role.sets[0]
    if not signals.replicas:
        return Demand(tokens=None, running=None)
    waiting = (signals.sum("waiting") or 0.0) + (signals.gateway_waiting or 0.0)
    learnt = memory.learnt.get(first.name, Learnt())
    running = None
    if (inflight := signals.inflight) is not None:
        running = (inflight + (signals.gateway_waiting or 0.0)) / carried(first, learnt, signals)
    return Demand(tokens=_tokens(role, weight, waiting), running=running)


def _tokens(role: Role, weight: Mapping[str, float], waiting: float) -> float | None:
    signals, capacity = role.signals, role.sets[0].capacity
    used = signals.kv_tokens_used
    pool = _pool(role, weight)
    if used is None and signals.mean("kv_fraction") is not None and pool:
        used = (signals.sum("kv_fraction") or 0.0) * pool
    if used is None or not pool:
        return None
    prompt, output = signals.latencies.prompt, signals.latencies.output
    each = (prompt.mean if prompt and prompt.mean else capacity.input_tokens) + 0.5 * (
        output.mean if output and output.mean else capacity.output_tokens
    )
    return (used + waiting * each) / pool


def _pool(role: Role, weight: Mapping[str, float]) -> float:
    """KV tokens of one replica of the first set: as the engines report, else as planned."""
    if len(role.sets) == 1:
        said = [each.kv_tokens for each in role.signals.replicas if each.kv_tokens]
        return sum(said) / len(said) if said else float(role.sets[0].capacity.kv_tokens)
    owner = {replica.id: each.name for each in role.sets for replica in each.replicas}
    tokens = units = 0.0
    for each in role.signals.replicas:
        if each.kv_tokens and each.replica in owner:
            tokens += each.kv_tokens
            units += weight[owner[each.replica]]
    return tokens / units if units else float(role.sets[0].capacity.kv_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Replicas in the demand's unit."""

    ready: float
    counted: float
    """Ready, and starting for not too long, and asked for but not there yet."""


def supply_of(role: Role, weight: Mapping[str, float], now: float, credit_s: float) -> Supply:
    ready = counted = 0.0
    for each in role.sets:
        serving = coming = present = 0
        for replica in each.replicas:
            if replica.state is ReplicaState.LEAVING:
                continue
            present += 1
            if replica.state is ReplicaState.READY:
                serving += 1
            elif replica.state is not ReplicaState.FAILED and (
                now - replica.created < credit_s or replica.state is ReplicaState.NODE_COMING
            ):
                coming += 1
        coming += max(0, each.told - present)
        ready += serving * weight[each.name]
        counted += (serving + coming) * weight[each.name]
    return Supply(ready=ready, counted=counted)
