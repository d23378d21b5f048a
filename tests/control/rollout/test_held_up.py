"""A pod that does not go, and one of a group that waits for another: neither holds up a rollout, nor counts against the set."""

from __future__ import annotations

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.failing import failure, look_again
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage

NOW = 100_000.0
RULES = Rules(deadline_seconds=600)


def pod(name: str, stage: Stage = Stage.READY, **others: object) -> PodSeen:
    about = {"created": NOW - 9000, "since": NOW - 8000, **others}
    return PodSeen(name=name, uid=name, stage=stage, **about)  # type: ignore[arg-type]


def beside_a_pod_that_does_not_go(*new: PodSeen, gone: bool = False) -> Serving:
    """As on a node that is away, of which nobody says that it is gone. `gone`: nothing else of its set is there any more."""
    stays = pod("old-0", Stage.LEAVING)
    old = SetSeen(name="old", replicas=0, created=1.0, pods=(stays,), never_served=gone)
    return Serving(sets=(old, SetSeen(name="new", replicas=len(new), created=2.0, pods=new)))


def test_a_rollout_is_over_though_a_pod_of_the_old_set_does_not_go() -> None:
    rollout = move([Wanted("new", 2)], beside_a_pod_that_does_not_go(pod("a"), pod("b")), RULES, NOW)
    assert (rollout.reason, rollout.settled) == ("RolledOut", True)
    assert [one.name for one in rollout.targets] == ["new"]


def test_an_engine_that_ends_days_later_takes_nobody_back_to_a_set_of_which_only_such_a_pod_is_left() -> None:
    ends = pod("a", Stage.FAILED, restarts=3, reason="CrashLoopBackOff")
    rollout = move([Wanted("new", 1)], beside_a_pod_that_does_not_go(ends, gone=True), RULES, NOW)
    assert (rollout.reason, rollout.failed) == ("DeadlineExceeded", ())


def test_while_the_last_of_the_old_set_leave_the_new_one_is_told_to_serve() -> None:
    starts = pod("b", Stage.LOADING, created=NOW - 60, since=NOW - 30)
    rollout = move([Wanted("new", 2)], beside_a_pod_that_does_not_go(pod("a"), starts), RULES, NOW)
    assert {one.name: one.replicas for one in rollout.targets} == {"new": 2}
    assert not rollout.settled


@pytest.mark.parametrize(
    ("worker", "late"),
    [
        (None, False),
        (pod("w", Stage.UNSCHEDULED, group=0, rank=1, reason="Unschedulable", message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu."), False),
        (pod("w", Stage.GATED, group=0, rank=1), False),
        (pod("w", Stage.PULLING, group=0, rank=1), False),
        (pod("w", Stage.FAILED, group=0, rank=1, reason="ImagePullBackOff"), False),
        (pod("w", Stage.FAILED, group=0, rank=1, reason="NodeLost"), False),
        (pod("w", Stage.LEAVING, group=0, rank=1), False),
        (pod("w", Stage.LOADING, group=0, rank=1), True),
        (pod("w", Stage.READY, group=0, rank=1), True),
        (pod("w", Stage.FAILED, group=0, rank=1, reason="CrashLoopBackOff"), True),
    ],
    ids=["is not made", "has no room", "is queued", "pulls its image", "has no image", "lost its node", "leaves", "loads", "is ready", "ends"],
)  # fmt: skip
def test_a_leader_is_late_only_where_its_worker_is_not_what_is_waited_for(
    worker: PodSeen | None, late: bool
) -> None:
    leader = pod("g", Stage.LOADING, group=0, rank=0)
    pods = (leader,) if worker is None else (leader, worker)
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=pods, groups=(0,))
    assert (failure(seen, NOW, 600) is not None) is late


@pytest.mark.parametrize("worker", [Stage.PULLING, Stage.LOADING])
def test_a_leader_that_the_kubelet_ended_while_it_waited_for_its_worker_is_no_failure_of_the_set(
    worker: Stage,
) -> None:
    ended = pod("g", Stage.FAILED, group=0, rank=0, restarts=3, exit_code=143, reason="Error", late_s=600)
    pods = (ended, pod("w", worker, group=0, rank=1, since=NOW - 5))
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=pods, groups=(0,))
    assert (failure(seen, NOW, 600) is not None) is (worker is Stage.LOADING)


def test_the_engines_of_a_group_have_their_time_from_when_the_last_of_them_began() -> None:
    leader = pod("g", Stage.LOADING, group=0, rank=0)
    for began, late in ((NOW - 1, False), (NOW - 599, False), (NOW - 601, True)):
        worker = pod("w", Stage.LOADING, group=0, rank=1, since=began)
        seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(leader, worker), groups=(0,))
        assert (failure(seen, NOW, 600) is not None) is late
        assert look_again(seen, NOW, 600) == (None if late else max(1.0, began + 600 - NOW))


def test_a_worker_without_its_volume_is_late_however_often_its_leader_begins_anew() -> None:
    leader = pod("g", Stage.LOADING, group=0, rank=0, since=NOW - 5)
    volume = '0/3 nodes are available: persistentvolumeclaim "nope" not found.'
    worker = pod("w", Stage.UNSCHEDULED, group=0, rank=1, reason="Unschedulable", message=volume)
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=(leader, worker), groups=(0,))
    assert "nope" in (failure(seen, NOW, 600) or "")


def test_a_group_that_a_quota_keeps_from_being_whole_makes_an_old_one_go_for_it() -> None:
    """Where it is left to the room that there is."""
    rules = Rules(deadline_seconds=99_999, surge=1, by_room=True)
    half = SetSeen(
        name="new", replicas=1, pods_per_replica=2, pods=(pod("n", Stage.LOADING, group=0, rank=0),), groups=(0,),
        refused="exceeded quota: gpus", created=2.0,
    )  # fmt: skip
    serves = tuple(pod(f"o-{rank}", group=0, rank=rank) for rank in (0, 1))
    old = SetSeen(name="old", replicas=1, pods_per_replica=2, pods=serves, groups=(0,), created=1.0)
    rollout = move([Wanted("new", 1)], Serving(sets=(old, half)), rules, NOW)
    assert {one.name: one.replicas for one in rollout.targets} == {"new": 1, "old": 0}


@pytest.mark.parametrize(("group", "missing"), [(None, 1), (0, 0)])
def test_a_pod_that_leaves_has_another_in_its_place_unless_that_would_have_its_name(
    group: int | None, missing: int
) -> None:
    leaves = pod("a", Stage.LEAVING, group=group, node="n")
    seen = SetSeen(name="a", replicas=1, pods=(leaves,), groups=() if group is None else (group,))
    assert (seen.missing, seen.placed) == (missing, 1 - missing)
