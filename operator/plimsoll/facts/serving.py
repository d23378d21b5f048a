"""What is seen to run of a deployment: its serving sets, their pods, and what these report.

`kube` reads it from the cluster's objects, `control` judges it and `status` tells it. It says what is there, not what is wanted.
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
    """The engine runs, its readiness probe does not hold yet; or it does, and something beside the engine holds the pod back."""
    READY = "ready"
    FAILED = "failed"
    """It waits in a back-off, or ended; `reason` says which."""
    LEAVING = "leaving"


NODE_LOST: Final = "NodeLost"
"""Reason of a pod whose node does not answer."""
NOWHERE: Final = frozenset({Stage.UNSCHEDULED, Stage.GATED})
"""Stages of a pod that has found no node yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A container beside the engine's that cannot start, or has ended."""

    name: str
    first: bool = False
    """Whether it is an init container that ends before the engine begins: one that brings the supervisor, or that fetches something for it."""
    restarts: int = 0
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """One serving pod as it is in the cluster."""

    name: str
    uid: str
    stage: Stage
    group: int | None = None
    """The replica's number where a replica has several pods."""
    rank: int = 0
    leads: bool = False
    """Whether it takes requests itself: of several pods of a replica the first, or all where data ranks are balanced outside of the engine."""
    node: str | None = None
    scheduled: float | None = None
    """When it got its node, and with it its GPUs."""
    address: str = ""
    """Its IP, once it has one."""
    created: float = 0.0
    """Seconds since the epoch, as all times here."""
    since: float = 0.0
    """When the stage began, as far as the pod says."""
    unready: float | None = None
    """Since when it has not been ready; None where it is, and where its node has not said. An engine that ends again and again is in each
    stage for a moment only."""
    reason: str = ""
    """The kubelet's or scheduler's own word: ErrImagePull, CrashLoopBackOff, OOMKilled, Unschedulable, Evicted, ContainersNotReady, ..."""
    message: str = ""
    """The sentence with that word, or the termination message."""
    beside: Beside | None = None
    """The container that both are of, where it is not the engine's. Restarts, exit code and failure are of the engine all the same."""
    restarts: int = 0
    rebooted: bool = False
    """Whether the engine ended last as its node went down: that was no doing of its own."""
    ended: bool = False
    """Whether it will not run again: of one whose containers are always started again, its node refused it, evicted it or went down. Its owner
    then makes another pod in its place."""
    leaves: str = ""
    """Why the pod is to leave its node, as "node n, which is cordoned"; empty where it may stay."""
    leaves_since: float | None = None
    """When its node was cordoned; None where an autoscaler takes the node away, or the time is not known."""
    exit_code: int | None = None
    """Exit code of the engine's container when it ended last."""
    ended_by: str = ""
    """The kubelet's word for that end, as Error or OOMKilled; kept while the engine runs again."""
    last_words: str = ""
    """What the engine left when it ended last."""
    late_s: int = 0
    """Seconds that its last start was allowed, where the kubelet ended it for taking longer; else 0."""
    failure: Failure | None = None
    """Why the engine ended last, where a supervisor told it."""
    runtime_port: int | None = None
    """Port on which the supervisor reports; None where there is no supervisor."""
    until_ready: bool = field(default=False, compare=False)
    """Whether it asks the nodes' autoscalers not to move it while it loads. Only the operator changes that, so it is left out when pods are
    compared for changes."""

    @property
    def crashes(self) -> int:
        """Restarts that its engine may be to blame for, as far as the last one tells: none where its node began anew, however often that was."""
        return self.restarts if self.crashed_last else 0

    @property
    def crashed_last(self) -> bool:
        """Whether its engine may be to blame for its last end, which is all that is known of its ends."""
        return self.restarts > 0 and not self.rebooted

    @property
    def held_back(self) -> bool:
        """Whether its engine is ready and the pod is not: a container beside the engine, or a readiness gate, is not; `message` names it."""
        return self.stage is Stage.LOADING and bool(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSeen:
    """One serving set as it is in the cluster."""

    name: str
    replicas: int
    """Replicas that its workload objects ask for."""
    pods_per_replica: int = 1
    created: float = 0.0
    failed: str = ""
    """Why the set was given up, from the annotation on its revision; empty where it was not."""
    never_served: bool = False
    """Whether none of its pods was ever ready, as far as that was noted."""
    refused: str = ""
    """Why the API server refuses further pods of the set (quota, limits, Pod Security, a webhook); empty where it does not."""
    pods: tuple[PodSeen, ...] = ()
    """Those that serve, or may come to, or leave."""
    ended: tuple[PodSeen, ...] = ()
    """Those that will not run again. A Deployment makes others in their place and leaves them there, for days and also once it has no replicas:
    they are none of its replicas, and only tell why those went."""
    groups: tuple[int, ...] = ()
    """Numbers of the replicas that have an object of their own."""
    one_object: bool = False
    """Whether one object (a LeaderWorkerSet) makes all groups of pods, so that a single group can be made anew but not taken away."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the groups that have an object of their own, or of which one object for all has made pods."""
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
    def lives(self) -> bool:
        """Whether it has replicas, or pods that stay. The last ones of a set that is told to have none may leave for as long as their node is
        away, which is for days where nobody says that it is gone."""
        return self.replicas > 0 or any(pod.stage is not Stage.LEAVING for pod in self.pods)

    @property
    def missing(self) -> int:
        """Pods that are asked for and not there. A Deployment makes another one as soon as a pod is to leave; a StatefulSet only once it has
        left, as the name is taken until then."""
        there = sum(not self._replaced(pod) for pod in self.pods)
        return max(0, self.replicas * self.pods_per_replica - there)

    @property
    def placed(self) -> int:
        """Pods that have a node, and no other one in their place."""
        return sum(pod.node is not None and not self._replaced(pod) for pod in self.pods)

    def _replaced(self, pod: PodSeen) -> bool:
        return pod.stage is Stage.LEAVING and pod.group is None

    def answers(self, pod: PodSeen) -> bool:
        """Whether the replica of this pod answers requests."""
        return pod.stage is Stage.READY if self.pods_per_replica == 1 else self.whole(pod.group)

    def whole(self, number: int | None) -> bool:
        """Whether the replica of this number has all its pods, and all are ready."""
        ready = sum(pod.stage is Stage.READY for pod in self.pods if pod.group == number)
        return ready >= self.pods_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Everything that is seen of one deployment."""

    sets: tuple[SetSeen, ...] = ()
    """Oldest first."""
    scalers: tuple[str, ...] = field(default=())
    """HorizontalPodAutoscalers and ScaledObjects that target the deployment, as "Kind name"."""
    scalers_below: tuple[str, ...] = ()
    """Those that target one of its objects instead."""

    @property
    def loaded(self) -> tuple[PodSeen, ...]:
        """Pods that are ready, but still ask not to be moved as while they load."""
        return tuple(
            pod for seen in self.sets for pod in seen.pods if pod.until_ready and pod.stage is Stage.READY
        )

    def set_named(self, name: str) -> SetSeen | None:
        return next((seen for seen in self.sets if seen.name == name), None)
