"""What holds whatever happens: ten thousand random stories of a few ticks each, drawn by seed."""

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

import pytest

from plimsoll.control.decision import Action
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.latencies import Spread
from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.scaling import decide
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Bounds, Replica, ReplicaState, Role, Room, ServingSet, Situation, Zero
from plimsoll.facts.histograms import Histogram
from plimsoll.planning import codec
from plimsoll.planning.placing.budgets import Limits
from tests.control.situations import CAPACITY, NOW, SLO, saying
from tests.control.situations import spread as quantiles

STORIES, TICKS = 10_000, 3
FLEET, FLEET_TICKS = ("other/0", "team/0", "team/1"), 2
LOAD_DRIVEN = {"LoadRose", "Panic", "StartFailed"}
DONE = (
    (Action.UP, "LoadRose"),
    (Action.UP, "Panic"),
    (Action.UP, "AtMin"),
    (Action.DOWN, "LoadFell"),
    (Action.DOWN, "AtMax"),
    (Action.DOWN, "GPUsUnavailable"),
    (Action.MOVE, "GPUsUnavailable"),
    (Action.MOVE, "StartFailed"),
    (Action.ZERO, "ScaledToZero"),
    (Action.WAKE, "Woken"),
)
"""All that may be done."""
STATES = (
    *[ReplicaState.READY] * 6,
    ReplicaState.STARTING,
    ReplicaState.UNSCHEDULABLE,
    ReplicaState.NODE_COMING,
    ReplicaState.FAILED,
    ReplicaState.LEAVING,
)


def drawn_set(rng, name, now):
    listed = tuple(
        Replica(
            id=f"{name}-{i}",
            state=rng.choice(STATES),
            since=now - rng.choice([5, 100, 700, 5000]),
            created=now - rng.choice([300, 800, 6000]),
            unready=now - rng.choice([700, *[5000] * 3]),
            restarts=rng.choice([0, 0, 4]),
        )
        for i in range(rng.randrange(7))
    )
    return ServingSet(
        name=name,
        pool=rng.choice(["a", "b"]),
        product="H100",
        capacity=replace(CAPACITY, max_batched_tokens=rng.choice([None, 2048, 8192])),
        replicas=listed,
        wanted=rng.choice([None, rng.randrange(7)]),
        gpus=rng.choice([0.5, 1, 2]),
        price_per_hour=rng.choice([None, 2.0, 5.0]),
    )


def lengths(rng):
    """Of few prompts or many, as an engine counts them: also where all are longer than its buckets tell."""
    counts = accumulate(rng.choice([0, 0, 3, 900]) for _ in range(4))
    return Spread.of(Histogram((200, 2000, 20_000, math.inf), tuple(map(float, counts)), 1e6))


def drawn_signals(rng, now, live):
    spoken = rng.choice([live, live, rng.randint(0, live)])
    figures = {
        "inflight": rng.choice([0, 10, 45, 64]),
        "waiting": rng.choice([0, 0, 5, 300]),
        "rate": rng.choice([0.0, 0.5, 4.0, 9.0]),
        "kv": rng.choice([None, 0.3, 0.7, 1.0]),
    }
    if rng.random() < 0.3:
        figures = {"inflight": 0, "waiting": 0, "rate": 0.0, "kv": 0.0}
    recent = rng.choice([None, 0.0, 9000.0, 400_000.0])
    span, recently = rng.choice(
        [(120.0, 30.0), (120.0, 30.0), (120.0, 120.0), (200.0, 150.0), (15.0, 15.0), (0.0, 0.0)]
    )
    figures |= {"recent_prompt_tokens": recent, "span_s": span, "recent_span_s": recently}
    said = Signals(at=now, live=live, replicas=saying(spoken, **figures), reachable=rng.random() > 0.05)
    if rng.random() < 0.7:
        latency = rng.choice([0.2, 1.5, 3.0])
        latencies = type(said.latencies)(
            ttft=quantiles(latency),
            itl=quantiles(latency / 25),
            prompt=rng.choice([None, quantiles(3000), lengths(rng)]),
            output=rng.choice([None, quantiles(600)]),
            whole=rng.random() < 0.8,
        )
        said = Signals(
            at=now, live=live, replicas=said.replicas, reachable=said.reachable, latencies=latencies
        )
    return said


