"""What of a deployment is seen to run: its serving sets, their pods, and what those say about themselves.

Read from the cluster's objects by `kube`, judged by `control` and told by `status`. Nothing here is wanted, only seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from plimsoll.facts.failure import Failure


class Stage(StrEnum):
    """How far a pod is, in the order of a start."""

    UNSCHEDULED = "unscheduled"
    GATED = "gated"
    """A queue or a scheduling gate holds it back."""
    PULLING = "pulling"
    """It has a node; its images or init containers are not done."""
    LOADING = "loading"
    """The engine runs, its readiness probe does not hold yet."""
    READY = "ready"
    FAILED = "failed"
    """It waits in a back-off, or ended; `reason` says which."""
    LEAVING = "leaving"


NOWHERE: Final = frozenset({Stage.UNSCHEDULED, Stage.GATED})
"""Stages of a pod that has found no node yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    name: str
    uid: str
    stage: Stage
    group: int | None = None
    """The replica's number where a replica has several pods."""
    rank: int = 0
    node: str | None = None
    scheduled: float | None = None
    """When it got its node, and with it its GPUs."""
    address: str = ""
    """Its IP, once it has one."""
    created: float = 0.0
    """Seconds since the epoch, as all times here."""
    since: float = 0.0
    """When the stage began, as far as the pod says."""
    reason: str = ""
    """The kubelet's or scheduler's own word: ErrImagePull, CrashLoopBackOff, OOMKilled, Unschedulable, Evicted, ..."""
    message: str = ""
    """Its sentence, or the engine's termination message."""
    restarts: int = 0
    ended: bool = False
    """It will not run again: evicted, refused by its node, or done. Whoever made it makes another in its place."""
    leaves: str = ""
    """The node and why it is to be left, as "node n, which is cordoned"; empty where it is not."""
    leaves_since: float | None = None
    """When its node was cordoned; None where an autoscaler takes the node away, or nobody says since when."""
    exit_code: int | None = None
    """Of the last end of the engine's container."""
    late_s: int = 0
    """Seconds that its last start was given, where the kubelet ended it when they were over; 0 where it did not."""
    failure: Failure | None = None
    """Why the engine ended last, where a supervisor said it."""
    runtime_port: int | None = None
    """Where the supervisor tells what it sees; None where there is none."""
    until_ready: bool = field(default=False, compare=False)
    """Whether it asks the nodes' autoscalers to stay for as long as it loads. Only we change that, so it is no news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSeen:
    """One serving set as it is in the cluster."""

    name: str
    replicas: int
    """That its workload objects ask for."""
    pods_per_replica: int = 1
    created: float = 0.0
    failed: str = ""
    """Why it was given up, from the annotation on its revision; empty where it was not."""
    refused: str = ""
    """Why the API server lets no more pods of it be made: quota, limits, Pod Security, a webhook; empty where it does."""
    pods: tuple[PodSeen, ...] = ()
    groups: tuple[int, ...] = ()
    """Numbers of the replicas that have an object of their own."""
    one_object: bool = False
    """Whether one object makes all groups of pods (a LeaderWorkerSet): none can be left out, only made anew."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of the groups: of those that have an object, or that one object has made pods of."""
        if not self.one_object:
            return self.groups
        return tuple(sorted({pod.group for pod in self.pods if pod.group is not None}))

    @property
    def ready(self) -> int:
        """Replicas all of whose pods are ready."""
        if self.pods_per_replica == 1:
            return sum(pod.stage is Stage.READY for pod in self.pods)
        return sum(self.whole(number) for number in {pod.group for pod in self.pods})

    @property
    def missing(self) -> int:
        """Pods that are asked for and not there."""
        return max(0, self.replicas * self.pods_per_replica - len(self.pods))

    def answers(self, pod: PodSeen) -> bool:
        """Whether the replica that this pod is of does."""
        return pod.stage is Stage.READY if self.pods_per_replica == 1 else self.whole(pod.group)

    def whole(self, number: int | None) -> bool:
        """Whether the replica of this number has all its pods, and all are ready."""
        ready = sum(pod.stage is Stage.READY for pod in self.pods if pod.group == number)
        return ready >= self.pods_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Everything of one deployment that is seen."""

    sets: tuple[SetSeen, ...] = ()
    """Oldest first."""
    scalers: tuple[str, ...] = field(default=())
    """HorizontalPodAutoscalers and ScaledObjects that target it, as Kind name."""
    scalers_below: tuple[str, ...] = ()
    """The same that target an object of ours in its place."""

    @property
    def loaded(self) -> tuple[PodSeen, ...]:
        """Pods that are ready and still ask to stay as if they loaded."""
        return tuple(
            pod for seen in self.sets for pod in seen.pods if pod.until_ready and pod.stage is Stage.READY
        )

    def set_named(self, name: str) -> SetSeen | None:
        return next((seen for seen in self.sets if seen.name == name), None)
