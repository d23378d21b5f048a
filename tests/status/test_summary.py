"""The plan in a few fields, and which of its figures what is measured may be held against."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.planning.plan import Plan
from plimsoll.status.summary import plan_status
from tests.planning.asking import deployment, planned


def running(made: Plan) -> int | None:
    return plan_status(made, config_map=None, pinned_at=None).predicted_running


def made(**spec: Any) -> Plan:
    plan: Plan = planned(deployment(replicas=1, **spec))
    assert len(plan.used) == 1
    return plan


def test_a_prediction_stands_beside_the_number_of_requests_that_it_is_of():
    plan = made()
    performance = plan.used[0].performance
    assert performance is not None
    assert running(plan) == performance.running > 0


@pytest.mark.parametrize(
    "spec",
    [
        {"speculative": {"method": "ngram", "tokens": 3}},
        {"memory": {"cpuOffload": "4Gi"}},
    ],
    ids=str,
)
def test_drafts_and_weights_outside_the_gpu_cost_what_no_prediction_knows(spec: dict[str, Any]):
    plan = made(**spec)
    told = plan_status(plan, config_map=None, pinned_at=None)
    assert told.predicted_itl_ms is not None, "it is told all the same"
    assert told.predicted_running is None


def test_gaps_of_two_kinds_of_engines_are_held_against_neither():
    plan = made()
    twice = replace(plan, sets=(plan.sets[0], replace(plan.sets[0], digest="other")))
    assert running(twice) is None
    stands_by = replace(plan, sets=(plan.sets[0], replace(plan.sets[0], digest="other", replicas=0)))
    assert running(stands_by) == running(plan)


def test_where_nothing_is_predicted_nothing_runs_as_predicted():
    plan = made()
    assert running(replace(plan, sets=(replace(plan.sets[0], performance=None),))) is None
