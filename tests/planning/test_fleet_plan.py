"""Many deployments on one inventory: order, shares of GPUs, budgets, and what the last one is told."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.config import OperatorConfig
from plimsoll.planning.fleet import Request, plan_fleet
from plimsoll.planning.placing.occupancy import occupied
from plimsoll.planning.plan import Outcome
from tests.planning.asking import LLAMA_70B, SMALL, deployment, facts, finding, inventory, pool

CHAT = {"preset": "chat"}


def request(name, *, model=LLAMA_70B, namespace="team-a", created=None, pinned=None, workload=CHAT, **spec):
    asked = deployment(model, name=name, namespace=namespace, created=created, workload=workload, **spec)
    return Request(deployment=asked, facts=facts(asked), pinned=pinned)


def together(requests, *pools, config=None, **others):
    return plan_fleet(
        requests,
        inventory(*(pools or (pool(nodes=1),))),
        config=OperatorConfig.model_validate(config or {}),
        **others,
    )


def by_name(fleet):
    return {plan.name: plan for plan in fleet.plans}


def test_permuting_deployments_and_pools_changes_nothing():
    requests = [request("a"), request("b", model=SMALL), request("c", namespace="team-b")]
    pools = [pool(nodes=1), pool("L40S-48GB", 4)]
    plans = [together(order, *pools) for order in permutations(requests)] + [
        together(requests, *reversed(pools))
    ]
    assert len({tuple(plan.to_bytes() for plan in fleet.plans) for fleet in plans}) == 1
    assert len({fleet.order for fleet in plans}) == 1


def test_gpus_are_given_out_once():
    fleet = together([request(name) for name in "abcdef"], pool(nodes=1))
    assert sum(plan.devices for plan in fleet.plans) <= 8
    use = fleet.pools[0]
    assert use.free_before - use.free_after == sum(plan.devices for plan in fleet.plans)


def test_shares_of_one_gpu_add_up():
    fleet = together(
        [request(name, model=SMALL) for name in "abcde"], pool("A10G-24GB", per_node=4, nodes=1, sharing=4)
    )
    assert [plan.replicas for plan in fleet.plans] == [1, 1, 1, 1, 0]
    assert fleet.plans[-1].outcome is Outcome.SHORT


@pytest.mark.parametrize(
    ("first", "config", "others", "requests"),
    [
        (
            "team-a/b",
            {},
            {},
            [request("b", created="2026-01-01T00:00:00Z"), request("a", created="2026-02-01T00:00:00Z")],
        ),
        ("team-a/a", {}, {}, [request("b"), request("a")]),
        ("team-a/old", {}, {}, [request("new"), request("old", created="2026-01-01T00:00:00Z")]),
        (
            "team-b/z",
            {"budgets": [{"namespace": "team-b", "priority": 10}]},
            {},
            [request("a"), request("z", namespace="team-b")],
        ),
        (
            "team-a/z",
            {},
            {"priority_classes": {"high": 100}},
            [request("a"), request("z", scheduling={"priorityClass": "high"})],
        ),
    ],
    ids=["age", "name", "what exists comes first", "namespace", "priority class"],
)
def test_the_order_goes_by_priority_then_age_then_name(first, config, others, requests):
    fleet = together(requests, config=config, **others)
    assert fleet.order[0] == first


def test_who_gets_nothing_is_told_who_got_it_and_what_would_help():
    fleet = together([request("a", replicas=4), request("b")], pool(nodes=1))
    loser = by_name(fleet)["b"]
    assert loser.outcome is Outcome.SHORT
    told = finding(loser, "Outranked")
    assert "team-a/a" in told.message
    assert told.remedy is not None
    assert "priority" in told.remedy


def test_a_budget_is_shared_by_the_deployments_of_a_namespace():
    config = {"budgets": [{"namespace": "team-a", "gpus": 3}]}
    requests = [request(name, model=SMALL, replicas=2) for name in "ab"] + [
        request("c", model=SMALL, namespace="team-b", replicas=2)
    ]
    fleet = by_name(together(requests, config=config))
    assert [fleet[name].replicas for name in "abc"] == [2, 1, 2]
    assert finding(fleet["b"], "BudgetExhausted")


def test_what_pods_hold_stays_with_its_owner_whoever_comes():
    config = {"budgets": [{"namespace": "team-b", "priority": 100}]}
    serving = pool(free={0: 1}, held={"team-a/old": 8})
    old = request("old", replicas=4)
    pinned = by_name(together([old]))["old"]
    old = request("old", replicas=4, pinned=pinned)
    fleet = by_name(together([old, request("new", namespace="team-b")], serving, config=config))
    assert fleet["old"].replicas == 4
    assert fleet["new"].replicas == 0


def test_reservations_are_not_given_out_again():
    one = pool(nodes=1)
    fleet = together([request("a")], one, reserved={one.key: 7})
    assert fleet.plans[0].replicas == 0
    assert fleet.pools[0].free_before == 1


def test_a_node_to_be_made_that_others_were_promised_is_left_for_other_hardware():
    made = pool("L4-24GB", 8, 0, free={}, declared_nodes=1, promised={0: 1}, price_per_hour="1")
    alone, beside = (
        together([request("a", model=SMALL)], one, pool(nodes=1, price_per_hour="9"))
        for one in (replace(made, promised={}), made)
    )
    assert [each.plans[0].sets[0].hardware.gpu for each in (alone, beside)] == ["L4-24GB", "H100-SXM-80GB"]


def test_declared_nodes_are_used_up_like_others():
    fleet = together([request(name, replicas=4) for name in "ab"], pool(free={}, declared_nodes=1))
    assert [plan.replicas for plan in fleet.plans] == [4, 0]


def test_shares_of_one_gpu_add_up_to_a_budget_of_one_gpu():
    config = {"budgets": [{"namespace": "team-a", "gpus": 1}]}
    shared = pool("L4-24GB", 4, sharing=4)
    fleet = by_name(together([request(name, model=SMALL) for name in "abcde"], shared, config=config))
    assert [fleet[name].replicas for name in "abcde"] == [1, 1, 1, 1, 0]


def test_who_spent_a_budget_is_told_to_the_one_it_did_not_reach():
    config = {"budgets": [{"namespace": "team-a", "gpus": 2}]}
    last = by_name(together([request(name, model=SMALL, replicas=2) for name in "ab"], config=config))["b"]
    assert last.outcome is Outcome.SHORT
    assert "the budget leaves 0 GPUs" in finding(last, "BudgetExhausted").message
    assert "went first to team-a/a" in finding(last, "Outranked").message


def test_a_newcomer_takes_nothing_of_a_budget_that_serves_another():
    config = {"budgets": [{"namespace": "team-a", "gpus": 4}]}
    old = request("old", replicas=4)
    pinned = by_name(together([old]))["old"]
    fleet = by_name(together([request("new"), request("old", replicas=4, pinned=pinned)], config=config))
    assert (fleet["old"].replicas, fleet["new"].replicas) == (4, 0)


def running(fleet, pools):
    """The pools once the pods of a fleet's plans are there."""
    left = {one.key: one for one in pools}
    for plan in fleet.plans:
        owner = f"{plan.namespace}/{plan.name}"
        for chosen in plan.sets:
            for place in chosen.placements:
                one = occupied(left[place.pool], place, chosen.shape, owner)
                held = one.held[owner] + place.replicas * chosen.devices_per_replica
                left[place.pool] = replace(one, held={**one.held, owner: held})
    return tuple(left.values())


