"""How many replicas a story may have, and what is said of it: as the operator would have them."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.learned import NOTHING
from plimsoll.planning.ask.reading import read
from plimsoll.planning.planner import plan
from plimsoll.simulate.scenario import Scenario, scenario_of
from tests.planning.asking import deployment, facts, inventory, pool


def scenario(**spec: Any) -> Scenario:
    asked = deployment(workload={"preset": "chat", "requestsPerSecond": "2"}, topology={"tensor": 1}, **spec)
    there, known = inventory(pool(nodes=1)), facts(asked)
    return scenario_of(plan(asked, there, known), read(asked, there, known, NOTHING, OperatorConfig()))


@pytest.mark.parametrize(
    ("spec", "least", "most", "bounded", "fixed"),
    [
        ({"scaling": {"min": 2, "max": 5}}, 2, 5, True, False),
        ({"scaling": {"min": 2, "max": 50}}, 2, 8, True, False),
        ({}, 1, 8, False, False),
        ({"replicas": 3}, 3, 3, True, True),
        ({"replicas": 3, "scaling": {"min": 1, "max": 5}}, 3, 3, True, True),
    ],
    ids=[
        "as scaling says",
        "no more than the fleet has",
        "all that the fleet has, where nothing is said",
        "the number that a person fixed",
        "whatever scaling says beside it",
    ],
)
def test_replicas_are_those_that_the_operator_would_have(
    spec: dict[str, Any], least: int, most: int, bounded: bool, fixed: bool
) -> None:
    made = scenario(**spec)
    assert (made.least, made.most, made.bounded, made.fixed) == (least, most, bounded, fixed)


@pytest.mark.parametrize(
    ("spec", "told"), [({}, True), ({"scaling": {"max": 4}}, False), ({"replicas": 2}, False)]
)
def test_that_the_operator_would_not_follow_the_load_is_said(spec: dict[str, Any], told: bool) -> None:
    assert any("without scaling.max" in said for said in scenario(**spec).left_out) == told
