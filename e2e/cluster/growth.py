"""Nodes that are made only when a pod waits for one, as a cloud's provisioner does, and go again when nobody uses them.

A fleet's pools with `maxNodes` above `nodes` are what can be made. A loop looks at the pods that the scheduler could not place; where one
would fit on a node that could be there, that node registers after a delay. Nothing is made for a pod that would fit on none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from cluster.api import ApiError, Object
from cluster.fleet import Fleet
from cluster.simulator import Simulator, is_usable
from plimsoll.facts.amounts import millicores, whole

LOOK_SECONDS: Final = 0.2
LEAVING: Final[Object] = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
GONE_BY: Final = (404, 409)
"""Somebody else has removed or made what the loop was about to; the next look sees it."""
Amounts = Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Growth:
    """The loop, and what it has made."""

    simulator: Simulator
    fleet: Fleet
    after_seconds: float
    empty_seconds: float | None
    """How long a node it made may stand empty; None: for ever."""
    made: list[str] = field(default_factory=list)
    _due: dict[str, float] = field(default_factory=dict)
    _empty_since: dict[str, float] = field(default_factory=dict)
    _leaving: set[str] = field(default_factory=set)
    _failure: BaseException | None = None

    @contextmanager
    def running(self) -> Iterator[Growth]:
        """Until the end of the `with`; what it failed of is raised there."""
        ended = threading.Event()

        def loop() -> None:
            try:
                while not ended.wait(LOOK_SECONDS):
                    self._look_again()
            except BaseException as error:  # noqa: BLE001 - raised again by the owner
                self._failure = error

        thread = threading.Thread(target=loop, name="growth", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()
        self.check()

    def check(self) -> None:
        """Raise what the loop failed of."""
        if self._failure is not None:
            raise self._failure

    def _look_again(self) -> None:
        try:
            self.look(time.monotonic())
        except ApiError as error:
            if error.status not in GONE_BY:
                raise

    def look(self, now: float) -> None:
        """One look at what waits, what is due, and what stands empty."""
        api = self.simulator.api
        waiting = [
            pod for pod in api.items("/api/v1/pods", fieldSelector="spec.nodeName=") if is_waiting(pod)
        ]
        if waiting:
            self._order(waiting, now)
        spare = {node["metadata"]["name"]: node for node in self.fleet.spare}
        for name in sorted(name for name, due in self._due.items() if due <= now):
            self.simulator.register(spare[name])
            self.made.append(name)
            del self._due[name]
        if self.empty_seconds is not None and self.made:
            self._retire_empty(now, self.empty_seconds)

    def _order(self, waiting: list[Object], now: float) -> None:
        """A node for each pod that fits on none of those that are there or on their way."""
        api = self.simulator.api
        rooms = {
            node["metadata"]["name"]: amounts(node["status"]["allocatable"])
            for node in api.items("/api/v1/nodes", labelSelector=self.fleet.selector)
        }
        for pod in api.items("/api/v1/pods"):
            if (name := pod["spec"].get("nodeName")) in rooms:
                rooms[name] = minus(rooms[name], requested(pod))
        spare = {node["metadata"]["name"]: node for node in self.fleet.spare}
        every = {node["metadata"]["name"]: node for node in self.fleet.nodes} | spare
        whole_rooms = {name: amounts(node["status"]["allocatable"]) for name, node in every.items()}
        rooms |= {name: whole_rooms[name] for name in self._due}
        for pod in waiting:
            wanted = requested(pod)
            fitting = (
                name
                for name in (*rooms, *(other for other in spare if other not in rooms))
                if may_go(pod, every[name]) and fits(wanted, rooms.get(name, whole_rooms[name]))
            )
            if chosen := next(fitting, None):
                if chosen not in rooms:
                    self._due[chosen] = now + self.after_seconds
                rooms[chosen] = minus(rooms.get(chosen, whole_rooms[chosen]), wanted)

    def _retire_empty(self, now: float, seconds: float) -> None:
        """Tainted first, and looked at once more: a pod may have been placed there in between."""
        api = self.simulator.api
        nodes = api.items("/api/v1/nodes", labelSelector=self.fleet.selector)
        usable = {node["metadata"]["name"] for node in nodes if is_usable(node)}
        used = {pod["spec"].get("nodeName") for pod in api.items("/api/v1/pods")}
        for name in [name for name in self.made if name in usable]:
            leaving = name in self._leaving
            if name in used:
                self._empty_since.pop(name, None)
                if leaving:
                    self._leaving.discard(name)
                    self._taint(name, leaving=False)
            elif leaving:
                api.delete(f"/api/v1/nodes/{name}")
                self.made.remove(name)
                self._leaving.discard(name)
                del self._empty_since[name]
            elif now - self._empty_since.setdefault(name, now) >= seconds:
                self._leaving.add(name)
                self._taint(name, leaving=True)

    def _taint(self, name: str, *, leaving: bool) -> None:
        (spare,) = (node for node in self.fleet.spare if node["metadata"]["name"] == name)
        taints = [*(spare["spec"].get("taints") or ()), *([LEAVING] if leaving else [])]
        self.simulator.api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})


def is_waiting(pod: Object) -> bool:
    """Whether the scheduler has looked at it and found no place."""
    return any(
        one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
        for one in pod["status"].get("conditions") or ()
    )


def may_go(pod: Object, node: Object) -> bool:
    """Whether the pod's selector, affinity and tolerations allow the node."""
    labels, spec = node["metadata"]["labels"], pod["spec"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = (required or {}).get("nodeSelectorTerms") or ()
    if terms and not any(
        all(_holds(one, labels) for one in term.get("matchExpressions") or ()) for term in terms
    ):
        return False
    return all(
        any(_tolerates(one, taint) for one in spec.get("tolerations") or ())
        for taint in node["spec"].get("taints") or ()
        if taint["effect"] != "PreferNoSchedule"
    )


def _holds(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(wanted["key"]), wanted.get("values") or ()
    match wanted["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ValueError(f"a node affinity with the operator {other} is not understood here")


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    return (
        toleration.get("key") in {None, taint["key"]}
        and toleration.get("effect") in {None, "", taint["effect"]}
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
    )


def requested(pod: Object) -> dict[str, int]:
    """What its containers ask for, and the one place that it takes."""
    total = {"pods": 1}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        for name, value in amounts(
            (resources.get("limits") or {}) | (resources.get("requests") or {})
        ).items():
            total[name] = total.get(name, 0) + value
    return total


def amounts(written: Mapping[str, str]) -> dict[str, int]:
    """Cores in thousandths, all else in ones."""
    return {name: millicores(value) if name == "cpu" else whole(value) for name, value in written.items()}


def fits(wanted: Amounts, room: Amounts) -> bool:
    return all(room.get(name, 0) >= amount for name, amount in wanted.items())


def minus(room: Amounts, taken: Amounts) -> dict[str, int]:
    return {name: amount - taken.get(name, 0) for name, amount in room.items()}
