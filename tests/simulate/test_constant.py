"""The smallest constant number that keeps the goal: which numbers are played to find it, with one set and with several."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Run
from plimsoll.simulate.scenario import Scenario
from tests.simulate.test_several import FAST, SLOW, around, mixed, played
from tests.simulate.worlds import SCENARIO, steady, world

BUSY = steady(12.0, 600.0)
"""Three replicas are guessed for it."""


class Told(Comparison):
    """A comparison whose runs are looked up: SLO % by the number of replicas."""

    def __init__(self, scenario: Scenario, slo_pct: Callable[[int], float]) -> None:
        there = around(scenario) if scenario.sets else world(hardware=scenario.hardware)
        super().__init__(Stage(scenario=scenario, world=there, arrivals=BUSY))
        self.slo_pct = slo_pct
        self.played: list[int] = []
        self.outcome = Run(
            world=world(), arrivals=steady(1.0, 60.0), policy=Static(1), routing=Routing.SERVICE, initial=1
        ).outcome()

    def run(self, name: str, parameter: float, second: float | None = None) -> Result:
        if parameter not in self.played:
            self.played.append(round(parameter))
        figures = replace(self.outcome.figures, slo_pct=self.slo_pct(round(parameter)))
        return Result(
            policy=name,
            parameter=parameter,
            second=0.0,
            settings={},
            outcome=replace(self.outcome, figures=figures),
        )


def keeping(numbers: Collection[int]) -> Callable[[int], float]:
    return lambda replicas: 99.5 if replicas in numbers else 90.0


@pytest.mark.parametrize(
    ("numbers", "found", "tried"),
    [
        (range(3, 41), 3, [3, 2]),
        (range(1, 41), 1, [3, 2, 1]),
        (range(4, 41), 4, [3, 4]),
        (range(12, 41), 12, [3, 4, 6, 10, 18, 14, 12, 11]),
        ((), 40, [3, 4, 6, 10, 18, 34, 37, 38, 39, 40]),
    ],
)
def test_of_one_set_it_is_searched_from_a_guess_on(numbers: Collection[int], found: int, tried: list[int]):
    room = replace(SCENARIO.hardware, ready=40)
    comparison = Told(replace(SCENARIO, most=40, hardware=room), keeping(numbers))
    assert comparison.static_peak().parameter == found
    assert comparison.played == tried


@pytest.mark.parametrize(
    ("numbers", "found", "tried"),
    [
        ({2}, 2, [2, 1]),
        ({2, 7, 8}, 2, [2, 1]),
        ({1, 2, 3, 4, 5, 6, 7, 8}, 1, [2, 1]),
        ({3, 4}, 3, [2, 3]),
        ({5, 6, 7, 8}, 5, [2, 3, 4, 6, 5]),
        ({8}, 8, [2, 3, 4, 6, 7, 8]),
    ],
    ids=[
        "the quick ones alone",
        "with many slow ones too",
        "every number",
        "with a few slow ones",
        "with more of them",
        "all",
    ],
)
def test_of_several_sets_the_smallest_is_found_though_a_larger_one_serves_worse(
    numbers: Collection[int], found: int, tried: list[int]
):
    """Two quick replicas, and six slow ones."""
    comparison = Told(mixed(), keeping(numbers))
    assert comparison.static_peak().parameter == found
    assert comparison.played == tried


def test_a_set_with_room_for_many_is_not_played_number_by_number():
    many = played(replace(SLOW, hardware=replace(SLOW.hardware, ready=60)), "L40S", "1.5", share=0.5)
    comparison = Told(replace(mixed(most=60), sets=(played(FAST, "H100", "6"), many)), keeping(()))
    assert comparison.static_peak().parameter == 60
    assert len(comparison.played) < 15


@pytest.mark.parametrize(("least", "found", "tried"), [(2, 2, [2]), (5, 8, [5, 6, 7, 8])])
def test_of_several_sets_no_number_below_the_least_is_played(least: int, found: int, tried: list[int]):
    comparison = Told(replace(mixed(), least=least), keeping({2, 8}))
    assert comparison.static_peak().parameter == found
    assert comparison.played == tried


def test_where_no_number_of_several_sets_keeps_the_goal_the_nearest_is_told():
    assert Told(mixed(), lambda replicas: {2: 98.0, 8: 60.0}.get(replicas, 50.0)).static_peak().parameter == 2
    assert Told(mixed(), float).static_peak().parameter == 8


def test_two_quick_replicas_are_found_where_slow_ones_beside_them_are_late():
    """Behind a Service, which sends to slow ones as many."""
    crawling = replace(SLOW, times=SLOW.times.scaled(steps=20, cache=20, prompts=20, beside=20))
    scenario = replace(mixed(), sets=(played(FAST, "H100", "6"), played(crawling, "T4", "1")))
    stage = Stage(scenario=scenario, world=around(scenario), arrivals=BUSY)
    comparison = Comparison(stage)
    assert not comparison.run("static_peak", 8).keeps
    assert comparison.static_peak().parameter == 2
