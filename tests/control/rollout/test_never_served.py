"""Sets none of whose pods was ever ready: nobody goes back to them, so they neither pile up nor take the place of what is mended."""

from __future__ import annotations

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from tests.control.rollout.halls import Hall

NOW = 1000.0
UNPULLED = tuple(f"unpulled-{number}" for number in range(40))


def dies(name: str, restarts: int, *, never_served: bool = False) -> SetSeen:
    pod = PodSeen(
        name=f"{name}-0",
        uid=name,
        stage=Stage.FAILED,
        reason="Error",
        restarts=restarts,
        node="n",
        since=100.0,
    )
    return SetSeen(name=name, replicas=1, pods=(pod,), never_served=never_served)


@pytest.mark.parametrize(("nodes", "strategy"), [(1, ""), (2, ""), (9, ""), (2, "surge"), (1, "replace")])
@pytest.mark.parametrize("first", ["old", "unpulled-0"])
def test_edit_after_edit_while_nothing_serves_leaves_no_set_more_each(
    nodes: int, strategy: str, first: str
) -> None:
    hall = Hall(nodes, wanted=first, replicas=1, strategy=strategy, lost=frozenset(UNPULLED))
    hall.run(20)
    for name in UNPULLED:
        hall.wanted = name
        hall.run(4)
        assert len(hall.asked) <= 3
        assert ("old" in hall.asked) == (first == "old"), "what served is kept to go back to"
    hall.wanted = "mended"
    assert hall.run(80, lambda rollout: rollout.settled).settled
    assert hall.asked == {"mended": 1}


def test_what_served_comes_back_after_edits_that_did_not() -> None:
    hall = Hall(1, replicas=1, lost=frozenset(UNPULLED))
    hall.run(20, lambda rollout: rollout.settled)
    for name in (*UNPULLED[:3], "broken"):
        hall.wanted = name
        hall.run(8)
    rollout = hall.run(40, lambda rollout: rollout.reason == "RolledBack")
    assert "old" in rollout.message
    hall.run(40)
    assert (hall.asked, hall.ready) == ({"old": 1, "broken": 0}, 1)


def test_a_set_that_fails_does_not_go_for_one_that_failed_before_it() -> None:
    sets = (dies("first", 9, never_served=True), dies("second", 3, never_served=True))
    found = move([Wanted("second", 1)], Serving(sets=sets), Rules(), NOW)
    assert (found.reason, found.failed) == ("DeadlineExceeded", ())
    assert found.message.startswith("second: second-0 ended 3 times")
    assert {one.name: one.replicas for one in found.targets} == {"second": 1, "first": 1}, "both as they are"


def test_of_two_old_sets_the_one_that_served_comes_back() -> None:
    sets = (dies("first", 9, never_served=True), dies("served", 1), dies("third", 3, never_served=True))
    found = move([Wanted("third", 1)], Serving(sets=sets), Rules(), NOW)
    assert found.reason == "RolledBack"
    assert {one.name: one.replicas for one in found.targets} == {"served": 1, "third": 0}


@pytest.mark.parametrize(("serves", "reason"), [(False, "DeadlineExceeded"), (True, "RolledBack")])
def test_one_that_still_loads_is_gone_back_to_once_it_serves(serves: bool, reason: str) -> None:
    stage = Stage.READY if serves else Stage.LOADING
    pod = PodSeen(name="slow-0", uid="s", stage=stage, node="n", since=NOW - 60)
    slow = SetSeen(name="slow", replicas=1, pods=(pod,), never_served=not serves)
    found = move([Wanted("new", 1)], Serving(sets=(slow, dies("new", 3, never_served=True))), Rules(), NOW)
    assert found.reason == reason
    assert {one.name: one.replicas for one in found.targets} == {"slow": 1, "new": int(not serves)}
