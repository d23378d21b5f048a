"""When replicas go: what a whole window wanted stays, and a step down that has paid is no mistake."""

import pytest

from plimsoll.control.decision import Action
from plimsoll.control.down import regretted
from plimsoll.control.memory import RoleMemory
from plimsoll.control.scaling import LAW
from tests.control.situations import NOW, known, signals, situation, ticks

WINDOW_S = 450.0


@pytest.mark.parametrize(
    ("wished", "left"), [(1.95, 2), (2.0, 2), (2.05, 3)], ids=["below a whole number", "just it", "above it"]
)
def test_as_many_stay_as_carry_what_the_window_wanted_and_no_more(wished: float, left: int):
    calm = situation(signals(3, inflight=5, rate=0.7))
    decision = ticks(calm, 1, memory=known(ready=3, wishes=((NOW - 100, wished),)))
    assert decision.replicas == left
    assert decision.roles[0].action is (Action.DOWN if left < 3 else Action.HOLD)


@pytest.mark.parametrize(
    ("away_s", "before", "after"),
    [
        (0.9 * WINDOW_S, 1.0, 2.0),
        (0.9 * WINDOW_S, 4.0, 4.0),
        (1.1 * WINDOW_S, 1.0, 1.0),
        (1.1 * WINDOW_S, 4.0, 2.0),
    ],
)
def test_a_step_down_is_regretted_where_what_went_was_wanted_again_within_a_window(
    away_s: float, before: float, after: float
):
    memory = RoleMemory(down_at=NOW - away_s, up_at=NOW - 9000, regret=before)
    assert regretted(memory, NOW, WINDOW_S, LAW).regret == after
