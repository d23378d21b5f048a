"""What is told of two plans that look alike."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.planning.apart import apart
from plimsoll.planning.pinning import saving
from plimsoll.planning.placing.cost import rescaled, total_cost
from plimsoll.planning.plan import Plan
from plimsoll.planning.settings import Speculation
from tests.planning.asking import deployment, planned


def with_settings(plan: Plan, digest: str = "other", **changed: Any) -> Plan:
    sets = [replace(one, digest=digest, settings=replace(one.settings, **changed)) for one in plan.sets]
    return replace(plan, sets=tuple(sets))


@pytest.fixture(scope="module")
def plan() -> Plan:
    made = planned(deployment(engine={"maxSequences": 64}))
    assert isinstance(made, Plan)
    return made


def test_each_setting_that_differs_is_named_with_both_values(plan: Plan) -> None:
    fresh = with_settings(plan, max_num_seqs=32, utilization=0.85, kv_dtype="fp8", eager=True)
    old = plan.sets[0].settings
    assert apart(fresh, plan).split(", ") == [
        "max_num_seqs 32 instead of 64",
        f"utilization 0.85 instead of {old.utilization:.4g}",
        "kv_dtype fp8 instead of unset",
        "eager True instead of False",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"selector": {"pool": "new"}}, "nodes of pool=new"),
        ({"selector": {}}, "other nodes"),
        ({"price_per_hour": "9.99"}, ""),
    ],
)
def test_nodes_of_the_same_gpu_that_are_others_are_told(
    plan: Plan, changed: dict[str, Any], said: str
) -> None:
    (one,) = plan.sets
    elsewhere = replace(one, digest="other", hardware=replace(one.hardware, **changed))
    assert apart(replace(plan, sets=(elsewhere,)), plan) == said


def test_what_is_more_than_a_word_is_named_alone(plan: Plan) -> None:
    assert (
        apart(with_settings(plan, speculation=Speculation(method="ngram", tokens=3)), plan)
        == "other speculation"
    )


def test_what_a_replica_carries_at_most_is_compared_and_not_what_it_answers_at_two_loads(plan: Plan) -> None:
    (one,) = plan.sets
    assert one.performance is not None
    slower = replace(one.performance, requests_per_second=0.5 * one.performance.requests_per_second)
    emptier = replace(one, digest="other", performance=slower)
    assert apart(replace(plan, sets=(emptier,)), plan) == ""
    carries = replace(emptier, most_per_second=12.345)
    assert apart(replace(plan, sets=(carries,)), plan) == (
        f"up to 12.35 requests/s a replica instead of {one.most_per_second:.2f}"
    )


def test_what_a_replica_carries_as_users_send_requests_is_compared_where_both_plans_know_it(
    plan: Plan,
) -> None:
    """By that replicas are counted, and it is what `plan` and `simulate` tell of a replica."""
    (one,) = plan.sets
    before = replace(one, most_per_second=6.43, steady_per_second=3.67)
    fresh = replace(one, digest="other", most_per_second=0.54, steady_per_second=0.18)
    assert apart(replace(plan, sets=(fresh,)), replace(plan, sets=(before,))) == (
        "0.18 requests/s a replica as users send them instead of 3.67"
    )
    unrated = replace(before, steady_per_second=None)
    assert apart(replace(plan, sets=(fresh,)), replace(plan, sets=(unrated,))) == (
        "up to 0.54 requests/s a replica instead of 6.43"
    )


def test_of_a_plan_of_the_release_before_the_same_load_is_compared_and_no_other(plan: Plan) -> None:
    (one,) = plan.sets
    assert one.performance is not None
    slower = replace(one.performance, requests_per_second=0.5)
    older = replace(plan, sets=(replace(one, most_per_second=None),))
    told = f"0.50 requests/s a replica at its load instead of {one.performance.requests_per_second:.2f}"
    assert apart(replace(plan, sets=(replace(one, digest="other", performance=slower),)), older) == told
    lighter = replace(one, digest="other", performance=slower, load=replace(one.load, concurrency=3))
    assert apart(replace(plan, sets=(lighter,)), older) == ""


def test_where_the_layout_or_the_hardware_is_another_that_says_it(plan: Plan) -> None:
    (one,) = plan.sets
    fresh = replace(plan, sets=(replace(one, digest="other", layout=replace(one.layout, tensor=8)),))
    assert apart(fresh, plan) == ""
    assert apart(replace(plan, sets=(one, one)), plan) == ""
    assert apart(plan, plan) == ""


def test_of_several_sets_those_that_differ_are_told_by_their_hardware(plan: Plan) -> None:
    (one,) = plan.sets
    two = replace(one, digest="two", hardware=replace(one.hardware, gpu="B200-180GB"))
    before, (changed,) = (
        replace(plan, sets=(one, two)),
        with_settings(replace(plan, sets=(two,)), max_num_seqs=8).sets,
    )
    assert apart(replace(plan, sets=(one, changed)), before) == "on B200-180GB max_num_seqs 8 instead of 64"


def test_a_better_plan_that_looks_like_the_one_that_runs_is_told_by_what_it_does_otherwise(
    plan: Plan,
) -> None:
    sets = tuple(rescaled(one, 2) for one in plan.sets)
    running = replace(plan, sets=sets, cost=total_cost(sets))
    told = saving(running, with_settings(plan, max_num_seqs=128))
    assert told is not None
    assert told.startswith("1 x ")
    assert ", with max_num_seqs 128 instead of 64, would take 1 GPUs instead of 2" in told
