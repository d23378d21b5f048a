"""Which pods a node that could be made would hold: the scheduler's rules, as far as pods here use them."""

from typing import Any

import pytest

from cluster.growth import amounts, fits, is_waiting, may_go, minus, requested


def node(**labels: str) -> dict[str, Any]:
    taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    return {"metadata": {"labels": {"zone": "a", **labels}}, "spec": {"taints": taints}}


def pod(**spec: Any) -> dict[str, Any]:
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    return {"spec": {"tolerations": tolerations, "containers": [{"name": "main"}], **spec}}


def affinity(**expression: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", **expression}]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("spec", "goes"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"tolerations": []}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "dedicated", "value": "cpu"}]}, False),
        ({"tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}]}, False),
        ({"affinity": affinity(operator="In", values=["a", "b"])}, True),
        ({"affinity": affinity(operator="In", values=["b"])}, False),
        ({"affinity": affinity(operator="NotIn", values=["b"])}, True),
        ({"affinity": affinity(operator="Exists")}, True),
        ({"affinity": affinity(operator="DoesNotExist")}, False),
    ],
)
def test_a_pod_may_go_where_its_selector_its_affinity_and_its_tolerations_let_it(spec, goes):
    assert may_go(pod(**spec), node()) is goes


def test_an_affinity_that_is_not_understood_is_no_guess():
    with pytest.raises(ValueError, match="Gt"):
        may_go(pod(affinity=affinity(operator="Gt", values=["1"])), node())


def test_a_pod_takes_what_its_containers_ask_for_and_one_place():
    containers = [
        {
            "name": "main",
            "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}, "requests": {"cpu": "500m"}},
        },
        {"name": "beside", "resources": {"requests": {"memory": "1Gi", "cpu": "1"}}},
    ]
    wanted = requested(pod(containers=containers))
    assert wanted == {"pods": 1, "nvidia.com/gpu": 2, "cpu": 1500, "memory": 2**30}
    room = amounts({"pods": "110", "nvidia.com/gpu": "4", "cpu": "4", "memory": "8Gi"})
    assert fits(wanted, room)
    once = minus(room, wanted)
    assert fits(wanted, once)
    assert not fits(wanted, minus(once, wanted))


@pytest.mark.parametrize(
    ("conditions", "waits"),
    [
        ([], False),
        ([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], True),
        ([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], False),
        ([{"type": "PodScheduled", "status": "True"}], False),
    ],
)
def test_only_a_pod_that_the_scheduler_found_no_place_for_waits(conditions, waits):
    assert is_waiting({"status": {"conditions": conditions}}) is waits
