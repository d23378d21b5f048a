"""One deployment as the control law takes it: its replicas by set, the room that the fleet has for more, and what holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.config import OperatorConfig
from plimsoll.api.config_fleet import PROVISION_S, provision_of
from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.control.record import Record
from plimsoll.control.rollout.failing import NOT_THE_ENGINES
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Replica, ReplicaState, Role, ServingSet, Situation, Zero
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.pod_seen import NODE_LOST
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.placing.placement import barring, room
from plimsoll.planning.plan import Hardware
from plimsoll.reconcile.loop.subject import Planned, Subject

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


def leaders(serving: Serving) -> Mapping[tuple[str, str], tuple[PodSeen, ...]]:
    """Pods of each replica that is ready, the leader first, by set and replica."""
    return {
        (seen.name, pods[0].uid): pods
        for seen in serving.sets
        for pods in _replicas(seen)
        if _stage(seen, pods) is Stage.READY
    }


def live(
    ready: Mapping[tuple[str, str], tuple[PodSeen, ...]], names: Iterable[str] | None = None
) -> dict[str, str]:
    """UIDs of the leaders of these replicas, by the pods' names; `names` are the sets that count, None all of them."""
    chosen = None if names is None else set(names)
    return {
        pods[0].name: pods[0].uid for (name, _), pods in ready.items() if chosen is None or name in chosen
    }


def replicas_of(seen: SetSeen, *, node_coming: bool) -> tuple[Replica, ...]:
    return tuple(_replica(seen, pods, node_coming=node_coming) for pods in _replicas(seen))


def _replicas(seen: SetSeen) -> Iterator[tuple[PodSeen, ...]]:
    """Pods of each replica, the leader first; of one whose leader is not there yet nothing can be told.

    A pod that has ended is no replica any more; neither it nor one whose node is silent says how the next one starts.
    """
    there = [pod for pod in seen.pods if not pod.ended and pod.reason != NODE_LOST]
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
    outside = stage is Stage.FAILED and all(
        pod.reason in NOT_THE_ENGINES for pod in pods if pod.stage is Stage.FAILED
    )
    if len(pods) == 1:
        pod = pods[0]
        return Replica(
            id=pod.uid,
            state=state,
            since=pod.since,
            created=pod.created,
            scheduled=pod.scheduled,
            restarts=pod.restarts,
            outside=outside,
            unready=pod.unready,
        )
    scheduled = [pod.scheduled for pod in pods]
    unready = [pod.unready for pod in pods if pod.unready is not None]
    return Replica(
        id=pods[0].uid,
        state=state,
        since=max(pod.since for pod in pods),
        created=min(pod.created for pod in pods),
        scheduled=None if None in scheduled else max(at for at in scheduled if at is not None),
        restarts=sum(pod.restarts for pod in pods),
        outside=outside,
        unready=min(unready, default=None),
    )


@dataclass(frozen=True, slots=True)
class Ground:
    """The room that the fleet has for replicas of one kind."""

    key: str
    """The same for all sets that find the same room."""
    replicas: int
    """How many further replicas find devices, on nodes that could still be made too."""
    provision_s: float | None
    """How long a node takes to come, 0 where devices are free; None where there is no room and none is to come."""
    declared: bool
    """Whether a node may be on its way, as far as is known."""


class Grounds:
    """Room by kind of replica, counted once a tick."""

    def __init__(self, inventory: Inventory, config: OperatorConfig) -> None:
        self._inventory = inventory
        self._provision = provision_of(config.node_classes)
        self._known: dict[tuple[object, ...], Ground] = {}
        self._free: dict[str, float] = {}
        self._parts: dict[str, frozenset[str]] = {}
        self.gpus = sum((pool.nodes * pool.devices_per_node / pool.sharing for pool in inventory.pools), 0.0)

    def of(
        self, hardware: Hardware, shape: Shape, layout: Layout, bears: tuple[Toleration, ...] = ()
    ) -> Ground:
        """`bears` are the tolerations of its pods."""
        kind = (hardware.gpu, hardware.partition, hardware.sharing, hardware.via_dra,
                tuple(sorted(hardware.selector.items())), shape, layout, bears)  # fmt: skip
        found = self._known.get(kind)
        if found is None:
            pools = [
                pool for pool in self._inventory.pools if _takes(pool, hardware) and not barring(pool, bears)
            ]
            found = self._known[kind] = self._ground(pools, shape, layout)
        return found

    def _ground(self, pools: Sequence[Pool], shape: Shape, layout: Layout) -> Ground:
        there = sum(room(pool.there, shape, layout) for pool in pools)
        coming = [pool for pool in pools if pool.declared_nodes or _has_come(pool)]
        waits = [self._provision.get(pool.node_class or "", PROVISION_S) for pool in coming]
        key = f"{','.join(pool.key for pool in pools)} by {shape.pods} of {shape.devices} {layout}"
        self._parts[key] = frozenset(pool.key for pool in pools)
        return Ground(
            key=key,
            replicas=sum(room(pool, shape, layout) for pool in pools),
            provision_s=0.0 if there else min(waits, default=None),
            declared=bool(coming),
        )

    def for_set(self, planned: Planned) -> Ground:
        ground = self.of(planned.hardware, planned.shape, planned.layout, planned.tolerations)
        self._free[ground.key] = ground.replicas * planned.gpus
        return ground

    def free(self) -> Mapping[str, float]:
        """GPUs that further replicas would find, by ground, of those grounds that sets were asked for."""
        return dict(self._free)

    def parts(self) -> Mapping[str, frozenset[str]]:
        """The pools of nodes that each ground is made up of."""
        return dict(self._parts)


