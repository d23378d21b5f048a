"""When replicas go: what a whole window wanted stays, and a step down that has paid is no mistake."""

from dataclasses import replace

import pytest

from plimsoll.api.v1alpha1.scaling import Scaling
from plimsoll.control.decision import Action
from plimsoll.control.down import regretted
from plimsoll.control.memory import RoleMemory
from plimsoll.control.scaling import LAW
from plimsoll.control.situation import ReplicaState
from tests.control.situations import NOW, known, replicas, serving, signals, situation, ticks

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
    "lacks",
    [{}, {"running": None, "inflight_mean": None}, {"waiting": None, "inflight_mean": None}],
    ids=["says all", "who runs is not said", "who waits is not said"],
)
def test_a_fresh_replica_that_lacks_a_figure_counts_as_full_and_not_as_empty(lacks):
    said = signals(3, inflight=22, rate=0.7)
    *others, last = said.replicas
    said = replace(said, replicas=(*others, replace(last, **lacks)))
    decision = ticks(situation(said), 1, memory=known(ready=3, wishes=((NOW - 100, 1.9),)))
    assert decision.replicas == 3, "three of 22 would be two of 33, more than the 30 that are calm"
    assert "left would be" in decision.roles[0].message


def test_where_no_replica_says_who_waits_none_goes():
    said = signals(3, inflight=1, rate=0.1, waiting=None, inflight_mean=None)
    decision = ticks(situation(said), 1, memory=known(ready=3, wishes=((NOW - 100, 1.0),)))
    assert decision.replicas == 3
    assert "no replica says how full it is" in decision.roles[0].message


def test_the_reference_tells_the_window_that_the_law_has():
    said = Scaling.model_fields["down_window_seconds"].description or ""
    assert f"Absent: {LAW.down_window_s:g}, or the start-up time" in said
    assert f"up to {LAW.regret_most:g} times as long" in said
    assert LAW.down_starts == 1


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


ALERTS = {
    "KVPressure": {"kv": 0.9},
    "Preemption": {"preemptions": 4.0},
    "QueueGrowth": {"waiting": 12.0, "inflight_mean": 5.0},
    "TTFTOverSLO": {"ttft": 2.5},
    "ITLOverSLO": {"itl": 0.15},
}
"""What each alert about the load fires on, beside a load that fewer replicas would carry."""


@pytest.mark.parametrize("name", ALERTS)
@pytest.mark.parametrize("state", [ReplicaState.READY, ReplicaState.STARTING])
def test_nothing_is_taken_away_during_an_alert_not_even_what_does_not_serve_yet(name, state):
    wished = known(ready=3, wishes=((NOW - 100, 1.0),))
    there = serving(4, replicas=(*replicas(3), *replicas(1, state, first=3)))
    quiet = situation(signals(3, live=there.ready, inflight=5, rate=0.7), there)
    loud = situation(signals(3, live=there.ready, inflight=5, rate=0.7, **ALERTS[name]), there)
    assert ticks(quiet, 1, memory=wished).replicas < 4
    assert ticks(loud, 1, memory=wished).replicas == 4
