"""What a plan says that a replica carries is what its limits allow, whatever little was declared."""

from dataclasses import replace

import pytest

from plimsoll.control.capacity import NEAR, SURE, capacity_of
from tests.planning.asking import deployment, planned, pool


def capacity(**workload):
    lengths = {"inputTokens": {"p50": 800, "p95": 2000}, "outputTokens": {"p50": 200, "p95": 400}}
    asked = deployment(
        workload={**lengths, "contextTokens": 8192, **workload}, slo={"ttftP99Ms": 2000, "itlP99Ms": 60}
    )
    (one,) = planned(asked, pool(nodes=2)).sets
    return one, capacity_of(one)


LOADS = [{}, {"requestsPerSecond": "0.5"}, {"requestsPerSecond": "30"}, {"concurrency": 4}]


@pytest.mark.parametrize("workload", LOADS, ids=str)
def test_a_replica_carries_as_much_whatever_load_is_declared(workload):
    _, declared = capacity(**workload)
    _, nothing = capacity()
    assert declared.concurrency == nothing.concurrency
    assert declared.requests_per_second == pytest.approx(nothing.requests_per_second)
    assert declared.requests_per_second > 1


def test_a_plan_of_the_release_before_says_only_what_it_predicted_for_nearly_as_many():

    one, known = capacity(requestsPerSecond="0.5")
    before = replace(one, most_per_second=None)
    assert before.load.concurrency < NEAR * before.max_concurrency
    assert capacity_of(before).requests_per_second is None
    full = replace(before, load=replace(before.load, concurrency=before.max_concurrency))
    assert capacity_of(full).requests_per_second == before.performance.requests_per_second
    assert known.requests_per_second == pytest.approx(SURE * one.most_per_second)
