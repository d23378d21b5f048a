"""Replicas as the control law takes them, from the pods that are seen of each: one pod, or a group of pods over nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from plimsoll.control.rollout.failing import NOT_THE_ENGINES
from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.facts.serving import NODE_LOST, PodSeen, Serving, SetSeen, Stage

_WORST = (
    Stage.LEAVING,
    Stage.FAILED,
    Stage.UNSCHEDULED,
    Stage.GATED,
    Stage.PULLING,
    Stage.LOADING,
    Stage.READY,
)
_STATES = {
    Stage.LEAVING: ReplicaState.LEAVING,
    Stage.FAILED: ReplicaState.FAILED,
    Stage.UNSCHEDULED: ReplicaState.UNSCHEDULABLE,
    Stage.GATED: ReplicaState.QUEUED,
    Stage.READY: ReplicaState.READY,
}
_EVICTED: Final = "DeletionByTaintManager"
"""Why a pod leaves whose node has not answered for long. It leaves for as long as that node is away."""
_HEARSAY: Final = frozenset({"MemberLost", "LeaderLost", "GroupEnded"})
"""The supervisor's words of an engine that ends since another one of its group has."""
REPLACED_S: Final = 60.0
"""A pod that was made so much later than the first of its group is there in place of one that was lost or deleted: all of a group are made at once."""


def leaders(serving: Serving) -> Mapping[tuple[str, str], tuple[PodSeen, ...]]:
    """Pods that take requests of each replica that is ready, its first one first, by set and replica."""
    return {
        (seen.name, pods[0].uid): pods if len(pods) == 1 else _leading(pods)
        for seen in serving.sets
        for pods in _replicas(seen)
        if _stage(seen, pods) is Stage.READY
    }


def _leading(pods: tuple[PodSeen, ...]) -> tuple[PodSeen, ...]:
    return pods[0], *(pod for pod in pods[1:] if pod.leads and pod.stage is Stage.READY)


def live(
    ready: Mapping[tuple[str, str], tuple[PodSeen, ...]], names: Iterable[str] | None = None
) -> dict[str, str]:
    """UIDs of the first pods of these replicas, by the pods' names; `names` are the sets that count, None all of them."""
    chosen = None if names is None else set(names)
    return {
        pods[0].name: pods[0].uid for (name, _), pods in ready.items() if chosen is None or name in chosen
    }


def replicas_of(seen: SetSeen, *, node_coming: bool) -> tuple[Replica, ...]:
    return tuple(_replica(seen, pods, node_coming=node_coming) for pods in _replicas(seen))


def lost(seen: SetSeen) -> int:
    """Replicas that are asked for, whose nodes do not answer: none comes in their place before they are gone. A Deployment makes another of
    one that leaves, so only the pods of groups count for as long."""
    if seen.pods_per_replica == 1:
        return sum(pod.reason == NODE_LOST for pod in seen.pods)
    found = 0
    for number in seen.numbers:
        pods = [pod for pod in seen.pods if pod.group == number]
        gone = all(pod.stage is Stage.LEAVING or pod.reason == NODE_LOST for pod in pods)
        found += gone and any(pod.reason in (NODE_LOST, _EVICTED) for pod in pods)
    return found


def _replicas(seen: SetSeen) -> Iterator[tuple[PodSeen, ...]]:
    """Pods of each replica, the leader first, or else the first worker, which no sample is ever of.

    One whose node is silent does not say how the next one starts.
    """
    there = [pod for pod in seen.pods if pod.reason != NODE_LOST]
    if seen.pods_per_replica == 1:
        for pod in there:
            yield (pod,)
        return
    groups: dict[int | None, list[PodSeen]] = {}
    for pod in there:
        groups.setdefault(pod.group, []).append(pod)
    for number in sorted(groups, key=lambda number: -1 if number is None else number):
        pods = sorted(groups[number], key=lambda pod: (pod.rank, pod.created, pod.name))
        yield tuple(pods)


def _stage(seen: SetSeen, pods: tuple[PodSeen, ...]) -> Stage:
    if seen.pods_per_replica == 1:
        return pods[0].stage
    staying = [pod for pod in pods if pod.stage is not Stage.LEAVING]
    if not staying:
        return Stage.LEAVING
    worst = min((pod.stage for pod in staying), key=_WORST.index)
    return Stage.LOADING if worst is Stage.READY and len(staying) < seen.pods_per_replica else worst


def _replica(seen: SetSeen, pods: tuple[PodSeen, ...], *, node_coming: bool) -> Replica:
    stage = _stage(seen, pods)
    state = _STATES.get(stage, ReplicaState.STARTING)
    if node_coming and state is ReplicaState.UNSCHEDULABLE:
        state = ReplicaState.NODE_COMING
    blameless = _ended_with_another(seen, pods)
    worst = [pod for pod in pods if pod.stage is stage]
    outside = bool(worst) and all(_is_outside(pod) or pod in blameless for pod in worst)
    if seen.pods_per_replica == 1:
        pod = pods[0]
        return Replica(
            id=pod.uid,
            state=state,
            since=pod.since,
            created=pod.created,
            scheduled=pod.scheduled,
            restarts=pod.crashes,
            outside=outside,
            unready=pod.unready,
            pod=pod.name,
        )
    scheduled = [pod.scheduled for pod in pods]
    unready = [pod.unready for pod in pods if pod.unready is not None]
    return Replica(
        id=pods[0].uid,
        state=state,
        # A pod that gets further ahead of those that the group waits for does not begin their time anew.
        since=max((pod.since for pod in pods if pod.stage is stage), default=max(pod.since for pod in pods)),
        created=min(pod.created for pod in pods),
        scheduled=None if None in scheduled else max(at for at in scheduled if at is not None),
        restarts=sum(pod.crashes for pod in pods if pod not in blameless),
        outside=outside,
        unready=min(unready, default=None),
        pod=pods[0].name,
    )


def _is_outside(pod: PodSeen) -> bool:
    """Whether it is not its engine's doing that a pod does not serve."""
    if pod.stage is Stage.FAILED:
        return pod.reason in NOT_THE_ENGINES or pod.beside is not None
    return pod.stage is Stage.PULLING or pod.held_back


def _ended_with_another(seen: SetSeen, pods: tuple[PodSeen, ...]) -> tuple[PodSeen, ...]:
    """Pods of a group whose engines ended only as another pod of it went, or was replaced, since its node was lost or somebody deleted it:
    that is no doing of their engines."""
    staying = [pod for pod in pods if pod.stage is not Stage.LEAVING]
    first = min(pod.created for pod in pods)
    if len(staying) == seen.pods_per_replica and all(pod.created - first < REPLACED_S for pod in pods):
        return ()
    return tuple(pod for pod in pods if pod.failure is not None and pod.failure.word in _HEARSAY)
