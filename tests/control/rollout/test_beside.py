"""A set that is tried beside the one that serves: how many run with the change, and how many without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from plimsoll.control.rollout import Rollout, Rules
from plimsoll.control.rollout.beside import ONLY, Beside, move_beside
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from tests.control.rollout import halls

NOW = 1000.0


def there(name: str, ready: int, replicas: int | None = None) -> SetSeen:
    pods = tuple(PodSeen(name=f"{name}-{n}", uid=f"{name}{n}", stage=Stage.READY) for n in range(ready))
    return SetSeen(name=name, replicas=ready if replicas is None else replicas, pods=pods)


def moved(
    count: int,
    *sets: SetSeen,
    surge: bool,
    total: int = 3,
    verified: bool = False,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> dict[str, int]:
    beside = Beside(tried="b", serves="a", replicas=count, surge=surge and not verified, first=surge)
    rollout = move_beside([Wanted("a", total)], beside, Serving(sets=sets), rules, NOW)
    assert all(target.planned for target in rollout.targets if count or target.name == "a")
    assert rollout.failed == ()
    return {target.name: target.replicas for target in rollout.targets}


@pytest.mark.parametrize(
    ("count", "ready", "surge", "expected"),
    [
        (1, 0, True, {"a": 3, "b": 1}),
        (1, 1, True, {"a": 3, "b": 1}),
        (2, 2, True, {"a": 2, "b": 2}),
        (3, 2, True, {"a": 1, "b": 3}),
        (3, 3, True, {"a": 1, "b": 3}),
        (3, 3, False, {"a": 0, "b": 3}),
        (1, 0, False, {"a": 2, "b": 1}),
        (3, 2, False, {"a": 0, "b": 3}),
        (0, 1, True, {"a": 3, "b": 0}),
    ],
    ids=str,
)
def test_one_comes_first_where_there_is_room_and_one_goes_first_where_there_is_none(
    count: int, ready: int, surge: bool, expected: dict[str, int]
) -> None:
    assert moved(count, there("a", 3), there("b", ready), surge=surge) == expected


@pytest.mark.parametrize("surge", [True, False])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_where_the_tried_set_was_lost_no_more_go_than_one_beyond_those_that_have_come_again(
    count: int, surge: bool
) -> None:
    """A preset that was missing for a while, or a hub that did not answer, has taken the change from all replicas."""
    old, ready = 5, 0
    for _ in range(2 * count):
        after = moved(count, there("a", old), there("b", ready), surge=surge, total=5)
        assert min(old, after["a"]) + ready >= (5 if surge else 4)
        assert after["b"] == count
        old, ready = after["a"], min(count, ready + 1)
    assert moved(count, there("a", old), there("b", ready), surge=surge, total=5)["a"] == 5 - count + surge


@pytest.mark.parametrize("gone", [True, False], ids=["by hand", "with its node"])
@pytest.mark.parametrize("total", [1, 2, 4])
def test_where_the_tried_set_is_lost_as_all_replicas_have_the_change_the_last_one_without_it_stays_until_others_serve(
    total: int, gone: bool
) -> None:
    """While it is verified no further one is wanted; but where one comes first, none has to go before that."""
    old, ready = 1, 0
    for _ in range(2 * total):
        lost = [] if gone and not ready else [there("b", ready, replicas=total)]
        after = moved(total, there("a", old), *lost, surge=True, total=total, verified=True)
        assert (after["a"], after["b"]) == (0 if ready == total else 1, total)
        old, ready = after["a"], min(total, ready + 1)
    assert old == 0
    assert moved(total, there("a", 0), surge=True, total=total, verified=True) == {"a": 0, "b": total}


def test_no_replica_without_the_change_comes_where_some_with_it_are_restarting() -> None:
    assert moved(5, there("a", 0), there("b", 2, replicas=5), surge=False, total=5) == {"a": 0, "b": 5}


@pytest.mark.parametrize("surge", [True, False])
@pytest.mark.parametrize("total", [1, 2, 4])
def test_on_the_way_back_none_goes_before_another_serves_in_its_place(total: int, surge: bool) -> None:
    old, tried = 0, total
    for _ in range(4 * total):
        rules = Rules(alone=not surge)
        after = moved(0, there("a", old), there("b", tried), surge=surge, total=total, rules=rules)
        least = total if surge else total - 1
        assert min(old, after["a"]) + min(tried, after.get("b", 0)) >= least
        assert after["a"] + after.get("b", 0) <= total + surge
        old, tried = after["a"], after.get("b", 0)
        if not tried:
            break
    assert moved(0, there("a", old), SetSeen(name="b", replicas=0), surge=surge, total=total) == {"a": total}


def back(total: int, rules: Rules, *, waited: float) -> Rollout:
    """The way back, for whose first replica there is no room any more: there was when the change was tried, and others have taken it."""
    nowhere = PodSeen(name="a-0", uid="a0", stage=Stage.UNSCHEDULED, message=halls.FULL, created=NOW - waited)
    serving = Serving(sets=(SetSeen(name="a", replicas=1, pods=(nowhere,)), there("b", total)))
    beside = Beside(tried="b", serves="a", replicas=0, surge=True)
    return move_beside([Wanted("a", total)], beside, serving, rules, NOW)


ASKED: Final = Rules()
"""A surge, as the spec asks for it."""
FULL: Final = Rules(surge=0, by_room=True)
"""What the spec leaves to the room in the fleet, where there is none left since the first one came to wait for it."""


@pytest.mark.parametrize(
    ("rules", "waited", "left"),
    [
        (ASKED, 299, 3),
        (ASKED, 301, 2),
        (Rules(by_room=True), 299, 3),
        (Rules(by_room=True), 301, 2),
        (FULL, 299, 3),
        (FULL, 301, 2),
        (Rules(surge=0, replaces=True), 1, 2),
    ],
    ids=str,
)
def test_a_way_back_waits_five_minutes_for_room_whatever_was_asked_of_rollouts_and_then_one_with_the_change_goes_first(
    rules: Rules, waited: float, left: int
) -> None:
    rollout = back(3, rules, waited=waited)
    assert {target.name: target.replicas for target in rollout.targets} == {"a": 1, "b": left}
    assert rollout.first is None
    assert left == 2 or rollout.look_again_seconds == 300 - waited


@pytest.mark.parametrize("rules", [ASKED, FULL, Rules(surge=2), Rules(surge=8)], ids=str)
@pytest.mark.parametrize("total", [2, 3, 5])
def test_on_a_full_fleet_all_go_back_within_five_minutes_each_and_one_is_missing_at_most(
    total: int, rules: Rules
) -> None:
    now, came, tried, old = NOW, dict[int, float](), total, 0
    while tried:
        serves = max(0, min(old, total - tried))
        pods = tuple(
            PodSeen(
                name=f"a-{n}",
                uid=f"a{n}",
                stage=Stage.READY if n < serves else Stage.UNSCHEDULED,
                message="" if n < serves else halls.FULL,
                created=came.setdefault(n, now),
            )
            for n in range(old)
        )
        seen = Serving(sets=(SetSeen(name="a", replicas=old, pods=pods), there("b", tried)))
        beside = Beside(tried="b", serves="a", replicas=0, surge=True)
        after = {
            one.name: one.replicas
            for one in move_beside([Wanted("a", total)], beside, seen, rules, now).targets
        }
        assert serves + after["b"] >= total - 1
        old, tried, now = after["a"], after["b"], now + 15
        assert now - NOW <= total * 330


@pytest.mark.parametrize("rules", [ASKED, Rules(by_room=True), FULL], ids=str)
def test_the_only_replica_goes_back_before_another_serves_only_where_the_user_lets_it(rules: Rules) -> None:
    waits = back(1, rules, waited=3 * 86400)
    assert {target.name: target.replicas for target in waits.targets} == {"a": 1, "b": 1}
    assert waits.first is ONLY
    goes = back(1, replace(rules, alone=True), waited=3 * 86400)
    assert {target.name: target.replicas for target in goes.targets} == {"a": 1, "b": 0}
    assert goes.first is None


@pytest.mark.parametrize("alone", [True, False])
def test_where_a_person_leaves_one_of_two_while_the_other_is_replaced_it_goes_first_only_where_they_let_it(
    alone: bool,
) -> None:
    """One of two may be missing for a moment. The only one may not, though it was no surge when it began."""
    rules = Rules(alone=alone)
    there_and_back = [(1, there("a", 1), there("b", 0, replicas=1)), (0, there("a", 0), there("b", 1))]
    for count, old, tried in there_and_back:
        after = moved(count, old, tried, surge=False, total=1, rules=rules)
        serves = "a" if count else "b"
        assert after[serves] == (0 if alone else 1), after
    serve = there("a", 1), there("b", 1)
    assert moved(1, *serve, surge=False, total=1, rules=rules) == {"a": 0, "b": 1}
    assert moved(0, *serve, surge=False, total=1, rules=rules) == {"a": 1, "b": 0}


def test_what_does_not_serve_with_the_change_goes_back_at_once() -> None:
    dying = tuple(PodSeen(name=f"b-{n}", uid=f"b{n}", stage=Stage.FAILED) for n in range(3))
    assert moved(0, there("a", 0), SetSeen(name="b", replicas=3, pods=dying), surge=True)["b"] == 0


def test_no_refuge_is_taken_in_a_change_that_goes_back() -> None:
    dying = SetSeen(
        name="a", replicas=1, pods=(PodSeen(name="a-0", uid="a0", stage=Stage.FAILED, restarts=9),)
    )
    assert moved(0, dying, there("b", 3), surge=True) == {"a": 1, "b": 3}


def test_what_was_taken_back_is_gone_once_its_pods_are() -> None:
    assert moved(0, there("a", 3), SetSeen(name="b", replicas=0), surge=True) == {"a": 3}


def test_a_tried_set_that_dies_is_no_failure_of_the_plan() -> None:
    dying = SetSeen(
        name="b",
        replicas=1,
        pods=(PodSeen(name="b-0", uid="b0", stage=Stage.FAILED, restarts=9),),
    )
    assert moved(1, there("a", 3), dying, surge=True) == {"a": 3, "b": 1}


def test_replicas_that_are_added_meanwhile_are_added_to_what_serves() -> None:
    assert moved(1, there("a", 3), there("b", 1), surge=False, total=5) == {"a": 4, "b": 1}
