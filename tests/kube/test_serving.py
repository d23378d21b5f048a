"""Whose sets and pods count as a deployment's when its name is borne a second time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.facts.serving import Serving, SetSeen
from plimsoll.kube.child import read_child
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door
from plimsoll.kube.kinds import CONTROLLER_REVISION, DEPLOYMENT, LEADER_WORKER_SET, Kind
from plimsoll.kube.refusals import Refusals
from plimsoll.kube.scalers import Scalers
from plimsoll.kube.serving import Pods, serving
from plimsoll.kube.times import seconds
from plimsoll.objects import Bearer

Object = dict[str, Any]
KEY = "team/chat"
FIRST, LATER, LAST = (f"2026-11-21T10:0{minute}:00Z" for minute in range(3))
LABELS = {
    names.LABEL_MANAGED_BY: names.MANAGED_BY,
    names.LABEL_DEPLOYMENT: "chat",
    names.LABEL_SET: "0a1b2c3d",
}
BODY = {"labels": LABELS, "namespace": "team", "resourceVersion": "1"}


def workload(owner: str | None, made: str) -> Object:
    reference = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "chat", "controller": True}
    about = {"name": "chat-0a1b2c3d", "uid": "w", "creationTimestamp": made, **BODY}
    owners = [{**reference, "uid": owner}] if owner else []
    return {"metadata": {**about, "ownerReferences": owners}, "spec": {"replicas": 1}}


def pod(made: str) -> Object:
    about = {"name": "chat-0a1b2c3d-x", "uid": "p", "creationTimestamp": made, **BODY}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": made}
    return {"metadata": about, "spec": {"nodeName": "n"}, "status": {"conditions": [ready]}}


def seen_of(
    there: Object | None, kind: Kind, shown: Object, bearer: Bearer | None, refusals: Refusals | None = None
) -> Serving:
    door = cast("Door", None)
    children, pods = Children(door, lambda _: None), Pods(door, lambda _: None)
    if there is not None:
        child = read_child(kind, there)
        assert child is not None
        children.seen(child, as_of=None, first=False)
    pods.put(shown)
    refusals = refusals or Refusals(door, lambda _: None)
    return serving(KEY, children, pods, Scalers(door, lambda _: None), refusals, bearer=bearer)


def counted(there: Object | None, pod_made: str, bearer: Bearer | None) -> tuple[int, int]:
    """Sets and ready replicas that are seen."""
    seen = seen_of(there, DEPLOYMENT, pod(pod_made), bearer)
    return len(seen.sets), sum(one.ready for one in seen.sets)


NOW = Bearer("now", seconds(LATER))


@pytest.mark.parametrize(
    ("there", "pod_made", "bearer", "expected"),
    [
        pytest.param(workload("now", LATER), LAST, NOW, (1, 1), id="its own"),
        pytest.param(workload("before", FIRST), FIRST, NOW, (0, 0), id="all of it is of the one before"),
        pytest.param(None, FIRST, NOW, (0, 0), id="of the one before only a pod is left"),
        pytest.param(
            None, LATER, NOW, (0, 0), id="the same, which was made in the second when this one came"
        ),
        pytest.param(
            workload("now", LATER), FIRST, NOW, (1, 0), id="the set is there again, a pod is still left"
        ),
        pytest.param(workload(None, FIRST), FIRST, NOW, (1, 1), id="its owner was taken away and comes back"),
        pytest.param(workload("now", LAST), LATER, NOW, (1, 1), id="the workload was made again by hand"),
        pytest.param(workload("before", FIRST), FIRST, None, (1, 1), id="nobody asks whose"),
    ],
)
def test_only_what_the_resource_of_today_made_serves_it(
    there: Object | None, pod_made: str, bearer: Bearer | None, expected: tuple[int, int]
) -> None:
    assert counted(there, pod_made, bearer) == expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        pytest.param({}, 1, id="what serves stays"),
        pytest.param({"deletionTimestamp": LAST}, 0, id="what leaves does not"),
        pytest.param({"labels": {**LABELS, names.LABEL_GROUP: "0"}}, 0, id="a group has its own objects"),
    ],
)
def test_a_set_whose_deployment_is_not_seen_has_the_replicas_that_serve(about: Object, expected: int) -> None:
    """As one whose labels a hand has taken away in the midst of a rollout: taken for none, they would go before others serve."""
    revision = {**workload("now", LATER), "data": {}}
    there = pod(LAST)
    there["metadata"] |= about
    (seen,) = seen_of(revision, CONTROLLER_REVISION, there, NOW).sets
    assert seen.replicas == expected


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_its_node_ended_is_no_replica_though_its_deployment_leaves_it_there(phase: str) -> None:
    there = pod(LAST)
    there["status"] = {"phase": phase, "reason": "Evicted"}
    (seen,) = seen_of(workload("now", LATER), DEPLOYMENT, there, NOW).sets
    assert (seen.pods, [one.name for one in seen.ended]) == ((), ["chat-0a1b2c3d-x"])
    assert seen.missing == 1


def test_groups_of_a_leaderworkerset_are_numbered_by_their_pods() -> None:
    """One object makes them all."""
    there = workload("now", LATER)
    there["spec"] = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    member = pod(LAST)
    member["metadata"]["labels"] = {
        **LABELS,
        "leaderworkerset.sigs.k8s.io/group-index": "1",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    (seen,) = seen_of(there, LEADER_WORKER_SET, member, NOW).sets
    assert (seen.replicas, seen.pods_per_replica, seen.groups, seen.numbers) == (2, 2, (), (1,))
    (single,) = seen_of(workload("now", LATER), DEPLOYMENT, pod(LAST), NOW).sets
    assert single.numbers == ()


@pytest.mark.parametrize(("about", "refused"), [("", True), ("-1", True), ("-2", False)])
def test_pods_of_a_leaderworkerset_are_refused_to_the_statefulset_of_its_leaders_or_to_one_of_its_workers(
    about: str, refused: bool
) -> None:
    there = workload("now", LATER)
    there["spec"] = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    refusals = Refusals(cast("Door", None), lambda _: None)
    refusals.put(
        {
            "metadata": {"name": "e", "namespace": "team", "creationTimestamp": LAST},
            "regarding": {"kind": "StatefulSet", "namespace": "team", "name": f"chat-0a1b2c3d{about}"},
            "note": 'pods "x" is forbidden: exceeded quota: gpus',
            "deprecatedLastTimestamp": LAST,
        }
    )
    (seen,) = seen_of(there, LEADER_WORKER_SET, pod(LAST), NOW, refusals).sets
    assert bool(seen.refused) is refused


def test_our_own_hand_on_a_pod_wakes_nobody_and_is_seen_all_the_same() -> None:
    woken: list[str] = []
    pods = Pods(cast("Door", None), woken.append)
    bears, free = pod(LAST), pod(LAST)
    bears["metadata"]["annotations"] = {names.ANNOTATION_UNTIL_READY: "true"}
    pods.put(bears)
    assert Serving(sets=(SetSeen(name="a", replicas=1, pods=pods.of(KEY)["0a1b2c3d"]),)).loaded
    pods.put(free)
    assert not Serving(sets=(SetSeen(name="a", replicas=1, pods=pods.of(KEY)["0a1b2c3d"]),)).loaded
    assert woken == [KEY]


@pytest.mark.parametrize("label", [names.LABEL_SET, names.LABEL_DEPLOYMENT])
def test_a_pod_whose_label_somebody_takes_off_serves_no_longer(label: str) -> None:
    """That is how a pod is put aside to look at it, and its Deployment makes another one in its place."""
    heard: list[tuple[str, bool]] = []
    woken: list[str] = []
    pods = Pods(cast("Door", None), woken.append, hears=lambda key, pod: heard.append((key, pod is not None)))
    pods.put(pod(LAST))
    aside = pod(LAST)
    aside["metadata"]["labels"] = {name: value for name, value in LABELS.items() if name != label}
    pods.put(aside)
    assert "0a1b2c3d" not in pods.of(KEY)
    assert woken.count(KEY) >= 2
    assert heard[-1] == ("team/chat-0a1b2c3d-x", True), "what it takes of its node is still counted"
    pods.remove(aside)
    assert pods.all() == []
