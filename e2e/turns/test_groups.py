"""Replicas of several pods over nodes: what is made of them, and what is said when they get only a part of their nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.api import Object
from common import LONG_SECONDS, eventually
from plimsoll import names
from rights import USER, used
from turns.crashes import LARGE, SMALL, WIDE
from turns.draining import drained
from turns.grouping import LWS_NAME, group, uids, waits_since_long_ago
from turns.hasty import hasty
from turns.running import Desk, Operator

HALF_SECONDS: Final = 60.0
"""In place of two minutes: twice as long, the group that lacks least is said to be half-scheduled."""


def test_a_group_that_gets_one_of_its_nodes_is_said_until_it_gets_the_other(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    nodes = [
        one["metadata"]["name"]
        for one in lab.api.items("/api/v1/nodes")
        if one["metadata"]["name"].startswith("wide")
    ]

    def half() -> bool:
        """A scheduler may hear late that nodes take no more pods, and give both one; then they are made again."""
        lab.kubectl("-n", place.namespace, "delete", "pods", "--all", "--wait=false")
        return place.says("Placed", "False", "GroupHalfScheduled")

    with Operator(lab, tmp_path):
        place.apply(model=LARGE, topology=WIDE)
        assert place.says("Ready", "True", "Serving")
        (first, second) = sorted(one["spec"]["nodeName"] for one in place.pods())
        try:
            lab.kubectl("cordon", *(name for name in nodes if name != first))
            assert any(half() for _ in range(3))
            assert "nodes for 1 of its 2 pods" in place.message("Placed")
        finally:
            lab.kubectl("uncordon", *nodes)
        assert second in nodes
        assert place.says("Ready", "True", "Serving")
        assert eventually(lambda: place.condition("Placed") == ("True", "Placed"))


def test_a_leaderworkerset_is_made_where_it_is_asked_for(lab: Cluster, place: Desk, tmp_path: Path) -> None:
    """Objects only: its controller is in no registry, so nothing makes the pods."""
    lab.install_others("leaderworkerset")
    with Operator(lab, tmp_path):
        place.apply(model=LARGE, topology={**WIDE, "groups": "LeaderWorkerSet"}, replicas=2)
        path = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{place.namespace}/leaderworkersets"
        assert eventually(lambda: len(lab.api.items(path)) == 1)
        (made,) = lab.api.items(path)
        assert (made["spec"]["replicas"], made["spec"]["leaderWorkerTemplate"]["size"]) == (2, 2)
        assert made["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "None"
        assert place.items("apps/v1/statefulsets") == []
        assert eventually(lambda: place.condition("Ready")[0] == "False")
        place.apply(model=LARGE, topology={**WIDE, "groups": "LeaderWorkerSet"}, replicas=1)
        assert eventually(lambda: lab.api.items(path)[0]["spec"]["replicas"] == 1)


def test_a_half_scheduled_group_of_a_leaderworkerset_is_said_and_let_go_by_its_leader(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """Its pods are made here as its controller would, which is in no registry."""
    lab.install_others("leaderworkerset")
    nodes = [
        one["metadata"]["name"]
        for one in lab.api.items("/api/v1/nodes")
        if one["metadata"]["name"].startswith("wide")
    ]
    with Operator(lab, tmp_path, program=hasty(half=HALF_SECONDS)) as operator:
        place.apply(model=LARGE, topology={**WIDE, "groups": "LeaderWorkerSet"})
        path = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{place.namespace}/leaderworkersets"
        assert eventually(lambda: len(lab.api.items(path)) == 1, LONG_SECONDS)
        (made,) = lab.api.items(path)
        try:
            lab.kubectl("cordon", *nodes[1:])
            leader = half_a_group(place, made)
            assert place.says("Placed", "False", "GroupHalfScheduled", patience=LONG_SECONDS)
            assert "nodes for 1 of its 2 pods" in place.message("Placed")
            waits_since_long_ago(place)
            assert eventually(lambda: leader not in uids(place), LONG_SECONDS), operator.tail()
            assert len(uids(place)) == 1, "the rest is its controller's to take"
        finally:
            lab.kubectl("uncordon", *nodes)
        none_left(place)
        group(place, made)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert eventually(lambda: place.condition("Placed") == ("True", "Placed"), LONG_SECONDS)
        assert operator.rests()
        none_left(place)


def test_a_leaderworkerset_goes_when_the_next_one_serves_and_its_groups_are_gone(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """Pods are made and taken here as its controller would, which is in no registry."""
    lab.install_others("leaderworkerset")
    since = lab.audit.mark()
    asked: dict[str, Any] = {"model": LARGE, "topology": {**WIDE, "groups": "LeaderWorkerSet"}}
    path = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{place.namespace}/leaderworkersets"

    def replicas() -> dict[str, int]:
        return {one["metadata"]["name"]: one["spec"]["replicas"] for one in lab.api.items(path)}

    with Operator(lab, tmp_path) as operator:
        place.apply(**asked)
        assert eventually(lambda: len(replicas()) == 1, LONG_SECONDS)
        (old,) = lab.api.items(path)
        group(place, old)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        before, served = old["metadata"]["name"], uids(place)
        place.apply(**asked, podAnnotations={"example.com/next": "true"})
        assert eventually(lambda: len(replicas()) == 2, LONG_SECONDS)
        (new,) = (one for one in lab.api.items(path) if one["metadata"]["name"] != before)
        assert replicas()[before] == 1, "it serves until the next one does"
        group(place, new)
        assert eventually(lambda: replicas()[before] == 0, LONG_SECONDS), operator.tail()
        assert served < uids(place), "its pods are its controller's to take"
        pods = f"/api/v1/namespaces/{place.namespace}/pods"
        lab.api.delete(f"{pods}?labelSelector={LWS_NAME}={before}&gracePeriodSeconds=0")
        assert eventually(lambda: replicas() == {new["metadata"]["name"]: 1}, LONG_SECONDS), operator.tail()
        assert place.says("Progressing", "True", "RolledOut", patience=LONG_SECONDS)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert ("leaderworkerset.x-k8s.io", "leaderworkersets", "delete") in used(lab, USER, since)
        assert operator.rests()
        none_left(place)


def half_a_group(place: Desk, made: Object) -> str:
    """Its leader's uid. A scheduler may hear late that nodes take no more pods, and give both one; then they are made again."""

    def decided() -> bool:
        return all(
            pod["spec"].get("nodeName")
            or any(one["type"] == "PodScheduled" for one in pod["status"].get("conditions") or ())
            for pod in place.pods()
        )

    leaders: list[str] = []

    def half() -> bool:
        leaders[:] = [group(place, made)]
        assert eventually(decided, LONG_SECONDS)
        whole = all(pod["spec"].get("nodeName") for pod in place.pods())
        if whole:
            none_left(place)
        return not whole

    assert eventually(half, LONG_SECONDS), "nodes that are cordoned took both each time"
    return leaders[0]