def drawn(rng, now, name="team/chat"):
    sets = tuple(drawn_set(rng, f"{name}-set-{i}", now) for i in range(rng.choice([1, 1, 2])))
    there = sum(each.told for each in sets)
    least = rng.choice([0, 0, 1, 1, 3])
    bounds = Bounds(min=least, max=max(1, least, there + rng.choice([-2, 0, 3, 3, 12, 12])))
    live = sum(each.ready for each in sets)
    return Situation(
        name=name,
        roles=(Role(sets=sets, signals=drawn_signals(rng, now, live), bounds=bounds),),
        slo=SLO,
        zero=Zero(idle_s=rng.choice([None, 0.0, 5000.0, 5000.0]), waiting=rng.choice([None, 0.0, 0.0, 2.0]))
        if least == 0
        else None,
        busy=rng.choice([None, None, None, "a rollout"]),
    )


def drawn_memory(rng):
    """Of nobody who has looked yet, or of who has watched for minutes or hours."""
    if rng.random() < 0.2:
        return Memory()
    watched = rng.choice([100, *[20_000] * 4])
    role = RoleMemory(
        begun=NOW - watched,
        seen=NOW - 15,
        ready=rng.randrange(7),
        changed=NOW - rng.choice([30, 9000]),
        over_since=rng.choice([None, NOW - 60]),
        up_at=rng.choice([None, None, NOW - 60, NOW - 9000]),
        down_at=rng.choice([None, None, NOW - 60]),
        woken_at=rng.choice([*[None] * 3, NOW - 60]),
        starts=rng.choice([(), (120.0,)]),
        started_until=NOW - 4000,
        missing_since=rng.choice([*[None] * 5, NOW - 60]),
    )
    return Memory(roles={"serve": role})


