"""Replicas that the API server lets nobody make, for a quota or a policy: nobody counts on them, and whatever else serves stays."""

from __future__ import annotations

import pytest

from plimsoll import names
from plimsoll.control.demand import load_of
from plimsoll.control.memory import RoleMemory
from plimsoll.control.pools import shrunk
from plimsoll.control.scaling import LAW
from plimsoll.control.situation import Role, ServingSet
from tests.control.situations import NOW, WIDE, replicas, serving, signals, situation, ticks

BUSY = signals(2, inflight=60, waiting=30, rate=6.0, kv=0.97)


def refused(told: int = 3, **more: object) -> ServingSet:
    """Two that serve; further ones were asked for and cannot be made."""
    return serving(2, **{"wanted": told, "refused": True, "price_per_hour": 1.0, **more})


def other(ready: int) -> ServingSet:
    return serving(
        ready, name="set-b", pool="l4", price_per_hour=9.0, replicas=replicas(ready, first=10), wanted=ready
    )


@pytest.mark.parametrize(("cannot", "counted"), [(False, 5), (True, 2)])
def test_what_cannot_be_made_is_not_on_its_way(cannot: bool, counted: int) -> None:
    role = Role(sets=(refused(5, refused=cannot),), signals=signals(2), bounds=WIDE)
    load = load_of(role, RoleMemory(), now=NOW, lead_s=180.0, law=LAW)
    assert load.supply.counted == counted


def test_it_is_told_that_fewer_are_there_than_wanted_and_no_more_are_asked_for() -> None:
    decision = ticks(situation(BUSY, refused(9)), 40)
    assert decision.replicas == 9
    (told,) = [one for one in decision.conditions if one.type == names.SCALING]
    assert (told.status, told.reason) == ("True", "StartFailed")
    assert "2 can be had" in told.message


def test_one_that_was_refused_a_moment_ago_and_lacks_none_grows() -> None:
    assert ticks(situation(BUSY, refused(2)), 3).replicas > 2


def test_another_set_is_asked_in_its_place() -> None:
    decision = ticks(situation(BUSY, refused(9), other(0)), 3)
    wished = {wish.set: wish.replicas for wish in decision.wishes}
    assert wished["set-a"] == 9
    assert wished["set-b"] > 0


@pytest.mark.parametrize(
    ("going", "left"),
    [(1, (2, 2)), (2, (2, 1)), (3, (2, 0))],
    ids=["the one that cannot be made", "then the dearest", "then the next of those"],
)
def test_what_cannot_be_made_goes_before_what_serves(going: int, left: tuple[int, int]) -> None:
    role = Role(sets=(refused(3), other(2)), signals=signals(4), bounds=WIDE)
    found = shrunk(role, {"set-a": 1.0, "set-b": 1.0}, going, 1).replicas
    assert (found["set-a"], found["set-b"]) == left
