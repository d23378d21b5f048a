"""Whole stories: one policy through one trace, and policies against each other."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from plimsoll.control.situation import Slo
from plimsoll.simulate.compare import GOAL_PCT, Comparison, Result
from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.registry import KINDS, SWEPT, Stage
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Run
from plimsoll.simulate.world import Hardware
from tests.simulate.worlds import SCENARIO, joined, steady, world


def story(policy, arrivals, routing: Routing = Routing.SERVICE, **changes) -> Outcome:
    return Run(world=world(**changes), arrivals=arrivals, policy=policy, routing=routing, initial=1).outcome()


STEP = joined(steady(2.0, 900.0), steady(12.0, 1800.0), steady(2.0, 1800.0))
STAGE = Stage(scenario=SCENARIO, world=world(), arrivals=STEP)


@pytest.mark.parametrize("routing", list(Routing))
def test_every_request_is_accounted_for(routing: Routing):
    outcome = story(Static(2), steady(12.0, 600.0), routing, limits=replace(world().limits, max_queued=5))
    figures = outcome.figures
    assert figures.requests == 7200
    assert figures.failed > 0
    assert figures.unanswered == 0
    assert figures.slo_pct is not None
    assert 0 < figures.slo_pct < 100


def test_more_replicas_serve_more_and_cost_in_proportion():
    few, more = (story(Static(count), steady(12.0, 900.0)).figures for count in (1, 4))
    assert few.slo_pct is not None
    assert more.slo_pct is not None
    assert few.slo_pct < more.slo_pct
    # The one that was there, and three that were started in the first minute, devices two each.
    assert more.gpu_hours == pytest.approx(2 * 4 * 900 / 3600, rel=0.02)
    assert few.gpu_hours == pytest.approx(2 * 900 / 3600)


def test_the_same_seed_gives_the_same_story_and_another_seed_another():
    def told(seed: int):
        return (
            Comparison(Stage(scenario=SCENARIO, world=world(seed), arrivals=STEP))
            .run("plimsoll", 0.7)
            .outcome
        )

    assert told(1) == told(1)
    assert told(1) != told(2)


def test_crashes_lose_requests_and_capacity_but_not_the_count():
    figures = story(Static(2), steady(4.0, 3600.0), crashes_per_replica_day=200.0).figures
    assert figures.failed > 0
    assert figures.requests == 14400


def test_static_peak_is_the_smallest_that_keeps_the_goal():
    comparison = Comparison(STAGE)
    peak = comparison.static_peak()
    assert peak.slo_pct >= GOAL_PCT
    assert comparison.run("static_peak", peak.parameter - 1).slo_pct < GOAL_PCT
    assert comparison.static_mean().parameter < peak.parameter


def test_the_mean_of_arrivals_that_all_come_in_the_last_minute_needs_what_their_peak_needs():
    comparison = Comparison(replace(STAGE, arrivals=joined(steady(0.0001, 600.0), steady(1.0, 60.0))))
    assert comparison.static_mean().parameter == comparison.static_peak().parameter


@pytest.mark.parametrize("span_s", [15.0, 45.0, 61.0, 600.0, 661.0])
def test_a_constant_load_begins_with_the_same_replicas_however_long_its_trace_is(span_s: float):
    comparison = Comparison(replace(STAGE, arrivals=steady(12.0, span_s)))
    (begun, *_) = comparison.run("wva1", 0.8).outcome.points
    assert begun.told == 3
    assert begun.arrivals_per_s == pytest.approx(12.0)


def test_where_no_number_keeps_the_goal_the_largest_is_told():
    small = replace(SCENARIO, most=1)
    assert Comparison(replace(STAGE, scenario=small)).static_peak().parameter == 1


def test_without_limits_a_constant_number_whose_queue_only_grows_is_not_enough():
    """One replica answers all of them, most of them after the last came."""
    open_ended = Stage(scenario=SCENARIO, world=world(slo=Slo()), arrivals=steady(12.0, 600.0))
    comparison = Comparison(open_ended)
    one, peak = comparison.run("static_peak", 1), comparison.static_peak()
    assert one.slo_pct == 100
    assert not one.keeps
    assert peak.parameter == 2
    assert peak.outcome.points[-1].waiting < 10


def test_the_oracle_keeps_the_goal_for_less_than_the_peak_costs():
    comparison = Comparison(STAGE)
    oracle, peak = comparison.best("oracle"), comparison.best("static_peak")
    assert oracle.slo_pct >= GOAL_PCT
    assert oracle.outcome.figures.gpu_hours < peak.outcome.figures.gpu_hours


def test_of_the_values_tried_the_cheapest_that_keeps_the_goal_is_found_without_trying_all():
    comparison = Comparison(STAGE)
    found, tried = comparison.cheapest("oracle"), KINDS["oracle"].tried
    assert len(comparison._done) < len(tried)
    place = tried.index(found.parameter)
    assert found.slo_pct >= GOAL_PCT
    assert place == 0 or comparison.run("oracle", tried[place - 1]).slo_pct < GOAL_PCT


class Told(Comparison):
    """A comparison whose runs are looked up: SLO % and GPU-hours by both parameters."""

    def __init__(self, told: Callable[[float, float], tuple[float, float]]) -> None:
        super().__init__(STAGE)
        self.told = told
        self.asked: list[tuple[float, float]] = []
        self.outcome = story(Static(1), steady(1.0, 60.0))

    def run(self, name: str, parameter: float, second: float | None = None) -> Result:
        assert second is not None
        self.asked.append((parameter, second))
        slo_pct, gpu_hours = self.told(parameter, second)
        figures = replace(self.outcome.figures, slo_pct=slo_pct, gpu_hours=gpu_hours)
        return Result(
            policy=name,
            parameter=parameter,
            second=second,
            settings={},
            outcome=replace(self.outcome, figures=figures),
        )


def test_of_both_parameters_the_cheapest_setting_that_keeps_the_goal_is_found():
    """A short window saves a third and needs replicas that are less full; a long one keeps the goal as it is, for more."""

    def told(target: float, window: float) -> tuple[float, float]:
        full = {60.0: 0.3, 300.0: 0.5, 900.0: 0.6}[window]
        return 99.5 if target <= full else 95.0, {60.0: 4.0, 300.0: 9.0, 900.0: 12.0}[window] / target

    comparison = Told(told)
    found = comparison.cheapest("hpa")
    assert (found.parameter, found.second) == (0.3, 60)
    # Half by half with the usual one; then down to 0.3 with a short window; a long one keeps the goal there, and is dearer at 0.4 too.
    assert comparison.asked == [
        *((target, 300) for target in (0.5, 0.7, 0.6)),
        *((target, 60) for target in (0.5, 0.4, 0.3)),
        *((target, 900) for target in (0.3, 0.4, 0.5)),
    ]


def test_a_second_parameter_that_misses_the_goal_for_more_is_left_at_once():
    def told(target: float, window: float) -> tuple[float, float]:
        return (99.5 if window == 300 and target <= 0.5 else 90.0), (10.0 if window == 300 else 30.0) / target

    comparison = Told(told)
    found = comparison.cheapest("hpa")
    assert (found.parameter, found.second) == (0.5, 300)
    assert comparison.asked[3:] == [(0.5, 60), (0.5, 900)]


def test_where_no_setting_keeps_the_goal_the_nearest_of_all_is_told():
    comparison = Told(lambda target, window: (90 - 10 * target + window / 100, 1 / target))
    found = comparison.cheapest("hpa")
    assert (found.parameter, found.second) == (0.2, 900)
    assert comparison.asked[3:] == [(0.2, 60), (0.2, 900)]


@pytest.mark.parametrize("name", [name for name in SWEPT if KINDS[name].second.name])
def test_a_grid_takes_no_more_runs_than_its_second_values_times_those_of_one(name: str):
    """Wherever the goal is kept, alike or not from one second value to the next."""
    kind = KINDS[name]
    for seed in range(200):
        chance = Random(seed)
        bounds = {second: chance.randint(0, len(kind.tried)) for second in kind.second.tried}
        prices = {second: chance.random() for second in kind.second.tried}

        def told(value: float, second: float, bounds=bounds, prices=prices) -> tuple[float, float]:
            place = kind.tried.index(value)
            return (99.5 if place >= bounds[second] else 80.0 + place), prices[second] * (1 + place)

        comparison = Told(told)
        comparison.cheapest(name)
        first = sum(second == kind.second.usual for _, second in comparison.asked)
        assert len(comparison.asked) <= len(kind.second.tried) * first
        assert len(comparison.asked) == len(set(comparison.asked))


@pytest.mark.parametrize("name", [name for name in KINDS if name != "static_mean"])
def test_every_policy_lives_through_a_step_and_stays_within_its_bounds(name: str):
    outcome = Comparison(STAGE).best(name).outcome
    assert outcome.figures.requests == len(STEP)
    assert all(1 <= action.after <= SCENARIO.most for action in outcome.actions)
    assert all(action.before != action.after for action in outcome.actions)
    assert all(action.reason and action.message for action in outcome.actions)


def test_ours_jumps_on_a_step_and_comes_back():
    outcome = Comparison(STAGE).run("plimsoll", 0.7).outcome
    up = next(action for action in outcome.actions if action.at > 900)
    assert up.after > up.before
    assert up.at < 900 + 90
    assert outcome.points[-1].told < max(point.told for point in outcome.points)


def test_a_step_of_six_is_jumped_at_while_single_steps_never_catch_up():
    """What an autoscaler that adds one replica at a time, and none while one starts, makes of the same minutes."""
    comparison = Comparison(STAGE)
    ours, single = (comparison.run(name, usual).outcome for name, usual in (("plimsoll", 0.7), ("wva1", 0.8)))
    jump = next(action for action in ours.actions if action.at > 900)
    assert jump.after - jump.before >= 2
    ups = [action for action in single.actions if action.after > action.before]
    assert {action.after - action.before for action in ups} == {1}
    assert ours.figures.slo_pct is not None
    assert single.figures.slo_pct is not None
    assert ours.figures.slo_pct > single.figures.slo_pct
    assert len(ours.late) < len(single.late)


def test_a_wish_beyond_the_nodes_there_are_waits_for_one():
    hardware = Hardware(ready=1, growing=3, node_s=120.0, devices=2.0)
    outcome = story(Static(3), steady(2.0, 900.0), hardware=hardware)
    ready = [(point.at, point.ready) for point in outcome.points]
    assert ready[-1][1] == 3
    assert all(count == 1 for at, count in ready if at < 100)


def test_timelines_and_shares_served_cover_the_story():
    outcome = story(Static(2), steady(4.0, 7200.0))
    assert outcome.points[0].at == 0
    assert outcome.points[-1].at > 7100
    assert all(0 <= share <= 1 for _, share in outcome.served)
    assert outcome.points[-1].arrivals_per_s == pytest.approx(4.0, rel=0.05)
