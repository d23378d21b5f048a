"""Which used up quotas are warned of: those that any further replica counts in."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, deployment, look, serving_pod, workload

GPU, SLICE = "requests.nvidia.com/gpu", "requests.nvidia.com/mig-1g.5gb"


def full(**spec: object) -> Object:
    pods = {"pods": "10"}
    metadata = {"name": "q", "namespace": "team"}
    return {"metadata": metadata, "spec": {"hard": pods, **spec}, "status": {"hard": pods, "used": pods}}


def of_scope(name: str, operator: str = "Exists", *values: str) -> Object:
    expression = {"scopeName": name, "operator": operator} | ({"values": list(values)} if values else {})
    return {"matchExpressions": [expression]}


@pytest.mark.parametrize(
    "quota",
    [
        full(scopeSelector=of_scope("PriorityClass", "In", "high")),
        full(scopes=["BestEffort"]),
        full(scopes=["NotTerminating"], scopeSelector=of_scope("PriorityClass", "In", "high")),
    ],
)
def test_a_quota_of_pods_among_which_a_replica_need_not_be_is_not_warned_of(quota: Object) -> None:
    """Where it is one of them, the refusal tells."""
    assert diagnose(look(quotas=(quota,))).found == ()


@pytest.mark.parametrize(
    "quota",
    [
        full(),
        full(scopes=["NotTerminating", "NotBestEffort"]),
        full(scopeSelector=of_scope("NotBestEffort")),
    ],
)
def test_a_quota_in_which_each_replica_counts_is(quota: Object) -> None:
    assert [one.reason for one in diagnose(look(quotas=(quota,))).found] == ["QuotaUsedUp"]


def of_devices(**amounts: str) -> Object:
    """Of all that it allows, all is used."""
    return {"metadata": {"name": "q", "namespace": "team"}, "status": {"hard": amounts, "used": amounts}}


def asking(*devices: str) -> Object:
    """Of which no pod was made yet."""
    engine = {"name": "engine", "resources": {"requests": {"cpu": "4"} | dict.fromkeys(devices, "1")}}
    found = workload()
    return found | {"spec": found["spec"] | {"template": {"spec": {"containers": [engine]}}}}


@pytest.mark.parametrize(
    ("amounts", "others", "told"),
    [
        ({SLICE: "0"}, {}, ""),
        ({SLICE: "7", GPU: "8"}, {}, f"{GPU} 8 of 8;"),
        ({GPU: "0"}, {"pods": (), "workloads": (asking("nvidia.com/gpu"),)}, f"{GPU} 0 of 0;"),
        ({GPU: "8"}, {"pods": (), "workloads": (asking(),)}, ""),
        ({SLICE: "0", GPU: "8"}, {"pods": (), "workloads": ()}, f"{GPU} 8 of 8;"),
        ({"pods": "0"}, {"pods": (), "workloads": ()}, "pods 0 of 0;"),
    ],
    ids=["a ban", "used by others", "asked for", "a model on cores", "nothing seen", "no pods"],
)
def test_a_quota_of_devices_that_nobody_here_asks_for_is_not_warned_of(
    amounts: Object, others: Object, told: str
) -> None:
    """Where nothing is seen that asks for any, those count that somebody may have."""
    found = diagnose(look(quotas=(of_devices(**amounts),), **others)).found
    assert len(found) == bool(told)
    assert all(f"used up: {told} no" in one.message for one in found)


def test_a_deployment_of_which_nothing_is_seen_may_ask_for_any_device_whatever_others_ask_for() -> None:
    """As where a quota keeps the first of its pods out."""
    small, big = deployment(), deployment()
    big["metadata"]["name"] = "big"
    quota, on_cores = of_devices(**{GPU: "8"}), asking()
    seen = {"quotas": (quota,), "pods": (), "workloads": (on_cores,)}
    assert diagnose(look(**seen, deployments=(small,))).found == ()
    found = diagnose(look(**seen, deployments=(small, big))).found
    assert "QuotaUsedUp" in [one.reason for one in found]


def test_devices_that_another_namespace_asks_for_count_in_no_quota_of_this_one() -> None:
    other = serving_pod()
    other["metadata"]["namespace"] = "other"
    quota = of_devices(**{GPU: "0"})
    assert diagnose(look(quotas=(quota,), pods=(other,), workloads=(asking(),))).found == ()
