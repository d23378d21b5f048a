"""Who grows and who shrinks: the cheapest and the dearest set of a deployment by what a replica carries, the important deployment of a fleet."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.decision import Action, Decision
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.pools import grown, shrunk, spare
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Bounds, ReplicaState, Role, Room, ServingSet, Situation, Zero
from tests.control.situations import (
    CAPACITY,
    NOW,
    WIDE,
    known,
    obeyed,
    replicas,
    serving,
    signals,
    situation,
    ticks,
)

LARGE = replace(CAPACITY, requests_per_second=15.0)
BUSY: dict[str, Any] = {"inflight": 60, "waiting": 30, "rate": 6.0, "kv": 0.97}


def role(**prices):
    """Sets of two replicas each, by name, with the price of a replica an hour and what it carries beside one of the first."""
    sets = tuple(
        serving(2, name=name, pool=name, price_per_hour=price, replicas=replicas(2, first=10 * place))
        for place, (name, (price, _)) in enumerate(prices.items())
    )
    weight = {name: carries for name, (_, carries) in prices.items()}
    return Role(sets=sets, signals=signals(4), bounds=WIDE), weight


@pytest.mark.parametrize(
    ("prices", "first_up", "first_down"),
    [
        ({"a": (4.0, 1.0), "b": (3.0, 1.0)}, "b", "a"),
        ({"a": (4.0, 1.0), "b": (9.0, 3.0)}, "b", "a"),
        ({"a": (4.0, 1.0), "b": (3.0, 0.5)}, "a", "b"),
        ({"a": (None, 1.0), "b": (9.0, 1.0)}, "b", "a"),
        ({"a": (4.0, 1.0), "b": (4.0, 1.0)}, "a", "b"),
        ({"b": (4.0, 1.0), "a": (4.0, 1.0)}, "b", "a"),
        ({"a": (None, 1.0), "b": (None, 2.0)}, "b", "a"),
        ({"b": (None, 1.0), "a": (None, 1.0)}, "b", "a"),
    ],
    ids=[
        *("cheaper", "cheaper for what it carries", "dearer for what it carries", "no price", "all the same"),
        *("in the plan's order", "no prices", "no prices, in the plan's order"),
    ],
)
def test_the_cheapest_for_what_it_carries_grows_and_the_dearest_shrinks(prices, first_up, first_down):
    asked, weight = role(**prices)
    up = grown(asked, weight, weight[first_up], most=20, blocked=(), room=None)
    assert up.replicas == {**dict.fromkeys(prices, 2), first_up: 3}
    down = shrunk(asked, weight, 1, 1)
    assert down.replicas == {**dict.fromkeys(prices, 2), first_down: 1}


@pytest.mark.parametrize(
    ("free", "after", "limit"),
    [
        ({"a": 9.0, "b": 9.0}, {"a": 2, "b": 5}, None),
        ({"a": 9.0, "b": 1.0}, {"a": 4, "b": 3}, None),
        ({"a": 1.0, "b": 1.0}, {"a": 3, "b": 3}, "GPUsUnavailable"),
    ],
    ids=["room", "the next takes the rest", "the rest is told"],
)
def test_what_the_cheapest_has_no_room_for_goes_to_the_next_and_else_is_told(free, after, limit):
    asked, weight = role(a=(4.0, 1.0), b=(3.0, 1.0))
    spread = grown(asked, weight, 3.0, most=20, blocked=(), room=Room(gpus=free))
    assert (dict(spread.replicas), spread.limit) == (after, limit)


def test_a_set_that_was_refused_its_gpus_is_passed_over_until_it_may_ask_again():
    asked, weight = role(a=(4.0, 1.0), b=(3.0, 1.0))
    spread = grown(asked, weight, 1.0, most=20, blocked=("b",), room=None)
    assert dict(spread.replicas) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("wanted", "going"), [(6.0, 0), (5.5, 0), (4.0, 1), (3.9, 1), (2.0, 2), (1.0, 3), (0.0, 4), (9.0, 0)]
)
def test_so_many_may_go_as_those_left_carry_what_is_wanted(wanted, going):
    """Two that carry two each are the dearest, and two that carry one each stay longer."""
    asked, weight = role(a=(4.0, 1.0), b=(9.0, 2.0))
    assert spare(asked, weight, wanted) == going


@pytest.mark.parametrize(("waits_s", "dearer"), [(60, 0), (150, 2)])
def test_a_replica_that_no_node_takes_keeps_the_other_sets_back_for_a_moment_only(waits_s, dearer):
    waiting = replicas(2, ReplicaState.UNSCHEDULABLE, age=waits_s, first=2)
    cheap = serving(
        2, name="a", pool="a", price_per_hour=1.0, replicas=(*replicas(2), *waiting), provision_s=900.0
    )
    dear = serving(0, name="b", pool="b", price_per_hour=4.0)
    decision = ticks(situation(signals(2, inflight=60, waiting=0, rate=6.0), cheap, dear), 3)
    assert {wish.set: wish.replicas for wish in decision.wishes} == {"a": 4, "b": dearer}


NOBODY = Signals(at=NOW, live=0, replicas=())
DEAR = serving(0, name="b", pool="b", price_per_hour=4.0)


def cheaper(ready: int, stuck: int, *, waits_s: float = 650) -> ServingSet:
    """Some of its replicas serve, and others have found no node for so long."""
    there = (*replicas(ready), *replicas(stuck, ReplicaState.UNSCHEDULABLE, age=waits_s, first=ready))
    return serving(name="a", pool="a", price_per_hour=1.0, replicas=there)


def in_room(asked: Situation, free: Mapping[str, float], ticks: int = 1) -> Decision:
    """The last decision of a row of ticks in a fleet that has so much free."""
    memories = {asked.name: known(ready=sum(each.ready for each in asked.roles[0].sets))}
    for tick in range(ticks):
        (decision,) = decide_fleet(
            now=NOW + 15 * tick, situations=[asked], memories=memories, fleet=Fleet(free=free)
        )
        asked, memories = obeyed(asked, decision), {asked.name: decision.memory}
    return decision


def by_set(decision: Decision) -> dict[str, int]:
    return {wish.set: wish.replicas for wish in decision.wishes}


@pytest.mark.parametrize(
    ("free", "after"),
    [
        ({"a": 0.0, "b": 3.0}, {"a": 2, "b": 2}),
        ({"a": 1.0, "b": 3.0}, {"a": 3, "b": 1}),
        ({"a": 0.0, "b": 1.0}, {"a": 3, "b": 1}),
        ({"a": 9.0, "b": 9.0}, {"a": 4, "b": 0}),
    ],
    ids=["all on the other", "one on the other", "no room for one, which waits for the cheaper", "room"],
)
def test_a_raised_minimum_goes_where_there_is_room_and_only_what_finds_none_waits(free, after):
    asked = situation(signals(2, inflight=5, rate=0.5), cheaper(2, 0), DEAR, bounds=Bounds(min=4, max=8))
    assert by_set(in_room(asked, free)) == after


def test_who_is_woken_comes_where_there_is_room():
    asked = situation(
        NOBODY, cheaper(0, 0), DEAR, bounds=Bounds(min=0, max=4), zero=Zero(waiting=3.0, idle_s=5000.0)
    )
    assert by_set(in_room(asked, {"a": 0.0, "b": 1.0})) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("ready", "waits_s", "room"), [(1, 650, 1.0), (0, 650, 1.0), (1, 300, 1.0), (1, 650, 0.0)]
)
def test_a_replica_of_the_minimum_that_no_node_takes_moves_to_a_set_that_has_room(ready, waits_s, room):
    said = signals(1, inflight=5, rate=0.5) if ready else NOBODY
    there = cheaper(ready, 1, waits_s=waits_s)
    asked = situation(said, there, DEAR, bounds=Bounds(min=ready + 1, max=6))
    moves = waits_s > 600 and room > 0
    once = in_room(asked, {"a": 1.0, "b": room})
    assert by_set(once) == ({"a": ready, "b": 1} if moves else {"a": ready + 1, "b": 0})
    assert (once.roles[0].action is Action.MOVE, "1 of b" in once.roles[0].message) == (moves, moves)
    (limit,) = [one for one in once.conditions if one.type == names.SCALING]
    assert limit.reason == "GPUsUnavailable"
    assert "1 replica of a on H100 finds no GPUs; no more are asked for there" in limit.message
    assert any(one.type == names.METRICS for one in once.conditions), "told at each look, or it is taken back"


def test_a_replica_that_moved_stays_where_it_is_when_the_cheaper_set_has_room_again():
    asked = situation(signals(1, inflight=5, rate=0.5), cheaper(1, 1), DEAR, bounds=Bounds(min=2, max=6))
    assert by_set(in_room(asked, {"a": 9.0, "b": 9.0}, ticks=60)) == {"a": 1, "b": 1}


@pytest.mark.parametrize(("one", "other", "first"), [(0, 5, "other"), (5, 0, "one"), (0, 0, "one")])
def test_the_last_gpus_go_to_the_more_important_and_among_equals_by_name(one, other, first):
    asked = [
        situation(signals(2, **BUSY), name="team/other", priority=other),
        situation(signals(2, **BUSY), name="team/one", priority=one),
    ]
    memories = {each.name: known() for each in asked}
    decided: dict[str, int] = {}
    for tick in range(4):
        decisions = decide_fleet(
            now=NOW + 15 * tick, situations=asked, memories=memories, fleet=Fleet(free={"h100": 1.0})
        )
        memories = {each.name: each.memory for each in decisions}
        for each in decisions:
            decided[each.name] = max(each.replicas, decided.get(each.name, 0))
    assert decided == {"team/one": 2, "team/other": 2, f"team/{first}": 3}


def test_sizes_of_a_deployment_over_several_sets_say_of_which_they_are():
    dear = serving(0, name="set-b", product="B200", pool="b", price_per_hour=9.0, capacity=LARGE)
    asked = situation(signals(2, **BUSY), serving(2, price_per_hour=4.0), dear, bounds=Bounds(max=2))
    said = ticks(asked, 3)
    (limit,) = [one for one in said.conditions if one.type == names.SCALING]
    assert "(in replicas of set-a on H100)" in said.roles[0].message
    assert " replicas of set-a on H100 are wanted, 2 of all sets can be had" in limit.message
    alone = ticks(situation(signals(2, **BUSY), bounds=Bounds(max=2)), 3)
    assert "set-a" not in alone.roles[0].message + "".join(one.message for one in alone.conditions)


@pytest.mark.parametrize(
    ("failing", "blocked", "most", "limit"),
    [
        ("a", (), 4, "StartFailed"),
        ("a", (), 5, "StartFailed"),
        ("b", (), 4, "StartFailed"),
        ("", (), 4, "AtMax"),
        ("", ("a",), 4, "AtMax"),
    ],
    ids=[
        "the cheaper one fails",
        "the cheaper one fails, and there is room for one of the other",
        "the dearer one fails",
        "none fails",
        "the cheaper one has no GPUs",
    ],
)
def test_replicas_that_fail_and_take_the_places_of_those_that_serve_are_the_reason_and_not_the_maximum(
    failing: str, blocked: tuple[str, ...], most: int, limit: str
):
    sets = tuple(
        serving(
            name=name,
            pool=name,
            price_per_hour=price,
            replicas=replicas(2, ReplicaState.FAILED if name == failing else ReplicaState.READY),
        )
        for name, price in (("a", 1.0), ("b", 4.0))
    )
    asked = Role(sets=sets, signals=signals(2), bounds=WIDE)
    spread = grown(asked, {"a": 1.0, "b": 1.0}, 3.0, most=most, blocked=blocked, room=None)
    assert spread.limit == limit


def test_where_more_is_wanted_and_none_is_given_it_is_always_said_why():
    chance = random.Random(8)
    refused = 0
    for _ in range(3000):
        sets = tuple(
            serving(
                2,
                name=name,
                pool=chance.choice("xy"),
                gpus=chance.choice((0.0, 0.5, 8.0)),
                price_per_hour=chance.choice((None, 1.0, 9.0)),
                replicas=replicas(
                    2, chance.choice((ReplicaState.READY, ReplicaState.FAILED)), first=10 * place
                ),
            )
            for place, name in enumerate("abc"[: chance.randint(1, 3)])
        )
        weight = {each.name: 1.0 if each is sets[0] else chance.choice((0.05, 0.7, 300.0)) for each in sets}
        spread = grown(
            Role(sets=sets, signals=signals(2), bounds=WIDE),
            weight,
            chance.choice((1.1e-9, 1e-7, 0.3, 5.0)),
            most=chance.choice((6, 7, 20)),
            blocked=chance.sample("abc", chance.randint(0, 3)),
            room=chance.choice((None, Room(gpus={"x": chance.choice((0.0, 1.0, 16.0))}))),
        )
        if sum(spread.replicas.values()) == 2 * len(sets):
            refused += 1
            assert spread.limit is not None
    assert refused > 300
