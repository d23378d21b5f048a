"""One deployment as the control law takes it: its sets, each with its replicas and the room that it finds for more, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.control.law import LAW
from plimsoll.control.record import Record
from plimsoll.control.signals import Signals
from plimsoll.control.situation import ReplicaState, Role, ServingSet, Situation, Zero
from plimsoll.facts.serving import Serving, SetSeen
from plimsoll.reconcile.loop.grounds import Ground, Grounds
from plimsoll.reconcile.loop.replicas import lost, replicas_of
from plimsoll.reconcile.loop.subject import Planned, Subject


class SetsSeen:
    """Sets of deployments as the control law takes them. They are made once, and stand while nothing new is seen of a deployment."""

    def __init__(self) -> None:
        self._known: dict[str, _SetsOf] = {}
        self._asked: dict[str, _SetsOf] = {}

    def of(self, subject: Subject, serving: Serving, grounds: Grounds) -> tuple[ServingSet, ...]:
        rooms = tuple([grounds.for_set(planned) for planned in _counted(subject, serving)])
        found = self._known.get(subject.key)
        if found is None or not found.of(subject, serving, rooms):
            served = frozenset[str]() if found is None else found.served
            sets = tuple(_having_served(each, served) for each in serving_sets(subject, serving, rooms))
            # A pod whose node is silent is no replica meanwhile, and is one again.
            there = {pod.uid for seen in serving.sets for pod in seen.pods}
            found = _SetsOf(subject, serving, rooms, sets, (served & there) | _serving(sets))
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
    served: frozenset[str]
    """Replicas that are there and were ready at some look."""

    def of(self, subject: Subject, serving: Serving, rooms: tuple[Ground, ...]) -> bool:
        return self.subject is subject and self.serving is serving and self.rooms == rooms


def _serving(sets: tuple[ServingSet, ...]) -> frozenset[str]:
    return frozenset(one.id for each in sets for one in each.replicas if one.state is ReplicaState.READY)


def _having_served(each: ServingSet, served: frozenset[str]) -> ServingSet:
    if served.isdisjoint(one.id for one in each.replicas):
        return each
    return replace(each, replicas=tuple(replace(one, served=one.id in served) for one in each.replicas))


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
        lost=sum(map(lost, seen)),
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
    if any(one.lives for one in _others(subject, serving)):
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


def _wait_for_room(sets: Sequence[ServingSet], now: float) -> bool:
    """Whether as many serve as are asked for, so that further ones may go, and all that are to come beside them find no room."""
    stand = (ReplicaState.READY, ReplicaState.LEAVING)
    come = [(each, one) for each in sets for one in each.replicas if one.state not in stand]
    if not come and not any(each.refused for each in sets):
        return False
    return all(each.ready >= each.told for each in sets) and all(
        one.state is ReplicaState.QUEUED or one.is_unplaced(now, LAW.unplaced_s, each.node_s)
        for each, one in come
    )


def _asked(subject: Subject, record: Record) -> Mapping[str, int] | None:
    """By set: replicas that were asked for last."""
    if record.replicas is None or not subject.autoscaled:
        return None
    if len(subject.sets) == 1:
        return {subject.sets[0].name: record.replicas}
    return {each.name: record.shares[each.digest] for each in subject.sets if each.digest in record.shares}


def situation_of(
    subject: Subject,
    record: Record,
    serving: Serving,
    signals: Signals,
    sets: tuple[ServingSet, ...],
    *,
    zero: Zero | None,
) -> Situation:
    busy = _held(subject, record, serving)
    role = Role(
        sets=sets,
        signals=signals,
        bounds=subject.bounds,
        exports=subject.exports,
        asked=_asked(subject, record),
    )
    return Situation(
        name=subject.key,
        roles=(role,),
        slo=subject.slo,
        zero=zero if subject.autoscaled else None,
        priority=subject.priority,
        up_window_s=subject.up_window_s,
        down_window_s=subject.down_window_s,
        busy=busy,
        lets_go=busy is not None and not _given_up(subject, serving) and _wait_for_room(sets, signals.at),
    )
