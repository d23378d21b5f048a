"""How many replicas the load asks for, seen four ways, of which the largest counts.

Tokens in the pool, requests in flight, latency beside its limit, and what will arrive one start-up from now. Latency is
asked last and trusted least: it looks back five minutes, and more replicas do not cure an engine that is slow with few
requests; that is said instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from plimsoll import names
from plimsoll.control import forecast
from plimsoll.control.decision import Need, Told
from plimsoll.control.demand import Demand
from plimsoll.control.law import Law
from plimsoll.control.learning import is_settled, lead_s, ratio_of
from plimsoll.control.memory import Learnt, RoleMemory
from plimsoll.control.situation import Role, Slo


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    need: Need
    wanted: float | None
    """In replicas of the first set; None where nothing says anything."""
    memory: RoleMemory
    slow: float | None
    """The worse latency as a share of its limit, where one is promised."""
    panic: bool
    told: Told | None
    """SLOAttainable, where it can be said."""


def asked(
    role: Role, memory: RoleMemory, *, demand: Demand, ready: float, slo: Slo, now: float, law: Law
) -> Asked:
    lead = lead_s(memory, role, law)
    ratio = ratio_of(role.signals, slo)
    memory = _slow(memory, ratio, now)
    cured = _curable(role, law)
    latency = None
    if ratio is not None and ratio > 1 and cured and _lasted(memory, now, law) and is_settled(memory, now):
        latency = ready * min(law.slow_most, ratio)
    memory, predicted = _predicted(memory, role, lead, now, law)
    need = Need(
        tokens=None if demand.tokens is None else demand.tokens / law.target,
        running=None if demand.running is None else demand.running / law.target,
        latency=latency,
        forecast=predicted,
        lead_s=lead,
    )
    said = [value for value in (need.tokens, need.running, need.latency, need.forecast) if value is not None]
    return Asked(
        need=need,
        wanted=max(said) if said else None,
        memory=memory,
        slow=ratio,
        panic=_panic(role, law),
        told=_attainable(role, ratio, cured or not _lasted(memory, now, law)),
    )


def _slow(memory: RoleMemory, ratio: float | None, now: float) -> RoleMemory:
    if ratio is None or ratio <= 1:
        return memory if memory.slow_since is None else replace(memory, slow_since=None)
    return memory if memory.slow_since is not None else replace(memory, slow_since=now)


def _lasted(memory: RoleMemory, now: float, law: Law) -> bool:
    return memory.slow_since is not None and now - memory.slow_since >= law.slow_s


def _curable(role: Role, law: Law) -> bool:
    """Whether more replicas can help: there is some sign of load."""
    signals = role.signals
    if (signals.mean("kv_fraction") or 0.0) >= law.busy_kv or (signals.sum("waiting") or 0.0) > 0:
        return True
    if (signals.sum("preemptions_per_s") or 0.0) > 0 or not signals.replicas:
        return True
    each = (signals.inflight or 0.0) / len(signals.replicas)
    planned = role.sets[0].capacity.concurrency or role.sets[0].capacity.max_num_seqs
    return each > max(4.0, law.busy_share * planned)


def _predicted(
    memory: RoleMemory, role: Role, lead: float, now: float, law: Law
) -> tuple[RoleMemory, float | None]:
    arrivals = role.signals.arrivals_per_s
    load = memory.load if arrivals is None else forecast.observed(memory.load, now, arrivals)
    coming = forecast.forecast(load, now, lead)
    if coming is None:
        return replace(memory, load=load), None
    load = forecast.expecting(load, now + lead, coming)
    memory = replace(memory, load=load)
    rate = memory.learnt.get(role.sets[0].name, Learnt()).rate or role.sets[0].capacity.requests_per_second
    if not rate:
        return memory, None
    margin = forecast.surprise(load)
    share = law.target if margin is None else max(law.target, law.forecast_target / margin)
    return memory, coming / (rate * share)


def _panic(role: Role, law: Law) -> bool:
    """Half of the replicas are at their limit now; waiting for a second look would only lengthen the queue."""
    crowded = sum(
        1
        for each in role.signals.replicas
        if (each.kv_fraction or 0.0) >= law.panic_kv
        or (each.waiting or 0.0) > max(law.panic_waiting, each.running or 0.0)
    )
    return crowded > 0 and 2 * crowded >= role.signals.live


def _attainable(role: Role, ratio: float | None, curable: bool) -> Told | None:
    if ratio is None:
        return None
    if ratio > 1 and not curable:
        each = (role.signals.inflight or 0.0) / max(1, len(role.signals.replicas))
        return Told(
            type=names.SLO,
            status="False",
            reason="Unattainable",
            message=f"p99 latency is at {ratio:.0%} of its limit with {each:.1f} requests in flight a replica and "
            "no queue: more replicas would not help; a faster layout or GPU, or another limit in slo, would",
        )
    return None


def replicas(wanted: float) -> int:
    return max(0, math.ceil(wanted - 1e-9))
