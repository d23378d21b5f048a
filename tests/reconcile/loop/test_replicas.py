"""What is seen of pods, in the words of the control law: replicas, their states, and who is asked for metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.situation import ReplicaState
from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import NODE_LOST, Beside, PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.loop.replicas import leaders, live, lost, replicas_of


def pod(name: str, stage: Stage = Stage.READY, **more: Any) -> PodSeen:
    return PodSeen(name=name, uid=f"uid-{name}", stage=stage, created=10.0, **more)


@pytest.mark.parametrize(
    ("stage", "node_coming", "state"),
    [
        (Stage.READY, False, ReplicaState.READY),
        (Stage.LOADING, False, ReplicaState.STARTING),
        (Stage.PULLING, False, ReplicaState.STARTING),
        (Stage.UNSCHEDULED, False, ReplicaState.UNSCHEDULABLE),
        (Stage.UNSCHEDULED, True, ReplicaState.NODE_COMING),
        (Stage.GATED, False, ReplicaState.QUEUED),
        (Stage.FAILED, False, ReplicaState.FAILED),
        (Stage.LEAVING, False, ReplicaState.LEAVING),
    ],
)
def test_a_pod_is_a_replica_in_the_state_of_its_stage(
    stage: Stage, node_coming: bool, state: ReplicaState
) -> None:
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods=(pod("p", stage),)), node_coming=node_coming)
    assert (found.id, found.state) == ("uid-p", state)


def group(*stages: Stage, number: int = 0) -> tuple[PodSeen, ...]:
    return tuple(
        pod(f"g{number}-{rank}", stage, group=number, rank=rank, since=100.0 + rank, scheduled=20.0 + rank)
        for rank, stage in enumerate(stages)
    )


@pytest.mark.parametrize(
    ("stages", "state"),
    [
        ((Stage.READY, Stage.READY), ReplicaState.READY),
        ((Stage.READY,), ReplicaState.STARTING),
        ((Stage.READY, Stage.LOADING), ReplicaState.STARTING),
        ((Stage.READY, Stage.FAILED), ReplicaState.FAILED),
        ((Stage.LOADING, Stage.UNSCHEDULED), ReplicaState.UNSCHEDULABLE),
        ((Stage.LEAVING, Stage.LEAVING), ReplicaState.LEAVING),
    ],
)
def test_a_group_is_one_replica_as_far_as_its_slowest_pod(
    stages: tuple[Stage, ...], state: ReplicaState
) -> None:
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=group(*stages))
    (found,) = replicas_of(seen, node_coming=False)
    assert (found.id, found.state) == ("uid-g0-0", state)


@pytest.mark.parametrize(
    ("reasons", "outside"),
    [
        (["ErrImagePull"], True),
        (["ImagePullBackOff"], True),
        (["RegistryUnavailable"], True),
        (["CrashLoopBackOff"], False),
        (["OOMKilled"], False),
        (["ImagePullBackOff", ""], True),
        (["ImagePullBackOff", "ErrImagePull"], True),
        (["ImagePullBackOff", "OOMKilled"], False),
        ([""], False),
        (["", ""], False),
    ],
)
def test_a_replica_whose_image_cannot_be_had_fails_by_no_doing_of_its_engine(
    reasons: list[str], outside: bool
) -> None:
    pods = tuple(
        pod(f"g-{rank}", Stage.FAILED if why else Stage.READY, group=0, rank=rank, reason=why)
        for rank, why in enumerate(reasons)
    )
    seen = SetSeen(name="a", replicas=1, pods_per_replica=len(pods), pods=pods)
    (found,) = replicas_of(seen, node_coming=False)
    assert found.outside is outside


@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "OOMKilled", "CreateContainerConfigError"])
def test_nor_does_one_of_which_only_a_container_beside_the_engine_does_not_run(reason: str) -> None:
    beside = pod("p", Stage.FAILED, reason=reason, beside=Beside(name="istio-proxy"))
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods=(beside,)), node_coming=False)
    assert found.outside
    crashes = pod("q", Stage.FAILED, group=0, rank=1, reason="CrashLoopBackOff")
    both = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(replace(beside, group=0), crashes))
    (found,) = replicas_of(both, node_coming=False)
    assert not found.outside


def test_a_groups_start_is_counted_from_its_last_node_to_its_last_pod() -> None:
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=group(Stage.READY, Stage.READY))
    (found,) = replicas_of(seen, node_coming=False)
    assert (found.scheduled, found.since) == (21.0, 101.0)


@pytest.mark.parametrize(
    ("stages", "since"),
    [
        ((Stage.UNSCHEDULED, Stage.LOADING), 100.0),
        ((Stage.UNSCHEDULED, Stage.UNSCHEDULED, Stage.READY), 101.0),
        ((Stage.FAILED, Stage.LEAVING), 100.0),
        ((Stage.READY, Stage.READY), 101.0),
        ((Stage.READY, Stage.LEAVING), 101.0),
    ],
    ids=[
        "one finds no node, and the other begins to load later",
        "the last of two that find none",
        "one fails, and the other goes",
        "all serve",
        "one is gone, and none is loading in its place yet",
    ],
)
def test_a_group_is_in_its_state_since_the_pods_are_that_make_it_so(
    stages: tuple[Stage, ...], since: float
) -> None:
    seen = SetSeen(name="a", replicas=1, pods_per_replica=len(stages), pods=group(*stages))
    (found,) = replicas_of(seen, node_coming=False)
    assert found.since == since


def test_ends_of_all_engines_of_a_replica_are_the_replicas() -> None:
    seen = SetSeen(
        name="a",
        replicas=1,
        pods_per_replica=2,
        pods=(pod("g-0", group=0, restarts=1), pod("g-1", group=0, rank=1, restarts=2)),
    )
    (found,) = replicas_of(seen, node_coming=False)
    assert found.restarts == 3


@pytest.mark.parametrize(("restarts", "rebooted", "counted"), [(1, True, 0), (2, True, 0), (2, False, 2)])
@pytest.mark.parametrize("each", [1, 2])
def test_a_node_that_starts_anew_ends_no_engine_for_its_own_fault(
    restarts: int, rebooted: bool, counted: int, each: int
) -> None:
    pods = tuple(
        pod(f"g-{rank}", group=0, rank=rank, restarts=0 if rank else restarts, rebooted=rebooted)
        for rank in range(each)
    )
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods_per_replica=each, pods=pods), node_coming=False)
    assert found.restarts == counted


@pytest.mark.parametrize("word", ["MemberLost", "LeaderLost", "GroupEnded"])
@pytest.mark.parametrize(
    ("later", "crashed", "counted"),
    [(600.0, None, 0), (0.0, None, 1), (600.0, "CudaOutOfMemory", 3), (600.0, "", 3)],
    ids=["a pod was replaced", "none was", "the new one's engine ended too", "and was killed without a word"],
)
def test_engines_that_end_with_a_pod_that_was_replaced_are_no_ends_of_their_own(
    word: str, later: float, crashed: str | None, counted: int
) -> None:
    """A node was lost, or a person deleted a pod: the engines beside it end and begin again, whatever their settings are."""
    survivor = replace(pod("g-0", group=0, restarts=1), failure=Failure(word, "rank 1 is silent", "see it"))
    other = replace(pod("g-1", group=0, rank=1), created=survivor.created + later)
    if crashed is not None:
        failure = Failure(crashed, "no room", "less") if crashed else None
        other = replace(other, restarts=3, failure=failure)
    (found,) = replicas_of(
        SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(survivor, other)), node_coming=False
    )
    assert found.restarts == counted
    backing_off = replace(survivor, stage=Stage.FAILED, reason="CrashLoopBackOff")
    (found,) = replicas_of(
        SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(backing_off, other)), node_coming=False
    )
    assert found.outside is bool(later)


@pytest.mark.parametrize("other", [(), (pod("g-1", Stage.LEAVING, group=0, rank=1),)], ids=["gone", "going"])
def test_nor_are_they_while_the_pod_that_they_ended_with_is_going_or_gone(other: tuple[PodSeen, ...]) -> None:
    survivor = replace(
        pod("g-0", group=0, restarts=1), failure=Failure("MemberLost", "rank 1 is silent", "see it")
    )
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(survivor, *other))
    (found,) = replicas_of(seen, node_coming=False)
    assert found.restarts == 0


@pytest.mark.parametrize(
    ("unready", "since"),
    [((None, None), None), ((50.0, None), 50.0), ((70.0, 60.0), 60.0), ((None, 40.0), 40.0)],
)
def test_a_replica_has_not_served_since_the_first_of_its_pods_that_is_not_ready(
    unready: tuple[float | None, ...], since: float | None
) -> None:
    pods = tuple(pod(f"g-{rank}", group=0, rank=rank, unready=at) for rank, at in enumerate(unready))
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods_per_replica=2, pods=pods), node_coming=False)
    assert found.unready == since
    (alone,) = replicas_of(SetSeen(name="a", replicas=1, pods=pods[1:]), node_coming=False)
    assert alone.unready == unready[1]


def test_a_pod_whose_node_is_silent_is_no_replica_that_fails() -> None:
    seen = SetSeen(name="a", replicas=1, pods=(pod("new"), pod("old", Stage.FAILED, reason="NodeLost")))
    assert [one.id for one in replicas_of(seen, node_coming=False)] == ["uid-new"]


SILENT: dict[str, Any] = {"stage": Stage.FAILED, "reason": NODE_LOST}
EVICTED: dict[str, Any] = {"stage": Stage.LEAVING, "reason": "DeletionByTaintManager"}
ENDED: dict[str, Any] = {"stage": Stage.LEAVING}


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (SILENT, SILENT, 1),
        (SILENT, EVICTED, 1),
        (EVICTED, EVICTED, 1),
        (EVICTED, ENDED, 1),
        (ENDED, ENDED, 0),
        (SILENT, {"stage": Stage.READY}, 0),
        (EVICTED, {"stage": Stage.LOADING}, 0),
    ],
)
def test_a_group_is_lost_whose_pods_all_leave_or_are_on_silent_nodes(
    first: dict[str, Any], second: dict[str, Any], count: int
) -> None:
    """Its StatefulSet makes none in its place before they are gone. One of which a pod stays is a replica that starts."""
    pods = tuple(pod(f"g-{rank}", group=2, rank=rank, **each) for rank, each in enumerate((first, second)))
    seen = SetSeen(name="a", replicas=3, pods_per_replica=2, groups=(0, 1, 2), pods=pods)
    assert lost(seen) == count
    assert lost(replace(seen, groups=(0, 1))) == 0, "no longer asked for"


def test_a_pod_alone_is_lost_until_its_deployment_makes_another_in_its_place() -> None:
    pods = (pod("a"), pod("b", **SILENT), pod("c", **EVICTED))
    assert lost(SetSeen(name="a", replicas=2, pods=pods)) == 1


def test_metrics_are_asked_of_the_leaders_of_whole_replicas() -> None:
    pods = (*group(Stage.READY, Stage.READY), *group(Stage.READY, Stage.LOADING, number=1))
    serving = Serving(
        sets=(
            SetSeen(name="a", replicas=2, pods_per_replica=2, pods=pods),
            SetSeen(name="b", replicas=1, pods=(pod("p"),)),
        )
    )
    assert live(leaders(serving)) == {"g0-0": "uid-g0-0", "p": "uid-p"}
    assert live(leaders(serving), ["b"]) == {"p": "uid-p"}


@pytest.mark.parametrize(("leads", "asked"), [(False, ["g0-0"]), (True, ["g0-0", "g0-1", "g0-2"])])
def test_they_are_asked_of_every_pod_of_a_replica_that_takes_requests_itself(
    leads: bool, asked: list[str]
) -> None:
    """Where data ranks are balanced outside of the engine, each pod is behind the Service and counts its own requests."""
    first, *others = group(Stage.READY, Stage.READY, Stage.READY)
    going = pod("g0-old", Stage.LEAVING, group=0, rank=1, leads=leads)
    pods = (replace(first, leads=True), *(replace(one, leads=leads) for one in others), going)
    found = leaders(Serving(sets=(SetSeen(name="a", replicas=1, pods_per_replica=3, pods=pods),)))
    ((replica, said),) = found.items()
    assert replica == ("a", "uid-g0-0")
    assert [one.name for one in said] == asked
    assert live(found) == {"g0-0": "uid-g0-0"}
