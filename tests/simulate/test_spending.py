"""Where the GPU-hours of a law went: told by what it said at each look, and never more or less than was charged."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from types import MappingProxyType

import pytest

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Comparison
from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.base import Asked, View, Wish
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Run
from plimsoll.simulate.spending import Spent
from tests.simulate.worlds import SCENARIO, joined, steady, world

HOUR = steady(0.2, 3600.0)


class Says:
    """Holds a number, and says each time the same of what the load asks for."""

    name, histograms = "says", False
    settings: Mapping[str, float] = MappingProxyType({})

    def __init__(self, replicas: int, asked: Asked | None) -> None:
        self.replicas, self.asked = replicas, asked

    def decide(self, view: View) -> Wish | None:
        return Wish(self.replicas, "Says", "as it says", asked=self.asked)


def spent(outcome: Outcome) -> Spent:
    assert outcome.spent is not None
    assert sum(astuple(outcome.spent)) == pytest.approx(outcome.figures.gpu_hours)
    return outcome.spent


def held(
    replicas: int, asked: Asked, *, least: int = 1, initial: int | None = None, arrivals: Arrivals = HOUR
) -> Spent:
    begun = replicas if initial is None else initial
    policy = Says(replicas, asked)
    return spent(
        Run(world=world(), arrivals=arrivals, policy=policy, initial=begun, least=least, most=9).outcome()
    )


@pytest.mark.parametrize(
    ("wanted", "waits", "least", "shares"),
    [
        (3, True, 1, {"load_h": 3}),
        (5, True, 1, {"load_h": 3}),
        (1, True, 1, {"load_h": 1, "waits_h": 2}),
        (1, False, 1, {"load_h": 1, "caution_h": 2}),
        (1, True, 2, {"load_h": 1, "least_h": 1, "waits_h": 1}),
        (None, False, 2, {"least_h": 2, "unknown_h": 1}),
    ],
)
def test_replicas_that_serve_are_the_loads_first_then_the_least_number_then_what_held_them(
    wanted: int | None, waits: bool, least: int, shares: dict[str, int]
):
    told = held(3, Asked(wanted=wanted, waits=waits), least=least)
    # Of each replica 2 GPU-hours in the hour; the first look comes before anything is said.
    for name, value in vars_of(told).items():
        assert value == pytest.approx(2.0 * shares.get(name, 0), abs=0.04), name


def vars_of(told: Spent) -> dict[str, float]:
    return {name: getattr(told, name) for name in told.__slots__}


def test_a_replica_costs_while_it_starts_and_while_it_answers_what_it_had():
    more = held(3, Asked(wanted=3, waits=False), initial=1)
    assert more.starting_h > 0
    assert more.draining_h == 0
    fewer = held(
        1, Asked(wanted=1, waits=False), initial=3, arrivals=steady(1.0, 3600.0, given=300, asked=1500)
    )
    assert fewer.starting_h == 0
    assert 0 < fewer.draining_h < 0.2


def test_of_a_policy_that_says_nothing_of_the_load_nothing_is_told():
    assert Run(world=world(), arrivals=HOUR, policy=Static(2), initial=2).outcome().spent is None


def test_of_several_sets_nothing_is_told_as_their_replicas_do_not_carry_alike():
    (site,) = world().sites
    two = world(beside=(site,))
    run = Run(world=two, arrivals=HOUR, policy=Says(2, Asked(wanted=1, waits=True)), initial=2)
    assert run.outcome().spent is None


def test_the_law_keeps_replicas_over_its_waits_and_says_so_in_the_words_that_are_counted():
    arrivals = joined(steady(1.0, 1800.0), steady(14.0, 1200.0), steady(0.5, 3600.0))
    stage = Stage(scenario=replace(SCENARIO, most=6), world=world(), arrivals=arrivals)
    told = spent(Comparison(stage, routing=Routing.POOL).best("plimsoll").outcome)
    assert told.load_h > told.waits_h > 0.5
    assert told.starting_h > 0
    assert told.unknown_h < 0.1


def test_a_step_down_is_waited_for_where_one_was_made_just_before_and_caution_is_no_wait():
    arrivals = joined(steady(14.0, 2400.0), steady(6.0, 7200.0))
    stage = Stage(scenario=replace(SCENARIO, most=6), world=world(), arrivals=arrivals)
    told = spent(Comparison(stage, routing=Routing.POOL).best("plimsoll").outcome)
    assert told.waits_h > 0
    assert told.caution_h > 0
