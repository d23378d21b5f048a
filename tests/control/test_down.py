"""When replicas go: what a whole window wanted stays, and the window is as long as it has to be."""

from dataclasses import replace

import pytest

from plimsoll.api.v1alpha1.scaling import Scaling
from plimsoll.control.curve import Points
from plimsoll.control.decision import Action
from plimsoll.control.down import window_s
from plimsoll.control.lateness import ALLOWED, Lateness
from plimsoll.control.law import LAW
from plimsoll.control.memory import Learnt, RoleMemory
from plimsoll.control.prompts import StepMemory
from plimsoll.control.situation import Bounds, ReplicaState, Slo, Zero
from tests.control.situations import CAPACITY, NOW, known, replicas, serving, signals, situation, ticks

SERVE_OR_GO = (ReplicaState.READY, ReplicaState.LEAVING)


@pytest.mark.parametrize(
    ("wished", "left"), [(1.95, 2), (2.0, 2), (2.05, 3)], ids=["below a whole number", "just it", "above it"]
)
def test_as_many_stay_as_carry_what_the_window_wanted_and_no_more(wished: float, left: int):
    calm = situation(signals(3, inflight=5, rate=0.7))
    decision = ticks(calm, 1, memory=known(ready=3, wishes=((NOW - 100, wished),)))
    assert decision.replicas == left
    assert decision.roles[0].action is (Action.DOWN if left < 3 else Action.HOLD)


@pytest.mark.parametrize("state", [one for one in ReplicaState if one not in SERVE_OR_GO])
def test_replicas_that_serve_nobody_go_at_once_whatever_they_wait_for(state: ReplicaState):
    there = (*replicas(2), *replicas(8, state, age=100, first=2))
    calm = situation(signals(2, inflight=5, rate=0.7), serving(replicas=there))
    decision = ticks(calm, 1, memory=known(ready=2, wishes=((NOW - 100, 1.5),)))
    assert (decision.roles[0].reason, decision.replicas) == ("LoadFell", 2)


@pytest.mark.parametrize(("lets_go", "left"), [(False, 3), (True, 2)])
def test_beside_a_rollout_replicas_go_where_it_may_have_their_room(lets_go: bool, left: int):
    calm = situation(signals(3, inflight=5, rate=0.7), busy="a rollout is under way", lets_go=lets_go)
    assert ticks(calm, 1, memory=known(ready=3, wishes=((NOW - 100, 1.5),))).replicas == left


def test_replicas_whose_pods_are_not_made_go_at_once():
    calm = situation(signals(2, inflight=5, rate=0.7), serving(wanted=10))
    decision = ticks(calm, 1, memory=known(ready=2, wishes=((NOW - 100, 1.5),)))
    assert (decision.roles[0].reason, decision.replicas) == ("LoadFell", 2)


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ({}, "left would be"),
        ({"running": None, "inflight_mean": None}, "those among them that do not say how many requests"),
        ({"waiting": None, "inflight_mean": None}, "those among them that do not say how many requests"),
    ],
    ids=["says all", "who runs is not said", "who waits is not said"],
)
def test_a_fresh_replica_that_lacks_a_figure_counts_as_full_and_not_as_empty(lacks, why):
    said = signals(3, inflight=22, rate=0.7)
    *others, last = said.replicas
    said = replace(said, replicas=(*others, replace(last, **lacks)))
    decision = ticks(situation(said), 1, memory=known(ready=3, wishes=((NOW - 100, 1.9),)))
    assert decision.replicas == 3, "three of 22 would be two of 33, more than the 30 that are calm"
    assert why in decision.roles[0].message


def test_where_no_replica_says_who_waits_none_goes():
    said = signals(3, inflight=1, rate=0.1, waiting=None, inflight_mean=None)
    decision = ticks(situation(said), 1, memory=known(ready=3, wishes=((NOW - 100, 1.0),)))
    assert decision.replicas == 3
    assert "all 3 were wanted" in decision.roles[0].message


def test_the_reference_tells_the_window_that_the_law_has():
    said = Scaling.model_fields["down_window_seconds"].description or ""
    assert f"Absent: {LAW.down_window_s:g}, or the start-up time" in said
    assert "half where first tokens came in time" in said
    assert LAW.down_eased == 0.5
    assert LAW.down_starts == 1


@pytest.mark.parametrize(
    ("spent", "set_s", "lead_s", "window"),
    [
        (1.0, None, 200.0, LAW.down_window_s),
        (2.0, None, 200.0, LAW.down_window_s),
        (0.0, None, 200.0, (1 - LAW.down_eased) * LAW.down_window_s),
        (0.5, None, 200.0, (1 - LAW.down_eased / 2) * LAW.down_window_s),
        (1.0, None, 900.0, 900.0),
        (0.0, 60.0, 900.0, 60.0),
        (1.0, 0.0, 900.0, 0.0),
    ],
    ids=[
        "as many were late as may be",
        "more were late than may be",
        "none was late",
        "half as many were late as may be",
        "starts take longer",
        "somebody set it",
        "somebody wants none",
    ],
)
def test_less_must_be_wanted_for_a_while_and_for_less_long_where_hours_show_no_late_first_token(
    spent: float, set_s: float | None, lead_s: float, window: float
):
    asked = replace(situation(signals(2)), down_window_s=set_s)
    assert window_s(asked, RoleMemory(), lead_s, LAW, spent=spent, now=NOW) == pytest.approx(window)


@pytest.mark.parametrize(("ago", "left"), [(LAW.down_again_s - 15, 3), (LAW.down_again_s, 2)])
def test_between_two_steps_down_rates_have_time_to_show_what_those_left_carry(ago: float, left: int):
    calm = situation(signals(3, inflight=5, rate=0.7))
    decision = ticks(calm, 1, memory=known(ready=3, wishes=((NOW - 100, 1.9),), down_at=NOW - ago))
    assert decision.replicas == left
    assert ("since the last step down" in decision.roles[0].message) is (left == 3)


