"""Replicas of several pods over nodes: what is made of them, and what is said when they get only a part of their nodes."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from common import eventually
from plimsoll import names
from turns.crashes import LARGE, WIDE
from turns.draining import drained
from turns.running import Desk, Operator


def test_a_group_that_gets_one_of_its_nodes_is_said_until_it_gets_the_other(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    nodes = [
        one["metadata"]["name"]
        for one in lab.api.items("/api/v1/nodes")
        if one["metadata"]["name"].startswith("wide")
    ]
    with Operator(lab, tmp_path):
        place.apply(model=LARGE, topology=WIDE)
        assert place.says("Ready", "True", "Serving")
        (first, second) = sorted(one["spec"]["nodeName"] for one in place.pods())
        try:
            lab.kubectl("cordon", *(name for name in nodes if name != first))
            lab.kubectl("-n", place.namespace, "delete", "pods", "--all", "--wait=false")
            assert place.says("Placed", "False", "GroupHalfScheduled")
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
        assert place.items("apps/v1/statefulsets") == []
        assert eventually(lambda: place.condition("Ready")[0] == "False")
        place.apply(model=LARGE, topology={**WIDE, "groups": "LeaderWorkerSet"}, replicas=1)
        assert eventually(lambda: lab.api.items(path)[0]["spec"]["replicas"] == 1)


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
