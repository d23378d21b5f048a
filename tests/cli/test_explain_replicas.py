"""The number of replicas is explained as every other value is: by its formula, its inputs, and who decided it."""

import json
from math import ceil
from typing import Any

import pytest

from tests.cli.running import plimsoll
from tests.cli.test_plan import resource

LENGTHS = {"inputTokens": {"p50": 1000, "p95": 4000}, "outputTokens": {"p50": 200, "p95": 600}}


def explained(*, fleet: str = "16xH100", **spec: Any) -> dict[str, Any]:
    asked = ("explain", "-f", "-", "--fleet", fleet, "replicas", "-o", "json")
    ran = plimsoll(*asked, stdin=resource("chat", **spec))
    assert ran.code == 0, ran.err
    (value,) = json.loads(ran.out)[0]["values"]
    return dict(value)


def test_of_a_declared_rate_the_inputs_give_the_number():
    value = explained(
        workload={**LENGTHS, "requestsPerSecond": "100"}, slo={"itlP99Ms": 40}, scaling={"min": 1, "max": 30}
    )
    inputs = value["inputs"]
    assert inputs["requestsPerSecond"] == "100"
    assert (inputs["scaling.min"], inputs["scaling.max"]) == ("1", "30")
    carries = float(inputs["a replica carries"].removesuffix(" a second, as users send them"))
    assert int(value["value"]) == ceil(100 / carries) > 1
    assert value["formula"].endswith(": requestsPerSecond / what a replica carries, rounded up")


def test_of_requests_in_flight_the_inputs_give_the_number():
    value = explained(workload={**LENGTHS, "concurrency": 1000}, slo={"itlP99Ms": 40})
    inputs = value["inputs"]
    assert inputs["concurrency"] == "1000"
    assert inputs["scaling.max"] == "not set"
    assert int(value["value"]) == ceil(1000 / int(inputs["a replica carries"].removesuffix(" in flight"))) > 1
    assert value["formula"].endswith(": concurrency / what a replica carries, rounded up")


@pytest.mark.parametrize(
    ("spec", "inputs", "source"),
    [
        ({"scaling": {"min": 2, "max": 8}}, {"scaling.min": "2", "scaling.max": "8"}, "load and bounds"),
        ({"replicas": 3}, {"replicas": "3"}, "user"),
    ],
    ids=["no load is declared", "a person fixed it"],
)
def test_without_a_load_the_bounds_are_what_there_is(
    spec: dict[str, Any], inputs: dict[str, str], source: str
):
    value = explained(**spec)
    assert value["inputs"] == inputs
    assert value["source"] == source
    assert "rounded up" not in value["formula"]


def test_sets_on_several_kinds_of_hardware_each_say_what_a_replica_of_them_carries():
    value = explained(
        fleet="2xH100,4xL40S", workload={**LENGTHS, "requestsPerSecond": "40"}, slo={"itlP99Ms": 80}
    )
    assert value["inputs"]["a replica carries"].count(" a second, as users send them on ") == 2
