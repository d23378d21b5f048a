"""A deployment that may sleep: when it does, who brings it back, and what becomes of who comes meanwhile."""

from dataclasses import replace

import pytest

from plimsoll.simulate.compare import Comparison
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.gateway import Gateway, Wake
from plimsoll.simulate.outcome import Outcome, Sleep
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.request import Request
from plimsoll.simulate.router import Routing
from plimsoll.simulate.world import Hardware, World
from tests.simulate.worlds import SCENARIO, joined, steady, world

QUIET = steady(0.1, 0.0)
"""Nothing at all; its span is given where it is used."""
TWICE = joined(
    steady(1.0, 600.0), replace(QUIET, span_s=2400.0), steady(1.0, 300.0), replace(QUIET, span_s=2700.0)
)
"""Ten minutes of traffic, forty of silence, five, and silence again."""


def outcome(
    arrivals=TWICE,
    *,
    queried: bool = True,
    after_s: float = 600.0,
    name: str = "plimsoll",
    here: World | None = None,
) -> Outcome:
    scenario = replace(SCENARIO, zero=Wake(after_s=after_s, queried=queried))
    stage = Stage(scenario=scenario, world=here or world(), arrivals=arrivals)
    return Comparison(stage, routing=Routing.POOL).best(name).outcome


def slept(told: Outcome) -> Sleep:
    assert told.sleep is not None
    return told.sleep


@pytest.mark.parametrize("queried", [True, False])
def test_it_sleeps_once_it_was_idle_for_as_long_as_said_and_the_first_request_wakes_it(queried: bool):
    told = outcome(queried=queried)
    steps = [(one.reason, one.before, one.after) for one in told.actions]
    assert steps[0] == ("ScaledToZero", 1, 0)
    assert ("Woken", 0, 1) in steps
    sleep, wake = told.actions[0], next(one for one in told.actions if one.reason == "Woken")
    assert 1200 <= sleep.at < 1200 + 60
    assert 3000 <= wake.at < 3000 + 2 * 15, "a scrape and a tick later at most"
    assert told.figures.failed == told.figures.unanswered == 0


def test_a_replica_that_nobody_asks_for_is_held_by_the_wait_before_it_sleeps_and_by_no_caution():
    told = outcome()
    assert told.spent is not None
    assert told.spent.waits_h > 0.4, "most of ten minutes with two GPUs, twice"
    assert told.spent.caution_h == 0


def test_hours_asleep_are_those_in_which_nothing_costs_and_are_what_is_saved():
    told = outcome()
    sleep = slept(told)
    assert sleep.hours == pytest.approx(sum(until - since for since, until in sleep.asleep) / 3600)
    assert sleep.gpu_hours_saved == pytest.approx(sleep.hours * SCENARIO.hardware.devices)
    constant = outcome(name="static_peak")
    assert slept(constant).hours == 0
    held = told.figures.gpu_hours + sleep.gpu_hours_saved
    assert held >= constant.figures.gpu_hours - 1e-9, "beside one that stays, nothing else is saved"


def test_whoever_comes_meanwhile_waits_for_the_start_and_that_is_part_of_the_first_tokens_time():
    told = outcome()
    sleep, start = slept(told), world().start_s(1)
    woken = next(one.at for one in told.actions if one.reason == "Woken")
    assert sleep.wait_most_s is not None
    assert sleep.wait_most_s == pytest.approx(woken + start - 3000.0, abs=1.0)
    assert sleep.waited >= woken + start - 3000.0 - 1
    assert sleep.held[0][0] == pytest.approx(3000.0, abs=1.0)
    assert told.figures.ttft_p99_ms is not None
    assert told.figures.ttft_p99_ms > 1000 * start / 2
    assert told.figures.slo_pct is not None
    assert told.figures.slo_pct < 100 * (1 - 0.8 * sleep.waited / told.figures.requests)


def test_a_node_that_has_to_be_made_is_waited_for_too():
    here = world(hardware=Hardware(ready=0, growing=4, node_s=200.0, devices=2.0))
    near, far = slept(outcome()), slept(outcome(here=here))
    assert near.wait_most_s is not None
    assert far.wait_most_s is not None
    assert far.wait_most_s > near.wait_most_s + 100


def test_who_is_asked_now_and_then_never_sleeps():
    told = outcome(steady(1 / 300, 7200.0))
    sleep = slept(told)
    assert (sleep.times, sleep.waited, sleep.hours, sleep.wait_most_s) == (0, 0, 0, None)


def test_others_keep_a_replica():
    told = outcome(name="keda")
    assert slept(told).times == 0
    assert min(point.told for point in told.points) == 1


def test_whoever_comes_last_is_answered_though_the_trace_ends_before_anybody_is_awake():
    told = outcome(joined(steady(1.0, 300.0), replace(QUIET, span_s=3000.0), steady(1.0, 10.0)))
    assert slept(told).waited == 10
    assert told.figures.unanswered == 0
    assert told.figures.gpu_hours < 1.0, "at no further cost"
    assert all(point.at <= 3310 for point in told.points)


def test_without_being_asked_for_nothing_is_held_and_nothing_said():
    stage = Stage(scenario=SCENARIO, world=world(), arrivals=TWICE)
    assert Comparison(stage).run("plimsoll", 0.7).outcome.sleep is None


def test_a_queue_without_room_leaves_the_rest_at_the_gateway_in_its_order():
    engine = with_room_for_two()
    gateway = Gateway()
    for place in range(5):
        gateway.hold(Request(float(place), 300, 10))
    assert gateway.written == 1
    assert gateway.hand_on(lambda _now: engine, 10.0) == 0
    assert [one.arrival for one in gateway.held] == [2.0, 3.0, 4.0]
    assert gateway.next_at > 10.0
    assert sorted(gateway.waits(20.0)) == [9.0, 10.0, 16.0, 17.0, 18.0]
    assert gateway.hand_on(lambda _now: None, 11.0) == 0
    assert gateway.next_at == float("inf"), "nobody is there to be asked again"


def with_room_for_two() -> Engine:
    here = world()
    return Engine(here.times, replace(here.limits, max_queued=2))


def test_whoever_is_held_while_it_sleeps_stands_among_those_that_wait():
    told = outcome()
    since, until = slept(told).held[0]
    waking = [point.waiting for point in told.points if since + 15 < point.at < until]
    assert waking
    assert waking == sorted(waking), "one more each second"
    assert waking[-1] == pytest.approx(waking[0] + 15.0 * (len(waking) - 1), abs=2)
    assert waking[0] > 10
