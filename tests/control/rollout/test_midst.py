"""What may happen in the midst of a rollout, at each of its states: it ends, and nobody serves less than may be missing meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.rules import PLACE_SECONDS
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from tests.control.rollout.halls import DEADLINE, FULL, Hall

MOMENTS = (0, 1, 8, 14, 19)
"""Turns after the first edit: nothing has come yet; the first loads; one, two of three have moved; the last comes."""
CANARY = {"percents": (34,), "hold_seconds": 120}


def rules(**asked: Any) -> Rules:
    return Rules(deadline_seconds=DEADLINE, **asked)


STATES: dict[str, Callable[[], Hall]] = {
    "a surge": lambda: Hall(4),
    "a surge of two": lambda: Hall(6, strategy="surge", rules=rules(surge=2)),
    "no room": lambda: Hall(3),
    "replace": lambda: Hall(4, strategy="replace"),
    "a canary": lambda: Hall(4, rules=rules(**CANARY)),
    "a canary without room": lambda: Hall(3, rules=rules(**CANARY)),
    "a quota without room": lambda: Hall(6, quota=3),
    "by hand": lambda: Hall(4, rules=rules(automatic=False)),
}


def becomes(**asked: Any) -> Callable[[Hall], None]:
    return lambda hall: hall.__dict__.update(asked)


def ruled(**asked: Any) -> Callable[[Hall], None]:
    def change(hall: Hall) -> None:
        hall.rules = replace(hall.rules, **asked)

    return change


EVENTS: dict[str, Callable[[Hall], None]] = {
    "nothing": becomes(),
    "it is edited back": becomes(wanted="old"),
    "it is edited again": becomes(wanted="third"),
    "it is edited to what dies": becomes(wanted="worse"),
    "nobody is wanted": becomes(replicas=0),
    "fewer than the surge": becomes(replicas=1),
    "fewer": becomes(replicas=2),
    "more than there are nodes": becomes(replicas=9, strategy=""),
    "back, and fewer": becomes(wanted="old", replicas=1),
    "again, and more": becomes(wanted="third", replicas=5),
    "none may surge": becomes(strategy="replace"),
    "a canary first": ruled(**CANARY),
    "no canary": ruled(percents=()),
    "a node goes": becomes(down=frozenset({0})),
    "a node goes, and it is edited again": becomes(down=frozenset({0}), wanted="third"),
    "all nodes go": lambda hall: becomes(down=frozenset(range(hall.nodes)))(hall),
    "the quota is lifted": becomes(quota=100),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_whatever_happens_in_the_midst_of_it_it_ends(state: str, event: str) -> None:
    begun = STATES[state]()
    begun.run(40, lambda rollout: rollout.settled)
    assert begun.ready == 3
    begun.wanted = "new"
    for moment in range(max(MOMENTS) + 1):
        if moment in MOMENTS:
            hall = begun.copy()
            EVENTS[event](hall)
            ends(hall)
        begun.turn()
        begun.pass_time()


def ends(hall: Hall) -> None:
    before, held = hall.ready, sum(hall.asked.values())
    hall.least, hall.most = 10**6, 0
    total = min(hall.total, hall.quota)
    if total < hall.total:
        return  # Who asks for more than the quota lets in is told so, and waits.
    hall.run(120, lambda rollout: rollout.settled)
    if hall.wanted in hall.broken:
        kept = {name: count for name, count in hall.asked.items() if name not in hall.broken}
        # Of what was left by hand nothing is taken back.
        assert sum(kept.values()) == total or not hall.rules.automatic
    else:
        assert {name: count for name, count in hall.asked.items() if count} == (
            {hall.wanted: total} if total else {}
        )
        assert hall.ready == total
    room = hall.nodes - len(hall.down) > max(before, total) and hall.quota > total
    missing = 0 if room and hall.strategy != "replace" else 1
    assert hall.least >= min(before, total) - missing - len(hall.down)
    assert hall.most <= max(held, total + hall.rules.surge)


def pods(name: str, *stages: Stage, created: float = 0.0) -> tuple[PodSeen, ...]:
    return tuple(
        PodSeen(name=f"{name}-{n}", uid=f"{name}-{n}", stage=stage, node="n", created=created)
        for n, stage in enumerate(stages)
    )


def shown(name: str, *stages: Stage, **others: Any) -> SetSeen:
    return SetSeen(name=name, replicas=len(stages), pods=pods(name, *stages), **others)


def numbers(wanted: Wanted, rules: Rules, *sets: SetSeen, now: float = 10**6) -> dict[str, int]:
    return {one.name: one.replicas for one in move([wanted], Serving(sets=sets), rules, now).targets}


def test_a_second_edit_takes_what_loads_and_not_what_serves() -> None:
    """The set of the first edit has most of the replicas by then, but not most of those that serve."""
    first = shown("first", Stage.READY, Stage.READY, Stage.LOADING)
    found = numbers(Wanted("second", 3), Rules(), shown("old", Stage.READY), first)
    assert found == {"second": 0, "first": 2, "old": 1}, "and one comes once that has gone"


def test_a_rollback_of_a_second_edit_keeps_all_that_serve() -> None:
    first = shown("first", Stage.READY, Stage.READY, Stage.LOADING)
    dead = shown("second", Stage.FAILED, failed="it died")
    found = numbers(Wanted("second", 3), Rules(), shown("old", Stage.READY), first, dead)
    assert found == {"first": 2, "old": 1, "second": 0}


@pytest.mark.parametrize("stage", [Stage.UNSCHEDULED, Stage.GATED])
def test_a_surge_that_was_left_to_the_room_there_is_ends_when_it_finds_none(stage: Stage) -> None:
    """More replicas are asked for in the midst of it than the fleet holds: the further one waits for what only an old one gives."""
    old = shown("old", Stage.READY, Stage.READY, Stage.READY)
    new = replace(shown("new", Stage.READY), replicas=2)
    at = 10**6 - PLACE_SECONDS
    for waits, left in ((at + 1, 3), (at, 2)):
        waits_for_room = PodSeen(name="w", uid="w", stage=stage, message=FULL, created=waits, since=waits)
        waiting = (*new.pods, waits_for_room)
        sets = (old, replace(new, pods=waiting))
        assert numbers(Wanted("new", 4), Rules(surge=0, by_room=True), *sets) == {"new": 2, "old": left}
    again = move([Wanted("new", 4)], Serving(sets=sets), Rules(surge=0, by_room=True), 10**6 - 7)
    assert again.look_again_seconds == 7


def test_the_only_replica_of_a_full_cluster_comes_back_when_the_new_one_dies() -> None:
    """It went first, as there was no room for another beside it."""
    hall = Hall(1, replicas=1)
    hall.run(20, lambda rollout: rollout.settled)
    hall.wanted = "broken"
    rollout = hall.run(40, lambda rollout: rollout.reason == "RolledBack")
    assert "old comes back" in rollout.message, "it is asked for, and none of it serves yet"
    rollout = hall.run(40)
    assert (hall.asked, hall.ready, rollout.reason) == ({"old": 1, "broken": 0}, 1, "RolledBack")
    assert "old serves again" in rollout.message
    hall.wanted = "new"
    said = []
    while not (rollout := hall.turn()).settled:
        said.append(rollout.reason)
        hall.pass_time()
    assert set(said) == {"RollingOut"}
    assert hall.asked == {"new": 1}, "and once the new one has served nothing else is kept"


def test_nothing_is_kept_to_go_back_to_where_nobody_is_wanted() -> None:
    assert numbers(Wanted("new", 0), Rules(), SetSeen(name="old", replicas=0)) == {"new": 0}


def test_a_quota_that_refuses_a_surge_is_as_full_as_nodes_are() -> None:
    old = shown("old", Stage.READY, Stage.READY)
    refused = SetSeen(name="new", replicas=1, refused="exceeded quota: gpus")
    assert numbers(Wanted("new", 2), Rules(by_room=True), old, refused) == {"new": 1, "old": 1}
    assert numbers(Wanted("new", 2), Rules(), old, refused) == {"new": 1, "old": 2}, "who wants it waits"


@pytest.mark.parametrize("surge", [2, 3, 8])
def test_a_quota_that_refuses_all_of_a_large_surge_keeps_no_rollout_back(surge: int) -> None:
    """Nodes would have room for it. What is left of it after those that were refused would be refused too."""
    hall = Hall(9, replicas=2, quota=2, strategy="", rules=Rules(surge=surge))
    hall.run(20, lambda rollout: rollout.settled)
    hall.wanted, hall.least = "new", hall.ready
    hall.run(80, lambda rollout: rollout.settled)
    assert hall.asked == {"new": 2}
    assert hall.least >= 1


def test_a_refusal_that_is_over_takes_nothing_that_serves() -> None:
    """It is told for a moment longer, while the pod that was made by then looks for a node."""
    old = shown("old", Stage.READY, Stage.READY)
    for stage in (Stage.UNSCHEDULED, Stage.LOADING):
        made = PodSeen(name="n", uid="n", stage=stage, created=10**6, since=10**6)
        new = SetSeen(name="new", replicas=1, refused="exceeded quota: gpus", pods=(made,))
        assert numbers(Wanted("new", 2), Rules(by_room=True), old, new) == {"new": 1, "old": 2}
