"""Steps that are taken back: what was asked for stays for a while, and who let go too soon waits longer the next time."""

from dataclasses import replace
from itertools import pairwise

import pytest

from plimsoll.control.decision import Action
from plimsoll.control.down import window_s
from plimsoll.control.law import LAW
from plimsoll.control.memory import RoleMemory
from tests.control.driving import Story
from tests.control.load_model import Cluster
from tests.control.situations import NOW, after, known, serving, signals, situation

LEAD_S = 300.0
SLOW = {"starts": (LEAD_S,) * 10}
"""Starts of a large model, all alike."""
STAYS_S = LAW.up_starts * LEAD_S
LITTLE = signals(3, inflight=5, rate=0.7)
MUCH = signals(2, inflight=30, rate=6.0, kv=0.9)


@pytest.mark.parametrize(
    ("ago_s", "set_s", "goes"),
    [(STAYS_S - 15, None, False), (STAYS_S + 15, None, True), (STAYS_S - 15, 60.0, True)],
    ids=["before two start-ups", "after two", "somebody set the window"],
)
def test_what_was_asked_for_stays_for_two_start_ups(ago_s: float, set_s: float | None, goes: bool):
    memory = known(ready=3, up_at=NOW - ago_s, wishes=((NOW - 10, 1.0),), **SLOW)
    decision = after(replace(situation(LITTLE, serving(3)), down_window_s=set_s), memory=memory)
    assert (decision.replicas < 3) is goes
    assert ("of 10 minutes since the last step up" in decision.roles[0].message) is not goes


@pytest.mark.parametrize(
    ("down_s", "up_s", "regrets"),
    [
        (STAYS_S - 60, None, 1.0),
        (STAYS_S + 60, None, 0.0),
        (None, None, 0.0),
        (STAYS_S - 60, STAYS_S - 90, 0.0),
        (STAYS_S - 60, STAYS_S + 600, 1.0),
    ],
    ids=[
        "soon after a step down",
        "long after it",
        "there was none",
        "another step up came since",
        "one came before",
    ],
)
def test_a_step_up_soon_after_a_step_down_takes_it_back_once(
    down_s: float | None, up_s: float | None, regrets: float
):
    memory = known(
        down_at=None if down_s is None else NOW - down_s,
        up_at=None if up_s is None else NOW - up_s,
        **SLOW,
    )
    busy = situation(MUCH, serving(2))
    decision = after(busy, busy, busy, memory=memory)
    assert decision.replicas > 2
    assert decision.memory.of("serve").regrets == regrets


@pytest.mark.parametrize(
    ("regrets", "ago_s", "times"),
    [
        (0.0, None, 1.0),
        (1.0, 0.0, 1.5),
        (4.0, 0.0, 3.0),
        (100.0, 0.0, 1 + LAW.regret_windows * LAW.regrets_most),
        (4.0, 10 * LAW.regret_s, 1.0),
        (4.0, -3600.0, 3.0),
    ],
    ids=["none", "one", "four", "more than count", "forgotten", "a clock was put back"],
)
def test_the_window_is_longer_the_more_steps_down_were_taken_back(
    regrets: float, ago_s: float | None, times: float
):
    memory = RoleMemory(regrets=regrets, regretted_at=None if ago_s is None else NOW - ago_s)
    asked = situation(LITTLE)
    window = window_s(asked, memory, 120.0, LAW, spent=1.0, now=NOW)
    assert window == pytest.approx(times * LAW.down_window_s, rel=0.001)
    set_by_hand = window_s(replace(asked, down_window_s=60.0), memory, 120.0, LAW, spent=1.0, now=NOW)
    assert set_by_hand == 60.0


def waves(at: float) -> float:
    """Requests a second that come and go every twenty minutes, for which no window is made."""
    return 16.0 if at % 1200 < 420 else 6.0


def taken_back(told: Story, since: float) -> int:
    """Steps up within two start-ups of a step down."""
    acts = [(at, action) for at, action, _ in told.actions if at >= since]
    return sum(
        before is Action.DOWN and then is Action.UP and later - at < STAYS_S
        for (at, before), (later, then) in pairwise(acts)
    )


def test_a_load_that_comes_and_goes_is_let_be_after_some_hours():
    hasty, told = (
        Story(Cluster(rate=waves, replicas=4, start_s=LEAD_S), law=law).run(6 * 3600)
        for law in (replace(LAW, regret_windows=0.0), LAW)
    )
    assert taken_back(hasty, 3 * 3600) >= 6
    assert taken_back(told, 3 * 3600) <= 2
    assert taken_back(told, 0) > 0
