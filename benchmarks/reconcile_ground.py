"""The cluster that the operator is measured on: what is made there, what is waited for, and what it all cost.

What is measured, and beside whom, is `reconcile`'s.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from cluster import Cluster
from glass import PATIENCE, Glass, at_once, cpu_seconds
from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import CHILDREN, DEPLOYMENT, OWNER, Kind
from turns.running import Operator

SPACE: Final = "bench"
PLAIN: Final = "plain"
"""Namespace of what is not the operator's."""
REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet", "replicasets")
OBJECTS: Final = (
    "ConfigMap",
    "ControllerRevision",
    "Deployment",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
)
"""The children of each resource here."""
KINDS: Final = tuple(kind for kind in dict.fromkeys(CHILDREN) if kind.name in OBJECTS)
MANAGER: Final = "benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    singles: int = 100
    burst: int = 1000
    start: tuple[int, ...] = (100, 1000, 10_000)
    edits: int = 1000
    idle_minutes: float = 10.0


@dataclass(slots=True)
class Bench:
    cluster: Cluster
    door: Door
    sizes: Sizes
    operator: Operator
    found: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """What is done next, and all that was found so far, since a run takes many minutes."""
        found = f"  {json.dumps(self.found)}" if self.found else ""
        print(f"{time.strftime('%H:%M:%S')} {text}{found}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Spent:
    """What something cost; on a loaded machine this says more than its clock."""

    turns: float
    writes: int
    reads: int
    operator_s: float
    """CPU."""
    api_s: float

    def since(self, before: Spent, count: int) -> dict[str, float]:
        """Of each of so many."""
        each = {
            "turns_each": self.turns - before.turns,
            "writes_each": self.writes - before.writes,
            "reads_each": self.reads - before.reads,
            "operator_cpu_ms_each": 1000 * (self.operator_s - before.operator_s),
            "api_server_cpu_ms_each": 1000 * (self.api_s - before.api_s),
        }
        return {name: round(value / count, 2) for name, value in each.items()}


async def spent(bench: Bench) -> Spent:
    operator = bench.operator
    return Spent(
        await asyncio.to_thread(operator.metric, "plimsoll_turns_total"),
        await asyncio.to_thread(operator.writes),
        await asyncio.to_thread(operator.reads),
        cpu_seconds(operator.process.pid),
        cpu_seconds(bench.cluster.processes.pid("kube-apiserver")),
    )


def resource(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}, "replicas": 0, **spec},
    }


def plain_deployment(name: str) -> Object:
    labels = {"app": name}
    pod = {"containers": [{"name": "one", "image": "none.invalid/none"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": PLAIN}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def apply(bench: Bench, body: Object) -> Object:
    kind = OWNER if body["kind"] == names.KIND else DEPLOYMENT
    path = kind.path(body["metadata"]["namespace"], body["metadata"]["name"])
    return await bench.door.apply(path, body, manager=MANAGER)


def glass(bench: Bench) -> Glass:
    return Glass(bench.door, SPACE, KINDS)


def of_the_first(bench: Bench, kind: Kind) -> list[Object]:
    """The children of a kind that the first resource has."""
    selector = f"{names.LABEL_DEPLOYMENT}=llm-00000"
    return bench.cluster.api.items(f"{kind.collection(SPACE)}?labelSelector={selector}")


def content(child: Object) -> Object:
    """What somebody has written of it beside its metadata: not what the server counts, nor what a Service is given once."""
    aside = ("apiVersion", "kind", "metadata", "status")
    kept = {key: value for key, value in child.items() if key not in aside}
    if isinstance(spec := kept.get("spec"), dict):
        kept["spec"] = {key: value for key, value in spec.items() if not key.startswith("clusterIP")}
    return kept


async def create(bench: Bench, numbers: range) -> float:
    """Until every child of each is written."""
    async with glass(bench) as seen:
        began = time.monotonic()
        creating = [partial(apply, bench, resource(f"llm-{number:05}")) for number in numbers]
        creations = asyncio.create_task(at_once(creating))
        goal = numbers.stop
        # Others' objects are among them: a namespace brings its own account and root certificates.
        done = await seen.until(
            lambda: seen.of("Deployment") >= goal and all(seen.of(kind) >= goal for kind in OBJECTS)
        )
        await creations
        return done - began


async def remove(bench: Bench, kind: Kind, space: str) -> None:
    bench.cluster.api.delete(kind.collection(space))
    await gone(bench, [kind], space)


async def gone(bench: Bench, kinds: Iterable[Kind], space: str) -> None:
    selector = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}" if space == SPACE else ""
    for kind in kinds:
        async with asyncio.timeout(PATIENCE):
            while bench.cluster.api.items(f"{kind.collection(space)}?limit=1&labelSelector={selector}"):
                await asyncio.sleep(0.5)


async def quiet(bench: Bench, seconds: float = 3.0) -> None:
    """Until the operator has had nothing to do for so long."""
    before, since = -1.0, time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while time.monotonic() - since < seconds:
            turns = await asyncio.to_thread(bench.operator.metric, "plimsoll_turns_total")
            if turns != before or not turns:
                before, since = turns, time.monotonic()
            await asyncio.sleep(0.25)
