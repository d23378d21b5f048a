"""What the schedulers' sentences are taken for, in their own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.facts.unplaced import Lack, lack_of

NONE_HELPS = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
NO_VICTIM = " preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."


def pod(message: str, stage: Stage = Stage.UNSCHEDULED) -> PodSeen:
    return PodSeen(name="a-0", uid="a", stage=stage, message=message)


@pytest.mark.parametrize(
    ("message", "lack"),
    [
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", Lack.ROOM),
        ("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {a: b}.", Lack.ROOM),
        ("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {a: b}." + NO_VICTIM, Lack.ROOM),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: not eligible due to preemptionPolicy=Never.", Lack.ROOM),
        ("0/3 nodes are available: 3 cannot allocate all claims. still not schedulable," + NONE_HELPS, Lack.ROOM),
        ("0/3 nodes are available: 1 cannot allocate all claims, 2 node(s) had untolerated taint(s). no new claims to deallocate," + NONE_HELPS, Lack.ROOM),
        ("0/3 nodes are available: 3 node(s) did not have enough free storage." + NONE_HELPS, Lack.ROOM),
        ("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not hel…", Lack.ROOM),
        ("0/9 nodes are available: 1 node(s) had untolerated taint {a: b}, 1 node(s) had untolerated taint {c: …", Lack.ROOM),
        ("0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \"a-0-w\".", Lack.ROOM),
        ("no nodes with enough resources were found: 2 node(s) had untolerated taint(s). \n5 node(s) didn't have enough resources: GPUs.", Lack.ROOM),
        ("0/3 nodes are unavailable: 1 node(s) resource fit failed, 2 node(s) had untolerated taint {a: b}.", Lack.ROOM),
        ("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.", Lack.ROOM),
        ("0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.", Lack.ROOM),
        ("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't find available persistent volumes to bind.", Lack.ROOM),
        ("pod group is not ready, 2 minAvailable, 2 Pending", Lack.ROOM),
        ("0/3 nodes are available: 3 Insufficient cpu." + NONE_HELPS, Lack.NODES),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}." + NONE_HELPS, Lack.NODES),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}.", Lack.NODES),
        ("0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.", Lack.NODES),
        ("0/3 nodes are available: 3 node(s) had volume node affinity conflict." + NONE_HELPS, Lack.NODES),
        ("no nodes available to schedule pods", Lack.NODES),
        ('0/3 nodes are available: persistentvolumeclaim "nope" not found.' + NONE_HELPS, Lack.VOLUME),
        ("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims." + NONE_HELPS, Lack.VOLUME),
        ("0/3 nodes are available: 3 pod has unbound immediate PersistentVolumeClaims.", Lack.VOLUME),
        ("0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't find available persistent volumes to bind.", Lack.VOLUME),
        ("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector." + NONE_HELPS, Lack.NODES),
        ("0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).", Lack.VOLUME),
        ("", Lack.SCHEDULER),
    ],
)  # fmt: skip
def test_what_a_pod_lacks_is_told_by_its_scheduler(message: str, lack: Lack) -> None:
    assert lack_of(pod(message)) is lack


def test_a_pod_in_a_queue_waits_for_room_and_one_with_a_node_for_nothing() -> None:
    assert lack_of(pod("kueue.x-k8s.io/admission", Stage.GATED)) is Lack.ROOM
    assert lack_of(pod("", Stage.PULLING)) is None


def test_a_scheduler_that_says_no_more_than_its_one_word_has_looked() -> None:
    assert lack_of(replace(pod(""), reason="Unschedulable")) is Lack.ROOM