@pytest.mark.parametrize("part", range(4))
def test_bounds_budgets_and_caution_hold_in_every_story(part):
    rng, done = random.Random(part), Counter[tuple[Action, str]]()
    for _ in range(STORIES // 4):
        memory, now = drawn_memory(rng), NOW
        for _ in range(TICKS):
            asked, gpus = drawn(rng, now), rng.choice([0.0, 2.0, 50.0])
            limits = Limits(
                replicas=rng.choice([None, 0, 4]),
                devices=rng.choice([None, None, Fraction(1), Fraction(9, 2)]),
            )
            room = Room(gpus={"a": gpus, "b": rng.choice([gpus, 1.0])}, limits=limits)
            decision = decide(now=now, situation=asked, memory=memory, room=room)
            judge(asked, decision, room, now)
            done[decision.roles[0].action, decision.roles[0].reason] += 1
            before, then = memory, now
            memory, now = decision.memory, now + rng.choice([1, *[15] * 6, 60, 4000, -4000])
        assert decision == decide(now=then, situation=asked, memory=before, room=room)
        assert codec.decode(Memory, codec.encode(memory)) == memory
    seldom = {what: done[what] for what in DONE if done[what] < STORIES // 4000}
    assert not seldom, "stories show little of what hardly happens in them"


def devices(role, grown, wished):
    """That what grows takes more, by pool."""
    more = dict.fromkeys((each.pool for each in role.sets), 0.0)
    for each in role.sets:
        if each.name in grown:
            more[each.pool] += (wished[each.name] - each.told) * each.gpus
    return more


def judge(asked, decision, room, now):
    (role,), (answer,) = asked.roles, decision.roles
    before = {each.name: each.told for each in role.sets}
    wished = {wish.set: wish.replicas for wish in answer.wishes}
    grown = {name for name in wished if wished[name] > before[name]}
    shrunk = {name for name in wished if wished[name] < before[name]}
    there, after = sum(before.values()), sum(wished.values())
    assert list(wished) == [each.name for each in role.sets]
    # Within bounds: towards them, never away.
    assert after <= max(role.bounds.max, there)
    if after < there:
        assert after >= min(role.bounds.min, there) or role.bounds.min > there
    if not asked.zero and there >= role.bounds.min:
        assert after >= min(there, max(1, role.bounds.min))
    # One action: nothing grows while something else shrinks, unless in the place of what no node takes, or of what has failed for long.
    if grown and shrunk:
        assert answer.reason in {"GPUsUnavailable", "StartFailed"}
        placed = answer.reason == "StartFailed"
        assert all(
            before[each.name] - wished[each.name]
            <= sum(
                one.has_failed(now, LAW.withdraw_s) if placed else one.is_unplaced(now, LAW.withdraw_s)
                for one in each.replicas
            )
            for each in role.sets
        )
        assert after == there or not placed
        assert not asked.busy
    assert (answer.action is Action.HOLD) == (not grown and not shrunk)
    # Nothing is taken away on missing data, only the user's own bounds are enforced.
    dark = not role.signals.reachable or role.signals.coverage < 0.5
    # And while something else moves replicas no load takes one away.
    if (dark or asked.busy) and there and after < there:
        assert there > role.bounds.max
    # Budgets; what the user's own bounds ask for waits for devices, what load asks for has them.
    if grown and room.limits.replicas is not None:
        assert after - there <= room.limits.replicas
    taken = devices(role, grown, wished)
    if answer.reason in LOAD_DRIVEN:
        assert all(taken[pool] <= room.gpus[pool] + 1e-6 for pool in taken)
    if room.limits.devices is not None:
        assert sum(taken.values()) <= room.limits.devices + 1e-6
    assert answer.reason
    assert answer.message


DRAWN = 60
"""Situations of each deployment at each tick, of which fleets are put together: to draw one takes as long as to decide it."""


@pytest.mark.parametrize("part", range(4))
def test_a_fleet_never_takes_more_than_is_free_or_allowed(part):
    rng = random.Random(7 + part)
    there = [
        {name: [drawn(rng, NOW + 15 * tick, name) for _ in range(DRAWN)] for name in FLEET}
        for tick in range(FLEET_TICKS)
    ]
    grew = bounded = 0
    for _ in range(STORIES // 4):
        free, limit = {"a": rng.choice([0.0, 4.0, 9.0]), "b": 5.0}, rng.choice([None, 3, 20])
        fleet = Fleet(free=free, limits={} if limit is None else {"team": Limits(devices=Fraction(limit))})
        memories: dict[str, Memory] = {}
        for tick in range(FLEET_TICKS):
            asked = [rng.choice(there[tick][name]) for name in rng.sample(FLEET, 2)]
            decisions = decide_fleet(now=NOW + 15 * tick, situations=asked, memories=memories, fleet=fleet)
            taken, team = fleet_takes(asked, decisions)
            assert all(taken[pool] <= free[pool] + 1e-6 for pool in taken)
            grew += any(taken.values())
            if limit is not None:
                held = sum(
                    (max(each.told, each.present) + each.count(ReplicaState.LEAVING)) * each.gpus
                    for one in asked
                    if one.namespace == "team"
                    for role in one.roles
                    for each in role.sets
                )
                assert team <= max(0.0, limit - held) + 1e-6
                bounded += 0 < team >= limit - held - 2
            memories |= {each.name: each.memory for each in decisions}
    assert min(grew, bounded) > STORIES // 200, "hardly anybody grew, or met a budget"


def fleet_takes(asked, decisions):
    """Devices that load asks for by pool, and all that one namespace takes more, whoever asks."""
    more, team = {"a": 0.0, "b": 0.0}, 0.0
    said = {decision.name: decision.roles[0] for decision in decisions}
    for one in asked:
        (role,), answer = one.roles, said[one.name]
        wished = {wish.set: wish.replicas for wish in answer.wishes}
        grown = {each.name for each in role.sets if wished[each.name] > each.told}
        taken = devices(role, grown, wished)
        for pool, gpus in taken.items():
            more[pool] += gpus if answer.reason in LOAD_DRIVEN else 0.0
        team += sum(taken.values()) if one.namespace == "team" else 0.0
    return more, team
