"""Why a minute was late, as the run itself shows it, and what a report says of it."""

from array import array
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from plimsoll.simulate.advice import conclusions
from plimsoll.simulate.alone import first_token_s
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.causes import Late
from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.policies.plimsoll import Plimsoll
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.run import Run
from plimsoll.simulate.tuning import Try, Variant
from plimsoll.simulate.world import Clients
from tests.simulate.test_advice import DAY_S, PLENTY, held_back, result
from tests.simulate.test_several import mixed
from tests.simulate.worlds import HARDWARE, LIMITS, SCENARIO, SLO, TIMES, joined, steady, world

FULL = 15.0
"""Requests a second that three replicas carry, and two do not."""


SAME = Variant(times=TIMES, limits=LIMITS, capacity=SCENARIO.capacity)


class Changing:
    """Three replicas, of which one gets another setting."""

    name = "changing"
    settings: Mapping[str, float] = MappingProxyType({})
    histograms = False

    def __init__(self, *, surge: bool, variant: Variant = SAME) -> None:
        self._change = Try(variant=variant, replicas=1, surge=surge, adopt=False)

    def decide(self, view: View) -> Wish:
        return Wish(3, "", "", change=self._change)


def with_long_ones(arrivals: Arrivals) -> Arrivals:
    """Each fortieth prompt is longer than any replica takes."""
    inputs = array("q", (5000 if place % 40 == 0 else one for place, one in enumerate(arrivals.inputs)))
    return replace(arrivals, inputs=inputs)


def told(outcome: Outcome, most: int = 4) -> str:
    ours = replace(
        result("plimsoll", 90.0, 48.0),
        outcome=replace(outcome, figures=result("x", 90.0, 48.0).outcome.figures),
    )
    return held_back(replace(PLENTY, most=most), ours)


def test_minutes_that_only_prompts_of_no_replica_made_late_are_told_as_theirs():
    outcome = Run(
        world=world(), arrivals=with_long_ones(steady(2.0, 600.0)), policy=Static(2), initial=2
    ).outcome()
    assert len(outcome.late) == 10
    assert all(one.refused for one in outcome.late)
    assert "100% because prompts of 4,096 tokens and more are refused" in told(outcome)
    crowded = Run(
        world=world(), arrivals=with_long_ones(steady(FULL, 600.0)), policy=Static(1), initial=1
    ).outcome()
    assert not any(one.refused for one in crowded.late[2:]), "they would have been late without them too"


def test_minutes_that_prompts_made_late_which_are_late_even_alone_are_told_as_theirs():
    """Some are refused besides, and those alone would have left 99 of 100 in time."""
    here, asked = world(), steady(2.0, 600.0)
    limit = replace(here.slo, ttft_p99_s=first_token_s(here.times, here.limits, 1500))
    inputs = (5000 if place % 300 == 0 else 2000 if place % 40 == 0 else 100 for place in range(len(asked)))
    outcome = Run(
        world=replace(here, slo=limit),
        arrivals=replace(asked, inputs=array("q", inputs)),
        policy=Static(4),
        initial=4,
    ).outcome()
    assert outcome.late
    assert all(one.alone and not one.refused for one in outcome.late)
    assert "100% because prompts are so long that their first token is late even alone" in told(outcome)


def test_minutes_whose_gaps_are_too_long_besides_are_not_told_as_those_of_long_prompts():
    strict = replace(SLO, itl_p99_s=0.001)
    arrivals = with_long_ones(steady(2.0, 600.0))
    outcome = Run(world=world(slo=strict), arrivals=arrivals, policy=Static(2), initial=2).outcome()
    assert outcome.late
    assert not any(one.refused for one in outcome.late)


def test_minutes_in_which_one_came_back_from_a_crash_are_told_as_its():
    here = world(crashes_per_replica_day=60.0)
    outcome = Run(world=here, arrivals=steady(FULL, 7200.0), policy=Static(3), initial=3).outcome()
    crashed = [one for one in outcome.late if one.crashed]
    assert crashed
    assert all(one.starting == 0 for one in outcome.late), "nobody asked for more"
    assert "while a replica started again after a crash" in told(outcome)


@pytest.mark.parametrize("surge", [True, False])
def test_minutes_in_which_one_less_served_for_a_retune_are_told_as_the_retunes(surge: bool):
    outcome = Run(
        world=world(), arrivals=steady(FULL, 600.0), policy=Changing(surge=surge), initial=3
    ).outcome()
    if surge:
        assert outcome.late == (), "with a further one nobody is missed"
        return
    assert any(one.retuned for one in outcome.late)
    assert all(one.starting == 0 for one in outcome.late)
    assert "while a replica started with other settings" in told(outcome)


