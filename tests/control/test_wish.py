"""What stays asked for while the plan holds another number than was decided last."""

from __future__ import annotations

import pytest

from plimsoll.control.decision import Action, RoleDecision, SetWish
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import Bounds
from plimsoll.control.wish import standing


def decided(action: Action, replicas: int, wanted: int) -> RoleDecision:
    wishes = (SetWish(set="a", replicas=replicas),)
    return RoleDecision(
        role="serve", action=action, wishes=wishes, wanted=wanted, reason="LoadRose", message=""
    )


@pytest.mark.parametrize(
    ("before", "role", "wished", "left"),
    [
        (4, decided(Action.HOLD, 1, wanted=1), 3.6, 4),
        (4, decided(Action.HOLD, 1, wanted=1), 1.4, 2),
        (4, decided(Action.HOLD, 1, wanted=1), None, 4),
        (4, decided(Action.UP, 3, wanted=3), 3.6, 4),
        (4, decided(Action.UP, 6, wanted=6), 6.0, 6),
        (4, decided(Action.DOWN, 3, wanted=2), 2.0, 3),
        (2, decided(Action.HOLD, 4, wanted=1), 2.0, 2),
        (2, decided(Action.HOLD, 4, wanted=3), 3.0, 3),
        (2, decided(Action.DOWN, 3, wanted=1), 2.0, 2),
        (0, decided(Action.WAKE, 1, wanted=1), None, 1),
        (1, decided(Action.ZERO, 0, wanted=0), 1.0, 0),
        (9, decided(Action.HOLD, 8, wanted=8), 9.0, 8),
    ],
    ids=[
        "more than the plan got stays asked for",
        "until a whole window asked for less",
        "which nobody knows who has just begun to watch",
        "a smaller step up from the plan takes nothing back",
        "a larger one is taken",
        "fewer are fewer",
        "a step down that the plan has not taken yet stands",
        "unless the load has come back",
        "or goes further from the plan's own number",
        "woken",
        "asleep",
        "never beyond the bounds",
    ],
)
def test_what_was_wished_stands_until_something_else_is_decided(
    before: int, role: RoleDecision, wished: float | None, left: int
) -> None:
    memory = RoleMemory() if wished is None else RoleMemory(wishes=((0.0, wished),))
    assert standing(before, role, memory, Bounds(min=0, max=8)) == left


WEIGHT = {"a": 1.0, "b": 0.25}


def of_two(action: Action, large: int, small: int, wanted: int) -> RoleDecision:
    wishes = (SetWish(set="a", replicas=large), SetWish(set="b", replicas=small))
    return RoleDecision(
        role="serve", action=action, wishes=wishes, wanted=wanted, reason="LoadRose", message=""
    )


@pytest.mark.parametrize(
    ("before", "role", "wished", "left"),
    [
        (10, of_two(Action.HOLD, 2, 4, wanted=5), 4.3, 10),
        (20, of_two(Action.HOLD, 2, 4, wanted=5), 4.3, 12),
        (10, of_two(Action.HOLD, 2, 4, wanted=2), 2.9, 6),
        (4, of_two(Action.HOLD, 2, 4, wanted=3), 3.0, 6),
        (4, of_two(Action.HOLD, 2, 4, wanted=2), 2.0, 5),
    ],
    ids=[
        "what small ones may be needed for stays asked for",
        "and no more than these could be",
        "until a whole window asked for no more than there is",
        "none goes that carries what is wanted",
        "and those that may go are taken to be the largest",
    ],
)
def test_of_sets_that_carry_unlike_loads_what_was_wished_is_reckoned_in_what_they_carry(
    before: int, role: RoleDecision, wished: float, left: int
) -> None:
    memory = RoleMemory(wishes=((0.0, wished),))
    assert standing(before, role, memory, Bounds(min=0, max=20), WEIGHT) == left
