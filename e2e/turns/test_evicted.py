"""A node ends a pod as a whole. Its Deployment makes another one and leaves the ended one where it is: that must hold up nothing."""

from __future__ import annotations

import pytest

from common import eventually
from turns.running import Desk, Operator


def evict(desk: Desk, name: str) -> None:
    """As a kubelet whose node is low on memory writes it."""
    path = f"/api/v1/namespaces/{desk.namespace}/pods/{name}/status"
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    desk.cluster.api.patch(path, {"status": status})


@pytest.mark.parametrize("strategy", ["replace", "surge"])
def test_an_edit_rolls_out_and_a_stop_ends_though_an_evicted_pod_is_left(
    operator: Operator, desk: Desk, strategy: str
) -> None:
    rollout = {"strategy": strategy}
    desk.apply(replicas=1, rollout=rollout)
    assert desk.says("Ready", "True", "Serving")
    (old,), (evicted,) = desk.deployments(), desk.pods()
    evict(desk, evicted["metadata"]["name"])
    assert eventually(lambda: len(desk.pods()) == 2)
    assert eventually(lambda: operator.rests() and desk.condition("Ready") == ("True", "Serving"))

    desk.apply(replicas=1, rollout=rollout, workload={"contextTokens": 8192})
    assert eventually(lambda: len(desk.deployments()) == 1 and old not in desk.deployments())
    assert desk.says("Ready", "True", "Serving")
    assert desk.says("Progressing", "True", "RolledOut")

    (now,) = (one for one in desk.pods() if one["metadata"]["uid"] != evicted["metadata"]["uid"])
    evict(desk, now["metadata"]["name"])
    desk.apply(replicas=0, rollout=rollout, workload={"contextTokens": 8192})
    assert desk.says("Ready", "True", "Stopped")
