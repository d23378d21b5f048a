"""Plans of several sets, and plans that grow onto another one once their devices are used up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.control.situation import ReplicaState, Slo
from plimsoll.facts.learned import NOTHING
from plimsoll.planning.ask.reading import read
from plimsoll.planning.placing.budgets import UNLIMITED, Claim, Limits
from plimsoll.planning.planner import plan
from plimsoll.simulate.advice import conclusions, cost_of
from plimsoll.simulate.alone import longest_in_time
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.from_plan import scenario_of
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.several import Played, further, numbered
from plimsoll.simulate.world import Hardware, Site, World
from tests.planning.asking import deployment, facts, inventory, pool
from tests.simulate.worlds import LIMITS, SCENARIO, TIMES, joined, steady, world

FAST = Site(times=TIMES, limits=LIMITS, hardware=Hardware(ready=2, devices=2.0))
SLOW = Site(
    times=TIMES.scaled(steps=2, cache=2, prompts=2, beside=2),
    limits=LIMITS,
    hardware=Hardware(ready=4, growing=2, node_s=100.0, devices=1.0),
)


def played(site: Site, gpu: str, price: str, *, share: float = 1.0, stands_by: bool = False) -> Played:
    rate = SCENARIO.capacity.requests_per_second or 0.0
    return Played(
        gpu=gpu,
        layout="tp1",
        site=site,
        capacity=replace(SCENARIO.capacity, requests_per_second=share * rate),
        claim=Claim(product=gpu, gpus=Fraction(int(site.hardware.devices)), price=Fraction(price)),
        stands_by=stands_by,
    )


def mixed(*, stands_by: bool = False, limits: Limits = UNLIMITED, most: int = 8) -> Scenario:
    """Two quick replicas, and six slow ones beside them, that are cheaper for what they carry."""
    first, other = played(FAST, "H100", "6"), played(SLOW, "L40S", "1.5", share=0.5, stands_by=stands_by)
    first = replace(first, site=replace(FAST, allowed=limits.allows(first.claim)))
    left = limits.less(first.claim, first.site.room)
    other = replace(other, site=replace(SLOW, allowed=left.allows(other.claim)))
    return replace(SCENARIO, hardware=FAST.hardware, sets=(first, other), limits_together=limits, most=most)


def around(scenario: Scenario) -> World:
    """As the planner believes it, so that tests reckon with what is written here."""
    return replace(
        world(hardware=FAST.hardware),
        allowed=scenario.sets[0].site.allowed,
        beside=tuple(one.site for one in scenario.sets[1:]),
    )


def story(scenario: Scenario, arrivals, name: str = "plimsoll", routing: Routing = Routing.POOL) -> Result:
    return Comparison(
        Stage(scenario=scenario, world=around(scenario), arrivals=arrivals), routing=routing
    ).best(name)


CREST = joined(steady(2.0, 900.0), steady(22.0, 1800.0), steady(2.0, 1800.0))
"""What two quick replicas carry, more than they do, and what they carry again."""


def test_sets_of_one_gpu_are_told_by_their_numbers_too_and_others_are_not():
    sets = (played(FAST, "H100", "6"), played(SLOW, "L40S", "1.5"), played(FAST, "H100", "6", stands_by=True))
    assert [one.name for one in numbered(sets)] == ["tp1 on H100, set 1", "tp1 on L40S", "tp1 on H100, set 3"]
    assert [one.device for one in numbered(sets)] == ["H100, set 1", "L40S", "H100, set 3"]


def test_a_number_is_spread_as_a_plan_spreads_it_the_first_sets_first_and_the_last_sets_go_first():
    made = Estate(around(mixed()))
    made.begin(3)
    assert made.told_each == [2, 1]
    made.tell(7, 10.0)
    assert made.told_each == [2, 5]
    made.tell(100, 20.0)
    assert made.told_each == [2, 6], "what has no room is not asked for"
    made.tell(1, 30.0)
    assert made.told_each == [1, 0]
    assert {one.site for one in made.present} == {0}


def test_each_set_has_its_own_engines_room_nodes_and_costs():
    made = Estate(around(mixed()))
    made.begin(2)
    made.tell_each([2, 5], 0.0)
    states = [(one.site, one.state) for one in made.instances if one.state is not ReplicaState.READY]
    assert states == [(1, ReplicaState.STARTING)] * 4 + [(1, ReplicaState.NODE_COMING)]
    assert {one.engine.times for one in made.instances if one.site == 1} == {SLOW.times}
    made.tell_each([2, 0], 50.0)
    made.close(100.0)
    assert made.seconds_each == [pytest.approx(2 * 2 * 100), pytest.approx(4 * 50)]
    assert made.device_seconds == pytest.approx(600)


@pytest.mark.parametrize("stands_by", [False, True])
def test_a_load_beyond_the_first_set_is_carried_by_the_other_one_too(stands_by: bool):
    told = story(mixed(stands_by=stands_by), CREST)
    first, other = told.outcome.sets
    assert first.replicas_most == 2
    assert other.replicas_most >= 2
    assert other.answered > 1000
    assert first.answered + other.answered == told.outcome.figures.requests
    assert first.gpu_hours + other.gpu_hours == pytest.approx(told.outcome.figures.gpu_hours)
    alone = replace(SCENARIO, hardware=FAST.hardware, most=2)
    beside = Comparison(
        Stage(scenario=alone, world=world(hardware=FAST.hardware), arrivals=CREST), routing=Routing.POOL
    ).best("plimsoll")
    assert told.slo_pct > beside.slo_pct + 5


def test_a_set_that_stands_by_is_grown_onto_only_once_the_others_find_no_more_devices():
    grown, waited = (story(mixed(stands_by=stands), CREST).outcome for stands in (False, True))
    calm = [max(ready for at, ready in one.sets[1].ready if at < 900) for one in (grown, waited)]
    assert calm[1] == 0
    full = next(at for at, ready in waited.sets[1].ready if ready)
    first = [ready for at, ready in waited.sets[0].ready if at <= full]
    assert max(first) == 2, "both quick ones were there before"


def test_replicas_that_are_there_from_the_beginning_are_known_though_their_set_only_stands_by():
    told = story(mixed(stands_by=True), steady(22.0, 300.0)).outcome
    assert told.sets[1].ready[0][1] >= 1
    assert min(ready for _, ready in told.sets[1].ready) >= 1


def test_what_is_dear_for_what_it_carries_goes_first_as_in_the_law():
    told = story(mixed(), CREST).outcome
    assert told.sets[1].ready[-1][1] >= told.sets[0].ready[-1][1]
    assert any(action.reason == "LoadFell" for action in told.actions)


def test_a_budget_holds_for_all_sets_together():
    limits = Limits(devices=Fraction(6))
    told = story(mixed(limits=limits), CREST)
    assert told.outcome.figures.replicas_most <= 6
    first, other = (one.replicas_most for one in told.outcome.sets)
    assert 2 * first + other <= 6 + 1, "a replica that leaves may be counted beside one that comes"
    constant = story(mixed(limits=limits), CREST, "static_peak").outcome
    assert (constant.sets[0].replicas_most, constant.sets[1].replicas_most) == (2, 2)


def test_where_a_budget_holds_all_sets_the_report_says_so_and_counts_no_replica_beyond_it():
    scenario = mixed(limits=Limits(devices=Fraction(4)))
    assert scenario.most > scenario.room == 2
    told, constant = (story(scenario, CREST, name) for name in ("plimsoll", "static_peak"))
    assert constant.parameter == 2
    said = "; ".join(conclusions(scenario, (told, constant), CREST.span_s))
    assert "even 2 replicas all the time, the most there may be" in said
    assert "with all 2 replicas that there may be: raise the budget; the fleet has room for 8" in said


def test_behind_a_service_the_slow_get_as_many_as_the_quick_and_from_an_inference_pool_fewer():
    scenario, arrivals = mixed(), steady(14.0, 1200.0)
    shares = {}
    for routing in Routing:
        stage = Stage(scenario=scenario, world=around(scenario), arrivals=arrivals)
        first, other = Comparison(stage, routing=routing).run("static_peak", 4).outcome.sets
        shares[routing] = other.answered / first.answered
    assert shares[Routing.SERVICE] == pytest.approx(1.0, abs=0.15)
    assert shares[Routing.POOL] < 0.8


@pytest.mark.parametrize("name", ["keda", "oracle", "dynamo"])
def test_others_get_their_numbers_of_the_first_set_first(name: str):
    told = story(mixed(), CREST, name).outcome
    first, other = told.sets
    assert first.replicas_most == 2
    assert 1 <= other.replicas_most <= 6
    assert first.replicas_mean / 2 > other.replicas_mean / 6


def test_an_oracle_knows_that_it_takes_more_of_the_slow_ones():
    stage = Stage(scenario=mixed(), world=around(mixed()), arrivals=CREST)
    assert stage.replicas(1.5) == 2
    assert stage.replicas(3.0) == 4, "two quick ones, and two that are half as quick"


def test_money_is_that_of_each_sets_own_hours():
    told = story(mixed(), CREST)
    first, other = told.outcome.sets
    assert cost_of(mixed(), told) == pytest.approx(first.gpu_hours * 3 + other.gpu_hours * 1.5)


def test_a_prompt_is_beyond_reach_only_where_no_set_computes_it_in_time():
    tight = Slo(ttft_p99_s=0.1)
    slow = replace(world(slo=tight), times=SLOW.times)
    both = replace(slow, beside=(FAST,))
    assert longest_in_time(both) == longest_in_time(world(slo=tight))
    assert (longest_in_time(slow) or 0) < (longest_in_time(both) or 0)


def test_the_same_seed_is_the_same_world_and_the_first_sets_is_that_of_the_set_alone():
    alone = replace(SCENARIO, hardware=FAST.hardware).world(3)
    both = mixed().world(3)
    assert (alone.times, alone.limits) == (both.times, both.limits)
    assert both == mixed().world(3)
    assert both.beside[0].times != SLOW.times, "off by its own factors"


# As they are planned

FEW = pool("L40S-48GB", 4, 1)
BESIDE = pool("H100-SXM-80GB", 2, 1)


def scenario(*pools, **spec: Any) -> Scenario:
    workload = {"preset": "chat", "requestsPerSecond": spec.pop("rate", "2")}
    asked = deployment(
        workload=workload, slo={"ttftP99Ms": 3000, "itlP99Ms": 100}, topology={"tensor": 1}, **spec
    )
    there, known, config = inventory(*pools), facts(asked), OperatorConfig()
    made = plan(asked, there, known)
    return scenario_of(
        made,
        read(asked, there, known, NOTHING, config),
        further=lambda: further(asked, there, known, made, learned=NOTHING, config=config),
    )


def test_what_stands_by_is_found_by_the_planner_where_the_first_set_has_no_room_for_all():
    made = scenario(FEW, BESIDE, scaling={"max": 5})
    assert [(one.gpu, one.stands_by) for one in made.sets] == [("L40S-48GB", False), ("H100-SXM-80GB", True)]
    assert made.most == 5
    assert made.room == 6


@pytest.mark.parametrize(
    ("pools", "spec"),
    [
        ((FEW, BESIDE), {"scaling": {"max": 2}}),
        ((FEW,), {"scaling": {"max": 6}}),
        ((FEW, BESIDE), {}),
        ((FEW, BESIDE), {"replicas": 5}),
    ],
    ids=[
        "the first has room for all",
        "nothing else is there",
        "it is not scaled by the load",
        "a person fixed the number",
    ],
)
def test_no_set_stands_by_where_none_would(pools: tuple[Any, ...], spec: dict[str, Any]):
    assert not any(one.stands_by for one in scenario(*pools, **spec).sets)


def test_the_sets_of_a_mixed_plan_are_all_played_and_none_of_them_stands_by():
    made = scenario(FEW, BESIDE, rate="100", scaling={"max": 10})
    assert len(made.sets) == 2
    assert not any(one.stands_by for one in made.sets)
    assert made.capacity == made.sets[0].capacity
    assert made.hardware == made.sets[0].hardware