@pytest.mark.parametrize(("waiting", "left"), [(0.5, 2), (2.0, 3)])
def test_none_goes_while_as_many_wait_as_would_be_left(waiting: float, left: int):
    calm = situation(signals(3, inflight=5, waiting=waiting / 3, rate=0.7))
    decision = ticks(calm, 1, memory=known(ready=3, wishes=((NOW - 100, 1.9),)))
    assert decision.replicas == left
    assert ("requests wait" in decision.roles[0].message) is (left == 3)


@pytest.mark.parametrize("zero", [None, Zero(after_s=900, waiting=0.0, idle_s=None)])
def test_the_last_one_never_goes_for_a_small_load_though_none_need_stay(zero: Zero | None):
    quiet = situation(signals(1, inflight=0, kv=0.0, rate=0.0), bounds=Bounds(min=0, max=4))
    decision = ticks(replace(quiet, zero=zero), 40, memory=known(ready=1, wishes=((NOW - 100, 0.0),)))
    assert decision.replicas == 1
    assert "1 is the least" in decision.roles[0].message


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


FULL_S = 0.2


def stepping(itl: float, prompt: int, *, output: int = 300, kept: float = 0.1, late: float = ALLOWED):
    """Eight replicas with little to do, of which each token takes a share of a full step of so long, and the decision about them."""
    points = Points()
    for tokens in (512, 1024, 2048):
        points = points.add(tokens, FULL_S * tokens / 2048, weight=100)
    capacity = replace(CAPACITY, max_batched_tokens=2048, input_tokens=prompt, output_tokens=output)
    steps = StepMemory(points=points, late_gaps=Lateness(share=late, limit_s=kept))
    learnt = {"set-a": Learnt(steps=steps)}
    memory = known(ready=8, learnt=learnt, learnt_at=NOW, wishes=((NOW - 100, 2.0),))
    said = situation(signals(8, itl=itl, inflight=1, rate=0.05), serving(8, capacity=capacity))
    return ticks(replace(said, slo=Slo(ttft_p99_s=20.0, itl_p99_s=kept)), 1, memory=memory)


@pytest.mark.parametrize("itl", [0.11, 0.2, 0.24], ids=["above the limit", "a step", "little above a step"])
def test_a_gap_that_few_requests_have_as_well_keeps_no_replica_and_is_told(itl: float):
    decision = stepping(itl, prompt=5000)
    assert decision.roles[0].action is Action.DOWN
    said = f"p99 between tokens is {itl * 1000:.0f} ms, above the 100 promised, but beside a few requests it would be about 196 ms too"
    assert said in decision.roles[0].message


@pytest.mark.parametrize(
    ("itl", "prompt", "output", "kept"),
    [(0.3, 5000, 300, 0.1), (0.15, 400, 300, 0.1), (0.15, 5000, 4000, 0.1), (0.22, 5000, 300, 0.21)],
    ids=[
        "longer by far than few requests make it",
        "few requests would keep the limit",
        "so long answers that few prompts cut in",
        "a full step keeps the limit",
    ],
)
def test_a_gap_that_load_makes_keeps_all_replicas(itl: float, prompt: int, output: int, kept: float):
    decision = stepping(itl, prompt, output=output, kept=kept)
    assert decision.replicas == 8
    assert f"p99 between tokens is {itl * 1000:.0f} ms, above the {kept * 1000:.0f} promised" in (
        decision.roles[0].message
    )
    assert "beside a few requests" not in decision.roles[0].message


def test_a_late_first_token_keeps_replicas_unless_a_long_prompt_takes_as_long_by_itself():
    held, gone = (
        situation(signals(8, ttft=3.0, inflight=1, rate=0.05), serving(8, capacity=capacity))
        for capacity in (
            replace(CAPACITY, max_batched_tokens=2048, input_tokens=tokens) for tokens in (1000, 30_000)
        )
    )
    points = Points()
    for tokens in (512, 1024, 2048):
        points = points.add(tokens, FULL_S * tokens / 2048, weight=100)
    learnt = {"set-a": Learnt(steps=StepMemory(points=points))}
    memory = known(ready=8, learnt=learnt, learnt_at=NOW, wishes=((NOW - 100, 2.0),))
    promised = Slo(ttft_p99_s=2.0)
    assert ticks(replace(held, slo=promised), 1, memory=memory).replicas == 8
    decision = ticks(replace(gone, slo=promised), 1, memory=memory)
    assert decision.replicas < 8
    assert "it would be about 2,867 ms too" in decision.roles[0].message


@pytest.mark.parametrize(
    ("kept", "late", "goes"),
    [(0.21, ALLOWED, True), (0.19, ALLOWED, False), (0.21, 1.1 * ALLOWED, False)],
    ids=["a full step keeps the limit", "it does not", "it was said to, and hours showed longer gaps"],
)
def test_a_gap_near_its_limit_keeps_no_replica_where_no_load_makes_it_longer_than_that(
    kept: float, late: float, goes: bool
):
    decision = stepping(0.9 * kept, prompt=1000, kept=kept, late=late)
    assert (decision.replicas < 8) is goes
    assert ("p99 latency is at 90% of its limit" in decision.roles[0].message) is not goes


def test_a_limit_that_is_kept_though_few_requests_were_said_to_break_it_still_counts():
    decision = stepping(0.09, prompt=5000)
    assert decision.replicas == 8
    assert "p99 latency is at 90% of its limit" in decision.roles[0].message
