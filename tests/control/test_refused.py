"""Replicas that the API server lets nobody make, for a quota or a policy: nobody counts on them, and whatever else serves stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.decision import Action, Decision
from plimsoll.control.demand import load_of
from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.pools import shrunk
from plimsoll.control.situation import Bounds, ReplicaState, Role, ServingSet, Situation
from plimsoll.planning import codec
from tests.control.situations import (
    NOW,
    WIDE,
    by_set,
    known,
    replicas,
    serving,
    signals,
    situation,
    ticks,
    watching,
)

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


FULL = Bounds(min=1, max=6)
FLOOD = signals(3, inflight=60, waiting=3000, rate=6.0, kv=0.97)
LONG_S = LAW.withdraw_s + 360
"""Longer than a start and the time after which a wish is taken back."""


def watched(asked: Situation, seconds: float, **more: Any) -> list[Decision]:
    return watching(asked, int(seconds / LAW.tick_s), **more)


def test_replicas_that_nobody_may_make_for_long_give_their_places_to_a_set_that_has_room() -> None:
    found = watched(situation(FLOOD, refused(5), other(1), bounds=FULL), LONG_S)
    assert by_set(found[-1]) == {"set-a": 2, "set-b": 4}
    (at,) = [at for at, one in enumerate(found) if one.roles[0].action is not Action.HOLD]
    assert at * LAW.tick_s >= LAW.withdraw_s
    moved = found[at].roles[0]
    assert (moved.action, moved.reason) == (Action.MOVE, "StartFailed")
    assert "3 replicas of set-a on H100 could not be made for 13 minutes or more; 3 of set-b" in moved.message
    assert list(found[-1].memory.of("serve").blocked) == ["set-a fails"], "it is tried again later and later"
    assert found[-1].memory.of("serve").unmade_since == {}


def test_what_cannot_be_made_and_what_fails_are_told_of_together() -> None:
    fails = replace(replicas(1, ReplicaState.FAILED, first=20)[0], unready=NOW - LONG_S, created=NOW - LONG_S)
    there = refused(5, replicas=(*replicas(2), fails))
    memory = known(ready=3, unmade_since={"set-a": NOW - LONG_S})
    found = watched(situation(FLOOD, there, other(1), bounds=FULL), 45, memory=memory)
    assert by_set(found[-1]) == {"set-a": 2, "set-b": 4}
    (said,) = [one.roles[0].message for one in found if one.roles[0].action is Action.MOVE]
    assert "3 replicas of set-a on H100 have failed or could not be made for 13 minutes or more" in said


@pytest.mark.parametrize(
    "asked",
    [
        situation(FLOOD, refused(6), bounds=FULL),
        situation(FLOOD, refused(5), other(1), bounds=FULL, busy="a rollout"),
        situation(signals(3, inflight=5, rate=0.5), refused(3), other(1), bounds=Bounds(min=4, max=4)),
    ],
    ids=["there is no other set", "a rollout moves replicas", "those that serve carry the load"],
)
def test_else_what_cannot_be_made_keeps_its_place(asked: Situation) -> None:
    told = {each.name: each.told for each in asked.roles[0].sets}
    assert all(by_set(one) == told for one in watched(asked, LONG_S))


@pytest.mark.parametrize("between", ["one look without a refusal", "a jump of the clock"])
def test_how_long_replicas_could_not_be_made_is_counted_anew_after(between: str) -> None:
    asked = situation(FLOOD, refused(5), other(1), bounds=FULL)
    before, then = watched(asked, LAW.withdraw_s), NOW + LAW.withdraw_s
    memory = before[-1].memory
    if between == "a jump of the clock":
        then += LAW.jump_s + 900
    else:
        could = situation(FLOOD, refused(5, refused=False), other(1), bounds=FULL)
        memory = watched(could, LAW.tick_s, memory=memory, begin=then)[-1].memory
        then += LAW.tick_s
    again = watched(asked, LAW.withdraw_s, memory=memory, begin=then)
    assert by_set(again[-1]) == {"set-a": 5, "set-b": 1}
    found = watched(asked, LONG_S, memory=memory, begin=then)
    assert by_set(found[-1]) == {"set-a": 2, "set-b": 4}


def test_of_an_only_set_nothing_is_noted_that_an_older_release_could_not_read() -> None:
    found = watched(situation(FLOOD, refused(6), bounds=FULL), 60)
    assert "unmade_since" not in codec.encode(found[-1].memory)["roles"]["serve"]


def test_a_memory_from_before_such_times_were_noted_is_read() -> None:
    written = codec.encode(known())
    assert "unmade_since" not in written["roles"]["serve"]
    assert codec.decode(Memory, written) == known()
