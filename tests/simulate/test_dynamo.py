"""The Dynamo-like planner: a floor from the load, and single steps from latency."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.simulate.policies.dynamo import FLOOR_EVERY_S, Dynamo, Profile
from tests.simulate.views import INF, latencies, view, wish
from tests.simulate.worlds import LIMITS, SLO, TIMES

PROFILE = Profile(times=TIMES, limits=LIMITS, slo=SLO)


def planner(each: float, every: float = FLOOR_EVERY_S) -> Dynamo:
    """One that takes a replica to carry so many requests a second of 300 tokens and answers of 100."""
    return Dynamo(PROFILE, each / PROFILE.carries(300, 100), every)


def served(finished: float) -> dict[str, Any]:
    return latencies(finished, 1.0, 0.07, finished)


def test_dynamo_sets_a_floor_from_arrivals_and_steps_from_latency():
    policy = planner(2.0)
    for tick in range(1, 13):
        now = 15.0 * tick
        policy.decide(view(now, *[latencies(50.0 * tick, 1.0, 0.07, 60.0 * tick)] * 2))
    wanted = policy.decide(view(375.0, *[latencies(2000.0, 1.0, 0.07, 1500.0)] * 2))
    assert wanted is not None
    assert (wanted.reason, wanted.replicas) == ("Floor", 4)
    slow = planner(100.0)
    slow.decide(view(15.0, *[latencies(50.0, 5.0, 0.07, 50.0)] * 2))
    assert wish(slow, view(30.0, *[latencies(100.0, 5.0, 0.07, 100.0)] * 2)) == 3
    assert slow.decide(view(45.0, *[latencies(150.0, 5.0, 0.07, 150.0)] * 2, pending=1)) is None
    quick = planner(100.0, 15.0)
    quick.decide(view(15.0, *[latencies(50.0, 0.1, 0.02, 50.0)] * 3))
    assert wish(quick, view(30.0, *[latencies(100.0, 0.1, 0.02, 100.0)] * 3)) == 2
    near = planner(100.0, 15.0)
    near.decide(view(15.0, *[latencies(50.0, 1.8, 0.02, 50.0)] * 3))
    assert near.decide(view(30.0, *[latencies(100.0, 1.8, 0.02, 100.0)] * 3)) is None, (
        "within 80% of a target"
    )


def test_dynamo_sets_its_floor_as_often_as_it_is_told():
    def floors(every: float) -> list[float]:
        policy = planner(2.0, every)
        seen = [
            view(15.0 * tick, *[latencies(50.0 * tick, 1.0, 0.07, 60.0 * tick)] * 2) for tick in range(1, 41)
        ]
        return [here.now for here in seen if (told := policy.decide(here)) and told.reason == "Floor"]

    assert floors(60.0)[0] == 60.0
    assert floors(180.0)[0] == 180.0


@pytest.mark.parametrize("later", [4, 5], ids=["one left", "one began anew"])
def test_dynamo_counts_what_came_to_a_replica_that_left_or_began_anew(later: int):
    """Five replicas got a request a second each until just before the floor is set."""
    policy = planner(0.55)
    for now in range(15, 180, 15):
        policy.decide(view(now, *[served(float(now))] * 5))
    last = [served(180.0)] * 4 + [served(10.0)] * (later - 4)
    wanted = policy.decide(view(180.0, *last))
    assert wanted is not None
    assert (wanted.reason, wanted.replicas) == ("Floor", 10 if later == 5 else 9)


def test_dynamo_asks_for_more_where_prompts_of_the_interval_are_longer():
    def floor(prompt: float) -> int:
        policy = planner(1.0)
        told = served(360.0) | {"prompt_lengths": Histogram((INF,), (360.0,), 360 * prompt)}
        return wish(policy, view(180.0, *[told] * 2))

    assert floor(300.0) == 4
    assert floor(1500.0) > 6


def test_a_replica_carries_what_its_largest_batch_within_the_targets_does():
    free = replace(PROFILE, slo=Slo())
    # 32 places, each step with 32 / 100 of a prompt.
    step = TIMES.decode[32] + TIMES.kv_token * 32 * 350 + 32 / 100 * TIMES.prompt(300)
    assert free.carries(300, 100) == pytest.approx(32 / (100 * step))
    tight = replace(PROFILE, slo=Slo(itl_p99_s=0.03))
    assert 0 < tight.carries(300, 100) < free.carries(300, 100)
    assert replace(PROFILE, slo=Slo(itl_p99_s=0.001)).carries(300, 100) > 0, "one at a time, though late"
    assert replace(PROFILE, slo=Slo(ttft_p99_s=0.06)).carries(300, 100) < free.carries(300, 100)


@pytest.mark.parametrize(("replicas", "expected"), [(2, 2), (10, 9)])
def test_dynamo_lets_one_go_only_where_the_others_would_be_in_time_with_its_share(
    replicas: int, expected: int
):
    policy = planner(1000.0, 15.0)
    policy.decide(view(15.0, *[served(50.0)] * replicas))
    assert wish(policy, view(30.0, *[served(100.0)] * replicas)) == expected
