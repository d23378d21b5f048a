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


@pytest.mark.parametrize("rate", ["20", "60", "200"])
def test_a_tail_takes_more_gpus_for_the_same_rate(rate: str):
    def gpus(workload: dict[str, Any]) -> int:
        asked = {"workload": {**workload, "requestsPerSecond": rate}}
        made = planned(deployment(LLAMA, **asked), pool(nodes=20))
        assert made.sets, made.findings
        return sum(one.replicas * one.layout.gpus for one in made.sets)

    tail = {"inputTokens": {"p50": 1000, "p95": 4000}, "outputTokens": {"p50": 200, "p95": 600}}
    assert gpus(EVEN) < gpus(tail) <= 1.6 * gpus(EVEN) + 1
