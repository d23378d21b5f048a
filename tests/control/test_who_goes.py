"""Which replicas of several sets go: first those that serve nobody, so that what is left is what answers."""

from typing import Any

import pytest

from plimsoll.control.decision import Decision
from plimsoll.control.pools import shrunk, spare
from plimsoll.control.situation import Bounds, ReplicaState, Role, ServingSet
from tests.control.situations import NOW, WIDE, known, replicas, serving, signals, situation, ticks

IDLE = [
    *(ReplicaState.STARTING, ReplicaState.UNSCHEDULABLE, ReplicaState.NODE_COMING),
    *(ReplicaState.QUEUED, ReplicaState.FAILED),
]
QUIET: dict[str, Any] = {"inflight": 5, "rate": 0.5}
LONG_S = 30.0
"""Ago: no replica is taken back for want of a node yet."""


def cheap(ready: int, idle: int = 0, state: ReplicaState = ReplicaState.STARTING, **more: Any) -> ServingSet:
    there = (*replicas(ready), *replicas(idle, state, age=LONG_S, first=ready))
    return serving(name="a", pool="a", price_per_hour=1.0, replicas=there, **more)


def dear(ready: int, idle: int = 0, state: ReplicaState = ReplicaState.STARTING, **more: Any) -> ServingSet:
    there = (*replicas(ready, first=50), *replicas(idle, state, age=LONG_S, first=50 + ready))
    return serving(name="b", pool="b", price_per_hour=4.0, replicas=there, **more)


def by_set(decision: Decision) -> dict[str, int]:
    return {wish.set: wish.replicas for wish in decision.wishes}


@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize(
    "bounds", [WIDE, Bounds(min=1, max=1), Bounds(fixed=1)], ids=["little load", "a lower maximum", "fixed"]
)
def test_the_replica_that_serves_stays_though_it_is_the_dearer_one(state: ReplicaState, bounds: Bounds):
    memory = known(ready=1, wishes=((NOW - 100, 1.0),))
    asked = situation(signals(1, **QUIET), cheap(0, 1, state), dear(1), bounds=bounds)
    assert by_set(ticks(asked, 1, memory=memory)) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("sets", "count", "after"),
    [
        ((cheap(2, 1), dear(2, 1)), 1, {"a": 3, "b": 2}),
        ((cheap(2, 1), dear(2, 1)), 2, {"a": 2, "b": 2}),
        ((cheap(2, 1), dear(2, 1)), 3, {"a": 2, "b": 1}),
        ((cheap(2, 1), dear(2, 1)), 5, {"a": 1, "b": 0}),
        ((cheap(1, wanted=3), dear(2)), 2, {"a": 1, "b": 2}),
        ((cheap(3, wanted=1), dear(2)), 1, {"a": 1, "b": 1}),
    ],
    ids=[
        "the dear one that does not serve",
        "both that do not serve",
        "then the dear one that serves",
        "then all of those",
        "those without a pod",
        "more serve than are told to",
    ],
)
def test_who_does_not_serve_goes_before_who_does_and_the_dearest_first_among_either(sets, count, after):
    role = Role(sets=sets, signals=signals(4), bounds=WIDE)
    assert dict(shrunk(role, {"a": 1.0, "b": 1.0}, count, 0).replicas) == after


@pytest.mark.parametrize(
    ("wanted", "going"),
    [(5.1, 0), (5.0, 1), (4.1, 1), (4.0, 2), (3.5, 3), (3.0, 4), (2.1, 4), (2.0, 5)],
)
def test_as_many_may_go_as_are_spared_in_the_order_in_which_they_go(wanted: float, going: int):
    """Of 5.5: a dear half that does not serve, a whole cheap one that does not, two dear halves, and then the three cheap ones."""
    role = Role(sets=(cheap(3, 1), dear(2, 1)), signals=signals(5), bounds=WIDE)
    weight = {"a": 1.0, "b": 0.5}
    assert spare(role, weight, wanted) == going
    left = shrunk(role, weight, going, 0).replicas
    assert sum(left[name] * weight[name] for name in left) >= wanted


@pytest.mark.parametrize(("told", "after"), [(1, {"a": 1, "b": 3}), (3, {"a": 3, "b": 1})])
def test_who_is_told_to_go_already_is_not_among_those_that_are_left_to_carry_the_load(told: int, after):
    """Three of the one set serve and one of the other, and three are to carry the load: two would be too full."""
    memory = known(ready=4, wishes=((NOW - 100, 1.5),))
    asked = situation(signals(4, inflight=18, rate=1.0), cheap(3, wanted=told), dear(1, wanted=3))
    assert by_set(ticks(asked, 1, memory=memory)) == after
