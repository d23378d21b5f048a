"""Replicas that fail for long give their places to a set that serves, where no more may be asked for, and are tried again later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.decision import Action
from plimsoll.control.law import LAW
from plimsoll.control.memory import Blocked, Memory
from plimsoll.control.scaling import decide
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Bounds, Replica, ReplicaState, Room, ServingSet, Situation, Zero
from plimsoll.planning.placing.budgets import Limits
from tests.control.situations import (
    NOW,
    by_set,
    known,
    obeyed,
    replicas,
    serving,
    signals,
    situation,
    watching,
)

BUSY: dict[str, Any] = {"inflight": 60, "waiting": 3000, "rate": 6.0, "kv": 0.97}
"""So many more are wanted, and at once."""
NOBODY = Signals(at=NOW, live=0, replicas=())
FULL = Bounds(min=1, max=4)
LEAD_S = 180.0
BLOCK = Blocked(until=NOW, retry_s=240.0)
LONG_S = LAW.withdraw_s + LEAD_S + 30
"""Without serving: longer than a start and the time after which a wish is taken back."""


def failing(
    count: int, *, for_s: float = LONG_S, first: int = 10, loads: bool = False
) -> tuple[Replica, ...]:
    """Their engines end again and again; `loads`: they are being started once more just now."""
    state = ReplicaState.STARTING if loads else ReplicaState.FAILED
    return tuple(
        replace(one, unready=NOW - for_s, created=NOW - for_s - 10, restarts=5)
        for one in replicas(count, state, age=20, first=first)
    )


def cheap(ready: int, *others: Replica, **more: Any) -> ServingSet:
    return serving(name="a", pool="a", price_per_hour=1.0, replicas=(*replicas(ready), *others), **more)


def dear(ready: int, *others: Replica) -> ServingSet:
    return serving(name="b", pool="b", price_per_hour=4.0, replicas=(*replicas(ready, first=50), *others))


def at_most(*sets: ServingSet, bounds: Bounds = FULL, **more: Any) -> Situation:
    """Under a load that asks for many more than there may be."""
    ready = sum(each.ready for each in sets)
    return situation(signals(ready, **BUSY) if ready else NOBODY, *sets, bounds=bounds, **more)


@pytest.mark.parametrize("loads", [False, True], ids=["waits to be started again", "is started again"])
def test_a_set_that_serves_takes_the_places_of_replicas_that_have_failed_for_long(loads: bool) -> None:
    found = watching(at_most(cheap(0, *failing(3, loads=loads)), dear(1)), 3)
    assert by_set(found[-1]) == {"a": 0, "b": 4}
    (moved,) = [one.roles[0] for one in found if one.roles[0].action is not Action.HOLD]
    assert (moved.action, moved.reason) == (Action.MOVE, "StartFailed")
    assert (
        "3 replicas of a on H100 have failed for 13 minutes or more; 3 of b on H100 in their place"
        in moved.message
    )
    (limit,) = [
        one
        for told in found
        if told.roles[0] is moved
        for one in told.conditions
        if one.type == names.SCALING
    ]
    assert (limit.status, limit.reason) == ("True", "StartFailed")


def test_of_those_that_fail_only_as_many_go_as_the_load_asks_for() -> None:
    asked = situation(signals(2, inflight=50, rate=3.5), cheap(1, *failing(4)), dear(1), bounds=Bounds(max=6))
    found = watching(asked, 3)
    assert [one.roles[0].wanted for one in found] == [3, 3, 3]
    assert by_set(found[0]) == {"a": 5, "b": 1}, "more has to be wanted for as long as ever"
    assert by_set(found[-1]) == {"a": 4, "b": 2}


@pytest.mark.parametrize(
    "asked",
    [
        at_most(cheap(0, *failing(3, for_s=LONG_S - 120)), dear(1)),
        at_most(cheap(0, *failing(2, for_s=LONG_S - 120), *replicas(1, ReplicaState.STARTING, age=9000, first=9)), dear(1)),
        at_most(cheap(0, *failing(3)), dear(1), busy="a rollout"),
        at_most(cheap(1, *failing(3))),
        at_most(cheap(0, *failing(2)), dear(0, *failing(2, first=60))),
        situation(signals(1, inflight=5, rate=0.5), cheap(0, *failing(3)), dear(1), bounds=Bounds(min=4, max=4)),
    ],
    ids=[
        "not for so long",
        "one loads for the first time, however long",
        "a rollout moves replicas",
        "there is no other set",
        "the other one fails too",
        "those that serve carry the load",
    ],
)  # fmt: skip
def test_else_they_keep_their_places(asked: Situation) -> None:
    told = {each.name: each.told for each in asked.roles[0].sets}
    assert all(by_set(one) == told for one in watching(asked, 4))


@pytest.mark.parametrize(
    ("room", "after", "limit"),
    [
        (Room(gpus={"a": 9.0, "b": 0.0}), {"a": 3, "b": 1}, "GPUsUnavailable"),
        (Room(gpus={"a": 9.0, "b": 2.0}), {"a": 1, "b": 3}, "GPUsUnavailable"),
        (Room(limits=Limits(replicas=1)), {"a": 2, "b": 2}, "BudgetExhausted"),
        (Room(limits=Limits(replicas=0)), {"a": 3, "b": 1}, "BudgetExhausted"),
    ],
    ids=["no GPUs", "GPUs for two", "a budget for one", "a budget for none"],
)
def test_no_more_go_than_the_other_set_has_room_for(room: Room, after: dict[str, int], limit: str) -> None:
    first, *_ = watching(at_most(cheap(0, *failing(3)), dear(1)), 3, room=room)
    assert by_set(first) == after
    (told,) = [one for one in first.conditions if one.type == names.SCALING]
    assert told.reason in {limit, "StartFailed"}


def test_free_places_are_taken_before_those_of_replicas_that_fail() -> None:
    found = watching(at_most(cheap(0, *failing(3)), dear(1), bounds=Bounds(min=1, max=6)), 6)
    steps = [by_set(one) for one in found if one.roles[0].action is not Action.HOLD]
    assert steps == [{"a": 3, "b": 3}, {"a": 0, "b": 6}]


@pytest.mark.parametrize("others", [(), (dear(1),)], ids=["the only set", "beside one that is full"])
def test_a_set_of_which_others_came_to_serve_since_grows_whatever_has_failed(
    others: tuple[ServingSet, ...],
) -> None:
    lost = replace(failing(1)[0], created=NOW - 9000)
    asked = at_most(cheap(8, lost), *others, bounds=Bounds(min=1, max=40))
    found = watching(asked, 3, room=Room(gpus={"a": 50.0, "b": 0.0}))
    assert by_set(found[-1])["a"] > 9


def test_where_nothing_serves_another_set_is_tried_in_the_place_of_what_has_failed_for_long() -> None:
    found = watching(at_most(cheap(0, *failing(2)), dear(0), bounds=Bounds(min=2, max=4)), 2)[-1]
    assert by_set(found) == {"a": 0, "b": 2}
    young = watching(at_most(cheap(0, *failing(2, for_s=300)), dear(0), bounds=Bounds(min=2, max=4)), 2)[-1]
    assert by_set(young) == {"a": 2, "b": 0}


def grows_again(memory: Memory, waited_s: float) -> bool:
    """Whether the cheaper set is asked for again under more load, where there are places for more."""
    now, asked = NOW + waited_s, at_most(cheap(0), dear(4), bounds=Bounds(min=1, max=20))
    memory = Memory(roles={"serve": replace(memory.of("serve"), seen=now - 30)})
    for at in (now - 15, now):
        decision = decide(now=at, situation=asked, memory=memory)
        asked, memory = obeyed(asked, decision), decision.memory
    return by_set(decision)["a"] > 0


def test_the_set_is_asked_for_again_after_a_while() -> None:
    memory = watching(at_most(cheap(0, *failing(3)), dear(1)), 3)[-1].memory
    assert [(name, one.retry_s) for name, one in memory.of("serve").blocked.items()] == [("a fails", 60.0)]
    assert not grows_again(memory, 45.0)
    assert grows_again(memory, 120.0)


def test_it_comes_back_with_one_replica_and_until_that_serves_with_no_more() -> None:
    memory = known(ready=1, blocked={"a fails": replace(BLOCK, until=NOW - 1)})
    asked = at_most(cheap(0), dear(1), bounds=Bounds(min=1, max=20))
    first = watching(asked, 1, memory=memory)[-1]
    assert by_set(first) == {"a": 1, "b": 4}
    starts = replicas(1, ReplicaState.STARTING, age=10, first=9)
    further = watching(
        at_most(cheap(0, *starts), dear(4), bounds=Bounds(min=1, max=20)), 1, memory=first.memory
    )
    assert by_set(further[-1])["a"] == 1
    assert by_set(further[-1])["b"] > 4
    serves = replace(replicas(1)[0], since=NOW + 10)
    proven = watching(
        at_most(cheap(0, serves), dear(4), bounds=Bounds(min=1, max=20)), 1, memory=first.memory
    )
    assert by_set(proven[-1])["a"] > 1


def failed_again(times: int) -> list[float]:
    """For how long the set is left alone after each time that it failed."""
    memory, found = known(ready=1), []
    for _ in range(times):
        asked = at_most(cheap(0, *failing(3)), dear(1))
        (retry,) = (
            one.retry_s for one in watching(asked, 3, memory=memory)[-1].memory.of("serve").blocked.values()
        )
        found.append(retry)
        blocked = watching(asked, 3, memory=memory)[-1].memory.of("serve").blocked
        past = {name: replace(one, until=NOW - 1) for name, one in blocked.items()}
        memory = known(ready=1, blocked=past)
    return found


def test_each_time_that_it_fails_again_it_is_left_alone_for_twice_as_long_up_to_a_day() -> None:
    assert failed_again(13) == [*(60 * 2**times for times in range(11)), 86_400, 86_400]


@pytest.mark.parametrize(
    ("served_s", "forgotten"),
    [(NOW - LAW.withdraw_s, True), (NOW - LAW.withdraw_s + 30, False), (NOW - 5000, False)],
    ids=["for long", "only just", "since before it failed"],
)
def test_one_that_has_served_well_since_makes_the_next_failure_a_first_one(
    served_s: float, forgotten: bool
) -> None:
    blocked = {"a fails": replace(BLOCK, until=NOW - 700 + BLOCK.retry_s)}
    serves = replace(replicas(1)[0], since=served_s)
    memory = known(ready=2, blocked=blocked)
    asked = situation(signals(2, inflight=20, rate=2.0), cheap(0, serves), dear(1))
    left = watching(asked, 1, memory=memory)[-1].memory.of("serve").blocked
    assert (left == {}) is forgotten


def test_while_the_plan_is_behind_the_same_is_asked_for_again_and_counts_once() -> None:
    asked, memory = at_most(cheap(0, *failing(3)), dear(1)), known(ready=1)
    for tick in range(4):
        decision = decide(now=NOW + 15 * tick, situation=asked, memory=memory)
        memory = decision.memory
    assert by_set(decision) == {"a": 0, "b": 4}
    assert [one.retry_s for one in memory.of("serve").blocked.values()] == [60.0]


@pytest.mark.parametrize(
    ("others", "limit"),
    [((), "AtMax"), (failing(1, for_s=5), "StartFailed")],
    ids=["none of it", "some of it"],
)
def test_a_set_that_is_left_alone_is_the_reason_where_it_holds_places(
    others: tuple[Replica, ...], limit: str
) -> None:
    memory = known(ready=2, blocked={"a fails": replace(BLOCK, until=NOW + 500)})
    asked = at_most(cheap(1, *others), dear(1), bounds=Bounds(min=1, max=2 + len(others)))
    assert watching(asked, 3, memory=memory)[-1].roles[0].reason == limit


def test_where_the_other_set_fails_too_it_is_told_that_they_do() -> None:
    memory = known(ready=1, blocked={"a fails": replace(BLOCK, until=NOW + 500)})
    asked = at_most(cheap(1), dear(0, *failing(1, for_s=60)), bounds=Bounds(min=1, max=9))
    assert watching(asked, 3, memory=memory)[-1].roles[0].reason == "StartFailed"


def test_a_set_that_was_left_alone_grows_again_once_it_is_the_only_one() -> None:
    memory = known(ready=6, blocked={"a fails": replace(BLOCK, until=NOW + 500)})
    found = watching(at_most(cheap(6), bounds=Bounds(min=1, max=40)), 3, memory=memory)[-1]
    assert by_set(found)["a"] > 6
    assert found.memory.of("serve").blocked == {}


def test_one_that_serves_for_a_moment_at_each_wave_of_load_is_tried_more_and_more_seldom() -> None:
    """Of a set that would be asked for first at each of a day's waves, as it is the cheaper one."""
    memory, tries = known(ready=1).of("serve"), 0
    for wave in range(24):
        now = NOW + 3600 * wave
        block = memory.blocked.get("a fails")
        if block is not None and now < block.until:
            continue
        tries += 1
        for at, one in (
            (now, replace(replicas(1)[0], since=now - 30, created=now - 60)),
            (now + 900, replace(failing(1)[0], since=now + 60, unready=now + 60, created=now - 60)),
        ):
            asked = at_most(cheap(0, one), dear(1), bounds=Bounds(min=1, max=2))
            looked = replace(memory, seen=at - 15, over_since=None)
            for tick in range(3):
                decision = decide(now=at + 15 * tick, situation=asked, memory=Memory(roles={"serve": looked}))
                looked, asked = decision.memory.of("serve"), obeyed(asked, decision)
            memory = looked
    assert by_set(decision) == {"a": 0, "b": 2}
    assert tries <= 10