ASKED = st.fixed_dictionaries(
    {
        "model": st.sampled_from([SMALL, LLAMA_70B]),
        "namespace": st.sampled_from(["team-a", "team-b"]),
        "spec": st.sampled_from(
            [
                {},
                {"replicas": 0},
                {"replicas": 5},
                {"workload": {**CHAT, "concurrency": 900}},
                {"workload": {**CHAT, "concurrency": 900}, "scaling": {"min": 1, "max": 2}},
                {"workload": {**CHAT, "requestsPerSecond": "30"}},
            ]
        ),
    }
)


@given(
    asked=st.lists(ASKED, min_size=1, max_size=3),
    free=st.integers(0, 8),
    declared=st.integers(0, 1),
    budget=st.integers(0, 12),
)
@settings(max_examples=25, deadline=None)
def test_a_fleet_planned_again_once_its_pods_run_is_the_same_fleet(asked, free, declared, budget):
    pools = (pool(free={free: 1, 3: 1}, declared_nodes=declared), pool("L4-24GB", 4, 2, sharing=1))
    config = {"budgets": [{"namespace": "team-a", "gpus": budget}]}
    requests = [
        request(
            f"d{index}", model=one["model"], namespace=one["namespace"], **{"workload": CHAT} | one["spec"]
        )
        for index, one in enumerate(asked)
    ]
    first = together(requests, *pools, config=config)
    assert sum(plan.devices for plan in first.plans if plan.namespace == "team-a") <= budget
    pinned = by_name(first)
    again = together(
        [replace(one, pinned=pinned[one.deployment.name]) for one in requests],
        *running(first, pools),
        config=config,
    )
    ran = [[(one.digest, one.replicas) for one in plan.sets] for plan in first.plans]
    assert [[(one.digest, one.replicas) for one in plan.sets] for plan in again.plans] == ran
