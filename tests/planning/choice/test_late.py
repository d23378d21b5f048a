"""Targets are about 99 of 100 requests as users send them: what is planned for a rate, and what is told where not all of it can be kept."""

from typing import Any

import pytest

from plimsoll.planning.choice.late import PARTLY
from plimsoll.planning.choice.targets import UNATTAINABLE
from tests.planning.asking import LLAMA_70B, QWEN_32B, deployment, finding, planned, pool, reasons

LENGTHS = {"inputTokens": {"p50": 1000, "p95": 4000}, "outputTokens": {"p50": 200, "p95": 600}}


def made(rate: str, *, model: str = QWEN_32B, nodes: int = 5, lengths: Any = LENGTHS, slo: Any, **spec: Any):
    workload = {**lengths, "contextTokens": 16384, "requestsPerSecond": rate}
    return planned(deployment(model, workload=workload, slo=slo, **spec), pool(nodes=nodes))


def sets(plan: Any) -> list[tuple[int, str]]:
    return [(one.replicas, str(one.layout)) for one in plan.sets]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [("2", [(1, "tp2")]), ("4.1", [(1, "tp2")]), ("6", [(2, "tp2")]), ("20", [(5, "tp2")])],
)
def test_the_replicas_of_a_rate_are_those_that_a_simulation_finds_to_be_enough(rate, expected):
    """By steps of one GPU alone 2 at 4.1 a second would keep 64% of the requests in time, and 8 be needed."""
    plan = made(rate, slo={"ttftP99Ms": 2000, "itlP99Ms": 60})
    assert sets(plan) == expected
    assert PARTLY not in reasons(plan)
    assert all(one.meets_slo for one in plan.sets)


def test_a_replica_is_shown_at_the_load_that_it_will_have():
    (one,) = made("6", slo={"ttftP99Ms": 2000, "itlP99Ms": 60}).sets
    assert 3 <= one.steady_per_second < one.most_per_second
    assert one.load.concurrency < one.max_concurrency


HARD = {"ttftP99Ms": 300, "itlP99Ms": 40}


def test_where_no_layout_keeps_99_of_100_it_is_said_with_what_would_be_kept():
    plan = made("6", slo=HARD)
    found = finding(plan, PARTLY)
    assert UNATTAINABLE not in reasons(plan)
    assert (found.field, found.value) == ("slo.ttftP99Ms", "300")
    assert "% even where nobody else is there" in found.message
    assert plan.sets[0].meets_slo is False
    least = int(found.remedy.split()[2].replace(",", ""))
    again = made("6", slo={**HARD, "ttftP99Ms": least})
    assert PARTLY not in reasons(again)
    assert again.sets[0].meets_slo is True


def test_a_layout_that_keeps_it_is_taken_before_a_cheaper_one_that_nearly_does():
    plan = made("6", slo={"ttftP99Ms": 1000, "itlP99Ms": 40}, nodes=9)
    assert all(one.meets_slo for one in plan.sets)
    alone = made("6", slo={"ttftP99Ms": 1000, "itlP99Ms": 40}, nodes=9, topology={"tensor": 1})
    assert PARTLY in reasons(alone)
    assert alone.cost.gpu_hours_per_hour <= 16


def test_a_promise_that_cannot_be_kept_costs_at_most_twice():
    eased = made("6", slo={"itlP99Ms": 40}, topology={"tensor": 2})
    asked = made("6", slo=HARD, topology={"tensor": 2})
    assert asked.sets[0].replicas <= 2 * eased.sets[0].replicas + 1


def test_without_a_promise_replicas_are_not_filled_to_the_last_place():
    (one,) = made("60", slo={}).sets
    assert 0.6 * one.most_per_second < one.steady_per_second < one.most_per_second
    assert one.meets_slo is None


def test_requests_in_flight_are_still_what_is_declared():
    workload = {**LENGTHS, "concurrency": 64}
    (one,) = planned(deployment(LLAMA_70B, workload=workload), pool(nodes=2)).sets
    assert one.steady_per_second is None


def test_a_prompt_s_beginning_that_is_in_the_cache_is_not_waited_for():
    def carried(percent: int) -> float:
        shared = {**LENGTHS, "sharedPrefixPercent": percent}
        (one,) = made("20", slo={"ttftP99Ms": 2000}, lengths=shared, topology={"tensor": 2}).sets
        return float(one.steady_per_second)

    assert carried(80) > 1.2 * carried(0)


def test_where_no_load_is_declared_a_layout_that_carries_far_more_is_told_of():
    spec = {"slo": {"ttftP99Ms": 2000, "itlP99Ms": 60}, "workload": {**LENGTHS, "contextTokens": 16384}}
    made = planned(deployment(QWEN_32B, **spec), pool(nodes=5))
    assert sets(made) == [(1, "tp1")]
    told = finding(made, "LoadUndeclared")
    assert "tp2 carries 2.1 requests a second in time on each GPU" in told.message
    assert told.remedy.endswith("topology.tensor: 2")


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 1, "slo": {"ttftP99Ms": 2000}},
        {"slo": {"itlP99Ms": 60}},
        {},
    ],
    ids=["the number is set", "no first token is promised", "nothing is promised"],
)
def test_where_nothing_would_be_gained_it_is_not(spec: Any):
    workload = {**LENGTHS, "contextTokens": 16384}
    assert "LoadUndeclared" not in reasons(planned(deployment(QWEN_32B, workload=workload, **spec), pool()))
