"""Load comes in means: of lengths with a declared tail the mean request is longer than a typical one, and a replica carries fewer of them."""

from typing import Any

import pytest

from plimsoll.planning.ask.intent import read_intent
from plimsoll.planning.plan import Origin
from tests.planning.asking import LLAMA, deployment, planned, pool

EVEN = {"inputTokens": {"p50": 1000}, "outputTokens": {"p50": 200}}


def stretch(**workload: Any) -> float:
    asked = deployment(workload=workload)
    return read_intent("team-a", "chat", asked.spec, lambda _: (Origin.USER, "")).lengths.stretch


@pytest.mark.parametrize(
    ("workload", "times"),
    [
        ({}, 1.0),
        (EVEN, 1.0),
        ({"inputTokens": {"p50": 1000, "p95": 1000}, "outputTokens": {"p50": 200, "p99": 200}}, 1.0),
        ({"inputTokens": {"p50": 1000, "p95": 4000}, "outputTokens": {"p50": 200, "p95": 600}}, 1.40),
        ({"inputTokens": {"p50": 1000, "p99": 7104}, "outputTokens": {"p50": 200, "p95": 600}}, 1.40),
        ({"inputTokens": {"p95": 4000}, "outputTokens": {"p95": 600}}, 1.0),
        (
            {"inputTokens": {"p50": 10, "p95": 4000}, "outputTokens": {"p50": 10}, "contextTokens": 4096},
            205.3,
        ),
    ],
    ids=[
        "nothing declared",
        "medians alone",
        "all alike",
        "a long tail",
        "told by its p99",
        "a tail alone says where the median is taken to be",
        "no mean is longer than the context",
    ],
)
def test_the_mean_request_is_longer_than_a_typical_one_by_its_declared_tail(
    workload: dict[str, Any], times: float
):
    assert stretch(**workload) == pytest.approx(times, rel=0.01)


def test_a_replica_carries_fewer_a_second_of_lengths_with_a_longer_tail():
    def carried(workload: dict[str, Any]) -> float:
        asked = {"workload": {**workload, "requestsPerSecond": "60"}, "topology": {"tensor": 1}}
        (one,) = planned(deployment(LLAMA, **asked), pool(nodes=20)).sets
        return float(one.steady_per_second)

    alike, tail, long = (
        {"inputTokens": {"p50": 1000, "p95": prompt}, "outputTokens": {"p50": 200, "p95": answer}}
        for prompt, answer in ((1000, 200), (4000, 600), (9000, 1500))
    )
    assert carried(alike) > carried(tail) > carried(long)


def test_a_median_alone_is_taken_to_have_a_tail_as_conversations_do():
    def carried(**tails: int) -> float:
        asked = {"workload": {"inputTokens": {"p50": 1000, **tails}, "requestsPerSecond": "60"}}
        (one,) = planned(deployment(LLAMA, **asked, topology={"tensor": 1}), pool(nodes=20)).sets
        return float(one.steady_per_second)

    assert carried() == pytest.approx(carried(p95=3000), rel=0.01)
