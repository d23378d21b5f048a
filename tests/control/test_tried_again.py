"""Replicas that fail beside others of their set that serve: a further one is tried later and later, and once it serves as many come as are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.decision import Decision
from plimsoll.control.law import LAW
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Bounds, Replica, ReplicaState, Room, ServingSet, Situation
from tests.control.situations import NOW, by_set, known, replicas, serving, signals, situation, watching

LONG_S = LAW.withdraw_s + LAW.start_first_s
"""For so long a replica fails before it makes way for others, or a further one is tried."""
DAY = 86_400
BUSY: dict[str, Any] = {"inflight": 60, "waiting": 3000, "rate": 6.0, "kv": 0.97}


def failing(count: int = 1, *, for_s: float = LONG_S, first: int = 50) -> tuple[Replica, ...]:
    return tuple(
        replace(one, unready=NOW - for_s, created=NOW - for_s - 10)
        for one in replicas(count, ReplicaState.FAILED, age=20, first=first)
    )


def under_load(*others: Replica, ready: int = 4, sets: Sequence[ServingSet] = (), **more: Any) -> Situation:
    """Some have served for days, and under load many more are wanted."""
    asked = serving(name="a", pool="a", replicas=(*replicas(ready, age=5 * DAY), *others), **more)
    return situation(signals(ready, **BUSY), asked, *sets, bounds=Bounds(min=1, max=40))


def after(asked: Situation, count: int = 20, **more: Any) -> Decision:
    return watching(asked, count, **more)[-1]


def test_one_further_comes_beside_one_that_has_failed_for_long_and_no_second_before_that_one_serves() -> None:
    """Its node may be broken, or the only one that cannot pull the image; for a broken image it is one replica too many."""
    assert by_set(after(under_load(*failing(for_s=3600)))) == {"a": 6}
    starts = replicas(1, ReplicaState.STARTING, age=0, first=60)
    assert by_set(after(under_load(*failing(for_s=3600), *starts))) == {"a": 6}
    serves = tuple(replace(one, state=ReplicaState.READY) for one in starts)
    assert by_set(after(under_load(*failing(for_s=3600), *serves)))["a"] > 7


@pytest.mark.parametrize(
    "asked",
    [
        under_load(*failing(for_s=LONG_S - 320)),
        under_load(*failing(for_s=3600), wanted=6, refused=True),
        under_load(*failing(for_s=3600), ready=0),
        under_load(*failing(for_s=3600), *failing(first=60)),
        under_load(*failing(5, for_s=4 * DAY)),
        replace(under_load(*failing(for_s=3600), wanted=4), busy="a rollout is under way"),
    ],
    ids=[
        "not for long yet",
        "no more can be made",
        "none of the set serves",
        "the one that was tried fails too",
        "more fail than serve",
        "it may fail by what a rollout brings",
    ],
)  # fmt: skip
def test_else_none_does(asked: Situation) -> None:
    told = {each.name: each.told for each in asked.roles[0].sets}
    found = after(asked)
    assert by_set(found) == told
    if asked.roles[0].signals.live:
        assert [one.reason for one in found.conditions if one.type == names.SCALING] == ["StartFailed"]


@pytest.mark.parametrize(("served", "comes"), [(False, False), (True, True)], ids=["never served", "served"])
def test_one_whose_engine_ends_again_and_again_fails_while_it_loads_once_more_too(
    served: bool, comes: bool
) -> None:
    """It is in each stage for a moment only, and at the first look that found it loading as many came as were wanted."""
    loads = [
        replace(one, state=ReplicaState.STARTING, restarts=3, served=served) for one in failing(for_s=400)
    ]
    assert (by_set(after(under_load(*loads), 3))["a"] > 5) == comes


def test_each_that_fails_too_is_followed_by_the_next_after_twice_as_long_up_to_a_day() -> None:
    memory, fail, tries = known(ready=12), list(failing()), list[float]()
    for tick in range(0, 5 * DAY, 60):
        now = NOW + tick
        asked = under_load(*fail, ready=12)
        decision = decide(now=now, situation=asked, memory=memory)
        memory = decision.memory
        if decision.replicas > 12 + len(fail):
            tries.append(now)
            fail += (replace(failing()[0], id=f"try-{tick}", unready=now, created=now),)
            assert decision.replicas == 12 + len(fail)
    waits = [later - before for before, later in pairwise(tries)]
    expected = [min(DAY, 2 ** (n + 1) * LONG_S) for n in range(len(waits))]
    assert waits == [pytest.approx(one, abs=121) for one in expected]
    assert waits[-1] == pytest.approx(DAY, abs=121)


@pytest.mark.parametrize(("free", "a", "b"), [(9.0, 5, 4), (0.0, 6, 0)], ids=["it has room", "it has none"])
def test_another_set_that_has_room_comes_first(free: float, a: int, b: int) -> None:
    dear = serving(name="b", pool="b", replicas=(), price_per_hour=9.0)
    asked = under_load(*failing(for_s=3600), price_per_hour=1.0, sets=[dear])
    found = after(asked, 3, room=Room(gpus={"a": 50.0, "b": free}))
    assert by_set(found)["a"] == a
    assert by_set(found)["b"] >= b
