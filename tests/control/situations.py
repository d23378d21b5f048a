"""Situations in a line: a deployment whose replicas all say the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plimsoll.control.decision import Decision
from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.scaling import decide
from plimsoll.control.signals import ReplicaSignals, Signals
from plimsoll.control.situation import (
    Bounds,
    Capacity,
    Replica,
    ReplicaState,
    Role,
    Room,
    ServingSet,
    Situation,
    Slo,
)
from plimsoll.planning import codec

NOW = 1_000_000.0
WIDE = Bounds(min=1, max=20)
CAPACITY = Capacity(
    kv_tokens=100_000,
    max_num_seqs=64,
    concurrency=50,
    requests_per_second=5.0,
    input_tokens=1000,
    output_tokens=300,
)
SLO = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)


def replicas(
    count: int, state: ReplicaState = ReplicaState.READY, *, age: float = 5000, first: int = 0
) -> tuple[Replica, ...]:
    return tuple(
        Replica(
            id=f"pod-{first + i:03}",
            state=state,
            since=NOW - age,
            created=NOW - age - 100,
            pod=f"chat-{first + i}",
        )
        for i in range(count)
    )


def saying(
    count: int,
    *,
    inflight: float = 20,
    waiting: float | None = 0,
    rate: float = 2.0,
    kv: float = 0.3,
    **more: Any,
) -> tuple[ReplicaSignals, ...]:
    """So many replicas, each with so many requests in flight and a second."""
    each: dict[str, Any] = {
        "kv_fraction": kv,
        "running": inflight,
        "waiting": waiting,
        "kv_tokens": 100_000,
        "span_s": 120.0,
        "preemptions": 0.0,
        "finished": rate * 120,
        "errors": 0.0,
        "prompt_tokens": rate * 120 * 1000,
        "generation_tokens": rate * 120 * 300,
        "arrived": rate * 120,
        "recently": rate * 30,
        "recent_span_s": 30.0,
        "inflight_mean": None if waiting is None else inflight + waiting,
    } | more
    return tuple(ReplicaSignals(replica=f"pod-{i:03}", **each) for i in range(count))


def spread(p99: float, samples: float = 1000) -> Spread:
    return Spread(p50=p99 / 2, p95=p99 * 0.9, p99=p99, worst=p99 * 1.5, mean=p99 / 2, samples=samples)


def signals(
    count: int, *, live: int | None = None, ttft: float = 0.5, itl: float = 0.04, **each: Any
) -> Signals:
    """Of `live` replicas of which `count` speak."""
    return Signals(
        at=NOW,
        live=count if live is None else live,
        replicas=saying(count, **each),
        latencies=Latencies(ttft=spread(ttft), itl=spread(itl), e2e=spread(10.0)),
    )


def serving(count: int = 2, **changed: Any) -> ServingSet:
    return replace(
        ServingSet(name="set-a", pool="h100", product="H100", capacity=CAPACITY, replicas=replicas(count)),
        **changed,
    )


def situation(
    said: Signals, *sets: ServingSet, bounds: Bounds = WIDE, name: str = "team/chat", **more: Any
) -> Situation:
    role = Role(sets=sets or (serving(said.live),), signals=said, bounds=bounds)
    return replace(Situation(name=name, roles=(role,), slo=SLO), **more)


def known(**changed: Any) -> Memory:
    """A memory that has watched for hours."""
    memory = RoleMemory(
        begun=NOW - 20_000,
        seen=NOW - 15,
        changed=NOW - 10_000,
        ready=2,
        starts=(120.0,),
        started_until=NOW - 4000,
    )
    return Memory(roles={"serve": replace(memory, **changed)})


def after(first: Situation, *rest: Situation, memory: Memory | None = None, begin: float = NOW) -> Decision:
    """The last decision of a row of ticks; what was wished is what the controllers are told at the next one."""
    memory, now = memory or known(ready=sum(s.ready for s in first.roles[0].sets)), begin
    decision = None
    for each in (first, *rest):
        seen = each if decision is None else obeyed(each, decision)
        decision = decide(now=now, situation=seen, memory=memory)
        memory, now = decision.memory, now + 15
    assert decision is not None
    return decision


def obeyed(situation: Situation, decision: Decision) -> Situation:
    wished = {wish.set: wish.replicas for wish in decision.wishes}
    roles = tuple(
        replace(role, sets=tuple(replace(each, wanted=wished[each.name]) for each in role.sets))
        for role in situation.roles
    )
    return replace(situation, roles=roles)


def ticks(same: Situation, count: int, memory: Memory | None = None) -> Decision:
    return after(*([same] * count), memory=memory)


def watching(
    asked: Situation,
    count: int,
    *,
    room: Room | None = None,
    memory: Memory | None = None,
    begin: float = NOW,
) -> list[Decision]:
    """A row of ticks; what was wished is what the controllers are told at the next one, and pods are as they were."""
    memory = memory or known(ready=sum(each.ready for each in asked.roles[0].sets))
    found: list[Decision] = []
    for tick in range(count):
        decision = decide(now=begin + LAW.tick_s * tick, situation=asked, memory=memory, room=room)
        memory = codec.decode(Memory, codec.encode(decision.memory))
        asked = obeyed(asked, decision)
        found.append(decision)
    return found


def by_set(decision: Decision) -> dict[str, int]:
    return {wish.set: wish.replicas for wish in decision.wishes}