def test_minutes_in_which_one_replica_had_all_of_the_queue_are_told_as_uneven():
    load, few = steady(FULL, 600.0), Clients(connections=1, lifetime_s=1e9)
    outcome = Run(world=world(clients=few), arrivals=load, policy=Static(3), initial=3).outcome()
    assert len([one for one in outcome.late if one.uneven]) >= 8
    assert "while one replica had a queue and another had none" in told(outcome)
    outcome = Run(world=world(), arrivals=steady(3 * FULL, 600.0), policy=Static(3), initial=3).outcome()
    assert outcome.late
    assert not any(one.uneven for one in outcome.late[2:]), "all of them have one"


def test_a_minute_in_which_one_had_a_queue_before_the_others_did_is_the_loads_and_not_the_routers():
    outcome = Run(world=world(), arrivals=steady(25.0, 900.0), policy=Static(3), initial=3).outcome()
    assert outcome.late[0].at == 0
    assert not any(one.uneven for one in outcome.late)


def test_a_replica_that_tries_a_setting_makes_no_minute_uneven_by_having_no_queue():
    roomy = Variant(
        times=TIMES,
        limits=replace(LIMITS, blocks=10_000, max_num_seqs=len(TIMES.decode) - 1),
        capacity=SCENARIO.capacity,
    )
    policy = Changing(surge=True, variant=roomy)
    outcome = Run(world=world(), arrivals=steady(2 * FULL, 1800.0), policy=policy, initial=3).outcome()
    assert len(outcome.late) > 20
    assert not any(one.uneven for one in outcome.late[2:])


@pytest.mark.parametrize("window_s", [0.0, 600.0])
def test_minutes_in_which_the_window_was_waited_for_are_told_as_its(window_s: float):
    law = Plimsoll(capacity=SCENARIO.capacity, slo=SLO, hardware=HARDWARE, up_window_s=window_s)
    rises = joined(steady(2.0, 600.0), steady(FULL, 900.0))
    outcome = Run(world=world(), arrivals=rises, policy=law, initial=1, most=10).outcome()
    late = [one.at for one in outcome.late if one.rising]
    if window_s:
        assert len(late) >= 8
        assert "scaling.upWindowSeconds (30) was waited for" in told(outcome, most=9)
    else:
        assert not late


@pytest.mark.parametrize(
    ("minute", "said"),
    [
        (Late(at=60, told=4, starting=1, crashed=True), "started again after a crash: a higher scaling.min"),
        (Late(at=60, told=4, starting=1, retuned=True), "while a replica started with other settings"),
        (Late(at=60, told=4, starting=0, rising=True), "with all 4 replicas that there may be"),
        (Late(at=60, told=3, starting=0, rising=True), "a shorter one has them come sooner"),
        (Late(at=60, told=3, starting=2, rising=True), "scaling.upWindowSeconds (30) was waited for"),
        (Late(at=60, told=4, starting=2, rising=True), "while replicas were starting"),
        (Late(at=60, told=4, starting=0, uneven=True), "one replica had a queue and another had none"),
        (Late(at=60, told=3, starting=2, uneven=True), "while replicas were starting"),
        (Late(at=60, told=3, starting=2, crashed=True, refused=True), "a larger workload.contextTokens"),
    ],
)
def test_each_minute_has_the_one_cause_that_comes_first(minute: Late, said: str):
    sentence = held_back(PLENTY, result("plimsoll", 90.0, 48.0, late=[minute]))
    assert said in sentence
    assert sentence.count("%") == 1
    fixed = replace(PLENTY, fixed=True)
    sentence = held_back(fixed, result("plimsoll", 90.0, 48.0, late=[minute]))
    assert "scaling.min" not in sentence


def test_the_router_is_named_where_the_same_law_does_better_behind_the_other_one():
    ours, better = result("plimsoll", 60.0, 48.0), result("plimsoll", 99.9, 40.0)
    _, said = conclusions(PLENTY, [ours], DAY_S, pooled=better)
    assert "a Service leaves connections with the replica they found" in said
    assert "comes to 99.90% in place of 60.00%, with 40.0 GPU-hours" in said
    _, said = conclusions(mixed(), [ours], DAY_S, pooled=better)
    assert "a Service sends a slow GPU as many requests as a quick one" in said
    for law, pooled in ((ours, result("plimsoll", 70.0, 40.0)), (result("plimsoll", 99.2, 40.0), better)):
        assert len(list(conclusions(PLENTY, [law], DAY_S, pooled=pooled))) == 1, "the answer alone"