def none_left(place: Desk) -> None:
    pods = f"/api/v1/namespaces/{place.namespace}/pods"
    place.cluster.api.delete(f"{pods}?gracePeriodSeconds=0")
    assert eventually(lambda: place.cluster.api.items(pods) == [], LONG_SECONDS)


@pytest.mark.parametrize("asks", ["nobody", "its user"])
def test_a_lone_pod_asks_node_autoscalers_to_stay_until_it_serves_and_longer_where_its_user_says_so(
    lab: Cluster, place: Desk, tmp_path: Path, asks: str
) -> None:
    said = dict([next(iter(names.STAY.items()))]) if asks == "its user" else {}
    mark = lab.audit.mark()
    with Operator(lab, tmp_path) as operator:
        place.apply(topology=SMALL, podAnnotations={"e2e.plimsoll.dev/starts-after": "5s", **said})
        assert eventually(lambda: len(place.pods()) == 1, LONG_SECONDS)
        (made,) = place.items("apps/v1/deployments")
        loads = asked_of(made["spec"]["template"])
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert loads == (said or {**names.STAY, names.ANNOTATION_UNTIL_READY: "true"})
        assert eventually(lambda: stays(place) == said, LONG_SECONDS)
        assert operator.rests()
        patched = {
            one.call.manager
            for one in lab.audit.writes(since=mark)
            if (one.call.verb, one.call.resource, one.call.namespace) == ("patch", "pods", place.namespace)
        }
        assert patched == (set() if said else {names.MANAGER_CHILDREN})
        assert len(place.pods()) == 1, "whoever made it makes no other for it"


def stays(place: Desk) -> dict[str, str]:
    (pod,) = place.pods()
    return asked_of(pod)


def asked_of(item: Object) -> dict[str, str]:
    """What a pod, or the template of one, asks node autoscalers for."""
    annotations = item["metadata"].get("annotations") or {}
    return {
        key: annotations[key] for key in (*names.STAY, names.ANNOTATION_UNTIL_READY) if key in annotations
    }


def test_a_node_under_a_group_is_drained_by_a_further_group(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with Operator(lab, tmp_path):
        place.apply(model=LARGE, topology=WIDE)
        assert place.says("Ready", "True", "Serving")
        node = place.pods()[0]["spec"]["nodeName"]
        try:
            assert drained(place, node) >= 2, "the pods of one whole group answer all the while"
        finally:
            lab.kubectl("uncordon", node)
        assert place.says("Progressing", "True", "RolledOut")
        assert place.says("Ready", "True", "Serving")
        assert eventually(lambda: len(place.pods()) == 2)


def test_groups_that_a_deletion_has_orphaned_in_the_midst_of_a_rollout_end_with_the_next_one_of_the_name(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """Found by a storm: nobody ended the set that was not wanted any more, and its pods held two nodes for ever."""
    slow = {"e2e.plimsoll.dev/starts-after": "10m"}
    with Operator(lab, tmp_path):
        place.apply(model=LARGE, topology=WIDE)
        assert place.says("Ready", "True", "Serving")
        place.apply(model=LARGE, topology=WIDE, podAnnotations=slow)
        assert eventually(lambda: len(place.pods()) == 4)
        lab.api.delete(f"{place.path()}?propagationPolicy=Orphan")
        # It is there until the garbage collector has let its children go.
        assert eventually(lambda: place.items(f"{names.API_VERSION}/{names.PLURAL}") == [])
        place.apply(model=LARGE, topology=WIDE)
        assert eventually(lambda: len(place.items("apps/v1/statefulsets")) == 2)
        assert place.says("Progressing", "True", "RolledOut")
        assert place.says("Ready", "True", "Serving")
        assert eventually(lambda: len(place.pods()) == 2)
