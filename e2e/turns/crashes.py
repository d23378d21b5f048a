"""The operator ends after the n-th write of what it does to one resource, for every n, side by side in namespaces of their own.

The proxy lets the first n writes of a namespace through and refuses all others, so that the cluster is as a crash just then
would leave it; then the operator is killed, and with it all that it knew. What the next one makes of each is judged by what
is there, and by the API server's own record of who wrote what.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.api import ApiError
from cluster.faults import WRITES, Answer, Rule, Where
from cluster.fleet import Fleet, fleet_of
from common import ROOT
from plimsoll import names
from rights import shipped
from turns.running import Desk, Operator

SMALL: Final = {"gpuProducts": ["H100-SXM-80GB"]}
WIDE: Final = {"gpuProducts": ["H200-SXM-141GB"], "tensor": 8, "pipeline": 2}
"""A replica takes two nodes: a StatefulSet for its leader, and one for the others."""
LARGE: Final = {"source": "hf://meta-llama/Llama-3.1-405B-Instruct"}
DIES: Final = {"e2e.plimsoll.dev/dies": "exit", "e2e.plimsoll.dev/back-off": "1s"}
POINTS: Final = {"create": 15, "update": 20, "rollback": 15, "scale": 7, "delete": 8, "group": 14}
"""After how many writes, at most. Some paths are shorter on some runs, and then end by themselves."""
PATIENCE: Final = 600.0
"""For what is waited for by looking: on a busy machine all of it takes many times as long."""


@dataclass(slots=True)
class Point:
    """One resource and the write after which the operator ends."""

    path: str
    writes: int
    desk: Desk
    rule: Rule | None = None
    old: str = ""
    """The set that served before."""
    faults: list[str] = field(default_factory=list)

    @property
    def struck(self) -> bool:
        return self.rule is not None and self.rule.hits > 0

    def __str__(self) -> str:
        return f"{self.path} after {self.writes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    points: int
    struck: int
    """Where the operator had more to write; the other paths had ended."""
    faults: tuple[str, ...]
    converged_s: float
    """From the start of the next operator until the last of them was as it should be."""
    late_writes: int
    """Once all was as it should be."""


@contextmanager
def laboratory() -> Iterator[Cluster]:
    """A cluster whose API server writes everything down, with room for all points at once."""
    with Cluster(audit=True) as cluster:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        with cluster.fleet(room()):
            yield cluster


def room() -> Fleet:
    machine = {"gpusPerNode": 8, "cpu": "192", "memory": "2Ti"}
    pools = [
        {"name": "small", "gpuProduct": "H100-SXM-80GB", "nodes": 24, **machine},
        {"name": "wide", "gpuProduct": "H200-SXM-141GB", "nodes": 32, "rdma": True, **machine},
    ]
    return fleet_of("room", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


def matrix(
    cluster: Cluster,
    folder: Path,
    *,
    every: int = 1,
    quiet_seconds: float = 60.0,
    paths: tuple[str, ...] = (),
) -> Outcome:
    """`every`: only each so manieth write."""
    chosen = {path: count for path, count in POINTS.items() if not paths or path in paths}
    points = [
        Point(path, writes, _desk(cluster, f"{path}-{writes}"))
        for path, count in chosen.items()
        for writes in range(0, count, every)
    ]
    with cluster.proxy() as proxy:
        through = proxy.kubeconfig(shipped(cluster))
        with Operator(cluster, folder, kubeconfig=through) as operator:
            _prepare(points, operator)
            for point in points:
                where = Where(verbs=WRITES, namespace=point.desk.namespace)
                point.rule = proxy.add(Answer(403), where, after=point.writes)
                _begin(point)
            _wait(lambda: all(point.struck or _is_over(point) for point in points))
            operator.stop(signal.SIGKILL)
            for point in points:
                if point.path == "delete":
                    cluster.api.delete(point.desk.path())
                if point.rule is not None:
                    point.rule.remove()
            began = time.monotonic()
            operator.start()
            _wait(lambda: all(_as_it_should_be(point) for point in points))
            for point in points:
                if not _as_it_should_be(point):
                    point.faults.append(f"is not as it should be: {_shown(point)}")
            took = time.monotonic() - began
            late = _writes_within(operator, quiet_seconds)
            for point in points:
                point.faults += _judged(cluster, point)
    return Outcome(
        points=len(points),
        struck=sum(point.struck for point in points),
        faults=tuple(f"{point}: {fault}" for point in points for fault in point.faults),
        converged_s=round(took, 1),
        late_writes=late,
    )


def _desk(cluster: Cluster, name: str) -> Desk:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return Desk(cluster, name)


def _apply(point: Point, **spec: Any) -> None:
    if point.path == "group":
        point.desk.apply(topology=WIDE, model=LARGE, **spec)
    else:
        point.desk.apply(topology=SMALL, **spec)


def _prepare(points: list[Point], operator: Operator) -> None:
    """What is changed must serve first."""
    there = [point for point in points if point.path in ("update", "rollback", "scale")]
    for point in there:
        _apply(point)
    _wait(lambda: all(point.desk.condition("Ready") == ("True", "Serving") for point in there))
    for point in there:
        if point.desk.condition("Ready") != ("True", "Serving"):
            raise TimeoutError(f"{point}: what is to be changed does not serve: {_shown(point)}")
        (point.old,) = point.desk.deployments()
    operator.rests()


def _begin(point: Point) -> None:
    match point.path:
        case "update":
            _apply(point, workload={"contextTokens": 8192})
        case "rollback":
            _apply(point, podAnnotations=DIES)
        case "scale":
            _apply(point, replicas=2)
        case _:
            _apply(point)


def _is_over(point: Point) -> bool:
    return point.path != "delete" and _as_it_should_be(point)


def _as_it_should_be(point: Point) -> bool:
    desk = point.desk
    if point.path == "delete":
        return desk.children() == {} and desk.pods() == []
    if point.path == "rollback":
        return (
            desk.condition("Stalled") == ("True", "StartFailed")
            and desk.deployments().get(point.old) == 1
            and desk.get()["status"].get("replicaStatus", {}).get("ready") == 1
        )
    if desk.condition("Ready") != ("True", "Serving") or desk.condition("Progressing")[1] != "RolledOut":
        return False
    if any(names.ANNOTATION_UNTIL_READY in (pod["metadata"].get("annotations") or {}) for pod in desk.pods()):
        return False  # the last write of all lets the nodes of lone pods be taken away
    sets = desk.deployments()
    match point.path:
        case "update":
            return len(sets) == 1 and point.old not in sets
        case "scale":
            return sets == {point.old: 2} and desk.get()["status"].get("ready") == "2/2"
        case "group":
            return len(desk.items("apps/v1/statefulsets")) == 2 and len(desk.pods()) == 2
    return len(sets) == 1


def _shown(point: Point) -> str:
    try:
        status = point.desk.get().get("status") or {}
    except ApiError:
        return f"children {sorted(point.desk.children())}"
    return ", ".join(f"{one['type']}={one['status']} {one['reason']}" for one in status.get("conditions", ()))


def _judged(cluster: Cluster, point: Point) -> list[str]:
    """What is wrong with what is there, and with what was done on the way."""
    desk, found = point.desk, []
    if point.path != "delete":
        owner = desk.get()["metadata"]["uid"]
        kinds: Counter[str] = Counter()
        for kind in ("apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/controllerrevisions", "v1/services",
                     "v1/configmaps", "v1/serviceaccounts", "policy/v1/poddisruptionbudgets"):  # fmt: skip
            for one in desk.items(kind):
                if one["metadata"].get("labels", {}).get(names.LABEL_MANAGED_BY) != names.MANAGED_BY:
                    continue
                owners = [ref for ref in one["metadata"].get("ownerReferences", ()) if ref.get("controller")]
                if not owners:
                    found.append(f"{kind} {one['metadata']['name']} is an orphan")
                elif owners[0]["kind"] == names.KIND:
                    kinds[kind] += 1
                    if owners[0]["uid"] != owner:
                        found.append(f"{kind} {one['metadata']['name']} belongs to another")
        sets = 2 if point.path == "rollback" else 1
        expected = {
            "apps/v1/deployments": 0 if point.path == "group" else sets,
            "apps/v1/statefulsets": 2 if point.path == "group" else 0,
            "apps/v1/controllerrevisions": sets,
            "v1/services": 2 if point.path == "group" else 1,
            "v1/configmaps": 1, "v1/serviceaccounts": 1, "policy/v1/poddisruptionbudgets": 1,
        }  # fmt: skip
        found += [
            f"{kinds[kind]} of {kind} instead of {count}"
            for kind, count in expected.items()
            if kinds[kind] != count
        ]
    where = Where(verbs=WRITES, namespace=desk.namespace)
    made: Counter[str] = Counter()
    for entry in cluster.audit.entries(where):
        if entry.call.manager != names.MANAGER_CHILDREN:
            continue
        if entry.code == 201 and entry.call.resource != "events":
            made[f"{entry.call.resource} {entry.call.name}"] += 1
    found += [f"{what} was made {count} times" for what, count in made.items() if count > 1]
    if point.path == "delete" and point.old:
        found.append("it was served")
    return found


def _writes_within(operator: Operator, seconds: float) -> int:
    operator.rests()
    before = operator.writes()
    time.sleep(seconds)
    return operator.writes() - before


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.5)