def test_a_set_that_is_left_alone_is_tried_all_the_same_where_no_other_has_room_and_a_place_is_free() -> None:
    memory = known(ready=1, blocked={"a fails": replace(BLOCK, until=NOW + 50_000, retry_s=60_000.0)})
    asked = at_most(cheap(0), dear(1), bounds=Bounds(min=1, max=9))
    found = watching(asked, 6, memory=memory, room=Room(gpus={"a": 9.0, "b": 0.0}))
    assert by_set(found[-1]) == {"a": 1, "b": 1}, "one, and no more before that one serves"
    roomy = watching(asked, 6, memory=memory, room=Room(gpus={"a": 9.0, "b": 9.0}))
    assert by_set(roomy[-1])["a"] == 0


WOKEN = situation(NOBODY, cheap(0), dear(0), bounds=Bounds(min=0, max=4), zero=Zero(waiting=3.0))


@pytest.mark.parametrize("left", ["a fails", "a"], ids=["it failed", "it found no GPUs"])
@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (WOKEN, 1),
        (situation(signals(1, inflight=5, rate=0.5), cheap(0), dear(1), bounds=Bounds(min=3, max=4)), 2),
        (situation(signals(1), cheap(0), dear(1), bounds=Bounds(min=3, max=3, fixed=3)), 2),
    ],
    ids=["to wake", "for the minimum", "for a number that a person set"],
)
def test_what_is_asked_for_without_a_look_at_the_load_spares_a_set_that_is_left_alone_too(
    asked: Situation, more: int, left: str
) -> None:
    """Else a deployment that wakes waits for replicas that have failed all day, beside GPUs of another set that are free."""
    memory = known(ready=0, blocked={left: replace(BLOCK, until=NOW + 50_000, retry_s=60_000.0)})
    dear_before = asked.roles[0].sets[1].told
    for room, after in (
        (9.0, {"a": 0, "b": dear_before + more}),
        (0.0, {"a": more, "b": dear_before}),
    ):
        free = Room(gpus={"a": 9.0, "b": room})
        assert by_set(watching(asked, 1, memory=memory, room=free)[-1]) == after


def test_a_long_absence_of_the_operator_makes_no_set_wait_anew() -> None:
    asleep_s = LAW.jump_s + 100
    block = replace(BLOCK, until=NOW + 500, retry_s=80_000.0)
    memory = known(ready=1, seen=NOW - asleep_s, blocked={"a fails": block})
    left = watching(at_most(cheap(0), dear(1)), 1, memory=memory)[-1].memory.of("serve").blocked
    assert left == {"a fails": block}
