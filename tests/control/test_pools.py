"""Who grows and who shrinks: the cheapest and the dearest set of a deployment by what a replica carries, the important deployment of a fleet."""

from typing import Any

import pytest

from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.pools import grown, shrunk, spare
from plimsoll.control.situation import ReplicaState, Role, Room
from tests.control.situations import NOW, WIDE, known, replicas, serving, signals, situation, ticks

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
