"""Which used up quotas are warned of: those that any further replica counts in."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, look


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