def _takes(pool: Pool, hardware: Hardware) -> bool:
    labels = {**pool.labels, **pool.pins}
    return (
        pool.gpu.name == hardware.gpu
        and pool.partition == hardware.partition
        and pool.sharing == hardware.sharing
        and pool.via_dra == hardware.via_dra
        and all(labels.get(name) == value for name, value in hardware.selector.items())
    )


def _has_come(pool: Pool) -> bool:
    """Whether nodes of a class are there and not ready yet: those that have just been made are so for a while."""
    return pool.node_class is not None and "not ready" in pool.unavailable


class SetsSeen:
    """Sets of deployments as the control law takes them. They are made once, and stand while nothing new is seen of a deployment."""

    def __init__(self) -> None:
        self._known: dict[str, _SetsOf] = {}
        self._asked: dict[str, _SetsOf] = {}

    def of(self, subject: Subject, serving: Serving, grounds: Grounds) -> tuple[ServingSet, ...]:
        rooms = tuple([grounds.for_set(planned) for planned in _counted(subject, serving)])
        found = self._known.get(subject.key)
        if found is None or not found.of(subject, serving, rooms):
            found = _SetsOf(subject, serving, rooms, serving_sets(subject, serving, rooms))
        self._asked[subject.key] = found
        return found.sets

    def over(self) -> None:
        """The tick is over; what it did not ask for is forgotten."""
        self._known, self._asked = self._asked, {}


@dataclass(frozen=True, slots=True)
class _SetsOf:
    subject: Subject
    serving: Serving
    rooms: tuple[Ground, ...]
    sets: tuple[ServingSet, ...]

    def of(self, subject: Subject, serving: Serving, rooms: tuple[Ground, ...]) -> bool:
        return self.subject is subject and self.serving is serving and self.rooms == rooms


def serving_sets(subject: Subject, serving: Serving, rooms: Sequence[Ground]) -> tuple[ServingSet, ...]:
    """The plan's sets, each with the room that it finds. Replicas of other sets, which a rollout moves away from or a retune tries, count
    with the first: they share the load."""
    found = []
    ours = {planned.name for planned in subject.sets}
    for place, (planned, ground) in enumerate(zip(_counted(subject, serving), rooms, strict=True)):
        seen = [one for one in serving.sets if one.name == planned.name]
        if place == 0:
            seen += [one for one in serving.sets if one.name not in ours]
        found.append(serving_set(planned, seen, ground))
    return tuple(found)


def serving_set(planned: Planned, seen: Sequence[SetSeen], ground: Ground) -> ServingSet:
    return ServingSet(
        name=planned.name,
        pool=ground.key,
        capacity=planned.capacity,
        replicas=tuple(replica for one in seen for replica in replicas_of(one, node_coming=ground.declared)),
        wanted=planned.replicas,
        product=planned.product,
        gpus=planned.gpus,
        price_per_hour=planned.price_per_hour,
        provision_s=ground.provision_s,
        refused=any(one.refused for one in seen),
        entry=planned.digest,
    )


def _counted(subject: Subject, serving: Serving) -> tuple[Planned, ...]:
    """The plan's sets; in place of one that was given up, the set that serves again."""
    again = _again(subject, serving)
    return subject.sets if again is None else (again,)


def _again(subject: Subject, serving: Serving) -> Planned | None:
    """The older set that serves all replicas again, since the plan's own was given up; it has the name of the plan's. None where nothing
    was given up, and where that is not plain, as several sets serve or the plan has several."""
    others = _others(subject, serving)
    if len(subject.sets) != 1 or len(others) != 1 or not _given_up(subject, serving):
        return None
    (lead,), was = subject.sets, subject.others.get(others[0].name)
    # What is learned of it stays its own.
    return None if was is None else replace(was, name=lead.name, replicas=lead.replicas)


def _given_up(subject: Subject, serving: Serving) -> bool:
    seen = [serving.set_named(planned.name) for planned in subject.sets]
    return all(one is not None and one.failed and not one.replicas for one in seen)


def _others(subject: Subject, serving: Serving) -> list[SetSeen]:
    """Sets that are neither the plan's nor what a retune tries."""
    ours = {planned.name for planned in subject.sets}
    tried = None if subject.changed is None else subject.changed.name
    return [one for one in serving.sets if one.name not in ours and one.name != tried]


def busy_of(subject: Subject, serving: Serving) -> str | None:
    """What else moves replicas now, in words; None where nothing does."""
    if any(one.replicas or one.pods for one in _others(subject, serving)):
        return "a rollout"
    return None


def _held(subject: Subject, record: Record, serving: Serving) -> str | None:
    """Why nothing is taken away, in a clause."""
    busy = busy_of(subject, serving) if _again(subject, serving) is None else None
    if busy is None:
        return None if record.retune.step is None else "a retune is under way"
    if _given_up(subject, serving):
        return "the new set was given up, and the plan is not of what serves; edit the spec"
    return f"{busy} is under way"


def situation_of(
    subject: Subject,
    record: Record,
    serving: Serving,
    signals: Signals,
    sets: tuple[ServingSet, ...],
    *,
    zero: Zero | None,
) -> Situation:
    role = Role(
        sets=sets,
        signals=signals,
        bounds=subject.bounds,
        exports=subject.exports,
    )
    return Situation(
        name=subject.key,
        roles=(role,),
        slo=subject.slo,
        zero=zero if subject.autoscaled else None,
        priority=subject.priority,
        up_window_s=subject.up_window_s,
        down_window_s=subject.down_window_s,
        busy=_held(subject, record, serving),
    )
