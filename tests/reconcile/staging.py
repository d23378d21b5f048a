"""A fleet of one deployment whose load a test sets, with the control loop around it, in a time that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.pod_sample import PodSample
from plimsoll.facts.resolve import Resolver
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.child import Child
from plimsoll.objects import Ref
from plimsoll.prometheus.wakes import Woken
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import Asked, Looked
from plimsoll.reconcile.loop.subject import Subject
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.world import Cluster, World
from plimsoll.render.shared import plan_ref
from plimsoll.status.told import News
from tests.planning.asking import inventory, pool
from tests.reconcile.test_decide import after, seen

KEY = "team-a/chat"
AUTO: dict[str, Any] = {"scaling": {"min": 1, "max": 4, "upWindowSeconds": 0, "downWindowSeconds": 60}}
TICK = 15.0


@dataclass
class Scene:
    """A cluster that does at once what a turn decides, and the metrics of its pods."""

    asked: Seen
    decision: Decision
    load: float = 4.0
    """Requests in flight of all replicas."""
    finished: dict[str, float] = field(default_factory=dict)
    reachable: bool = True
    now: float = 1_800_000_000.0
    version: int = 1
    edits: int = 0
    reads: int = 0
    woken: list[str] = field(default_factory=list)
    news: list[News] = field(default_factory=list)

    # What a World asks its cluster for

    def children(self, key: str) -> Mapping[Ref, Child]:
        ref = plan_ref(*key.split("/", 1))
        child = Child(
            ref=ref, owner=key, uid="u", version=str(self.version), owner_uid="o", holder="", hash="", mark=0,
            clean=True, leaving=False, created=0.0, set="", failed="", workload=None,
        )  # fmt: skip
        return {ref: child}

    async def read(self, _: Ref) -> Mapping[str, Any]:
        self.reads += 1
        kept = self.decision.kept
        assert kept.plan is not None
        data = {**kept.beside(), names.PLAN_KEY: kept.plan.to_bytes().decode()}
        return {"data": data, "metadata": {"uid": "u", "resourceVersion": str(self.version)}}

    def serving(self, *_: object) -> Serving:
        assert self.decision.rollout is not None
        return Serving(
            sets=tuple(
                SetSeen(name=one.name, replicas=one.replicas, pods=self.pods(one.name, one.replicas))
                for one in self.decision.rollout.targets
            )
        )

    def pods(self, name: str, count: int) -> tuple[PodSeen, ...]:
        since = 1_700_000_000.0
        return tuple(
            PodSeen(
                name=f"{name}-{n}", uid=f"{name}-{n}", stage=Stage.READY, node="n",
                created=since, since=since + 60, scheduled=since, address="10.0.0.1",
            )
            for n in range(count)
        )  # fmt: skip

    def inventory(self) -> Inventory:
        return cast(Inventory, inventory(pool(nodes=4)))

    def announce(self, _: object, news: Iterable[News]) -> None:
        self.news += news

    # What a Source answers

    def wants(self, spec: Mapping[str, Any]) -> bool:
        return "mode" not in spec.get("tuning", {})

    def covers(self, _: Subject) -> bool:
        return True

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        pods = [pod for each in asked for pod in each.leaders]
        if not self.reachable:
            return Looked(reachable=False)
        each = self.load / max(1, len(pods))
        for pod in pods:
            self.finished[pod.uid] = self.finished.get(pod.uid, 0.0) + min(64.0, each) / 2 * TICK
        return Looked(
            samples=tuple(
                PodSample(
                    pod=pod.uid, at=now, running=min(64.0, each), waiting=max(0.0, each - 64),
                    kv_fraction=min(1.0, each / 64), kv_tokens=65536, finished=self.finished[pod.uid], preemptions=0.0,
                )
                for pod in pods
            )
        )  # fmt: skip

    def close(self) -> None:
        pass

    # What tests do

    def turn(self, world: World) -> None:
        """As a turn would: what control says is decided, done and kept."""
        asked = replace(after(self.decision, self.asked), direction=world.directions.get(KEY))
        before, self.decision = self.decision, decide(asked)
        if self.decision.frozen:
            # Nothing but the status is written.
            self.decision = replace(self.decision, kept=before.kept)
        if self.decision.kept != before.kept:
            self.version += 1
        if KEY in world.directions:
            world.directed[KEY] = world.directions[KEY]
        self.woken.clear()

    def run(self, control: Control, world: World, ticks: int) -> int:
        """How many turns it took."""
        turns = 0
        for _ in range(ticks):
            self.now += TICK
            asyncio.run(control.tick())
            if self.woken:
                self.turn(world)
                turns += 1
        return turns

    @property
    def replicas(self) -> int:
        assert self.decision.rollout is not None
        return sum(one.replicas for one in self.decision.rollout.targets)


def staged(**spec: Any) -> tuple[Scene, World, Control]:
    asked = seen(spec={**AUTO, "engine": {"maxSequences": 64}, **spec}, pools=(pool(nodes=4),))
    stage = Scene(asked=asked, decision=decide(asked))
    return stage, *started(stage)


def woken() -> tuple[Scene, World, Control]:
    """One that sleeps, and whose annotation has just asked for it."""
    stage, world, control = staged(
        scaling={"max": 4, "zero": {"wake": {"annotation": True}, "afterSeconds": 60}}
    )
    stage.load = 0.0
    stage.run(control, world, 120)
    assert stage.replicas == 0
    asked = stage.asked.deployment
    metadata = asked.metadata.model_copy(update={"annotations": {names.ANNOTATION_WAKE: "now"}})
    put(stage, world, replace(stage.asked, deployment=asked.model_copy(update={"metadata": metadata})))
    return stage, world, control


def started(stage: Scene) -> tuple[World, Control]:
    world = World(
        cluster=cast(Cluster, stage),
        resources=Resources(),
        models=Models(Resolver(), lambda: stage.now),
        now=lambda: stage.now,
        config=OperatorConfig(),
    )
    put(stage, world, stage.asked)
    return world, Control(world, stage, stage.woken.append, interval_s=TICK)


def put(stage: Scene, world: World, asked: Seen, key: str = KEY) -> None:
    if key == KEY:
        stage.asked = asked
    body = asked.deployment.to_dict()
    stage.edits += 1
    body["metadata"] |= {
        "uid": "o", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": str(stage.edits),
    }  # fmt: skip
    world.resources.put(key, body)


def conditions(direction: Direction) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in direction.told}


def replace_look(stage: Scene, answer: Looked) -> Callable[[], None]:
    """Until the returned function is called every look gives this answer."""

    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        del now, asked
        return answer

    return _looking(stage, look)


def refuse(stage: Scene, why: str) -> Callable[[], None]:
    """Until the returned function is called every look finds the wake query refused, beside whatever else it finds."""
    return answer(stage, Woken(refused={KEY: why}))


def answer(stage: Scene, woken: Woken) -> Callable[[], None]:
    """Until the returned function is called every look finds that of wake queries, beside whatever else it finds."""
    before = stage.look

    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        return replace(await before(now, asked), woken=woken)

    return _looking(stage, look)


def _looking(stage: Scene, look: Callable[[float, Sequence[Asked]], Awaitable[Looked]]) -> Callable[[], None]:
    before = stage.look
    stage.look = look  # type: ignore[method-assign,assignment]

    def back() -> None:
        stage.look = before  # type: ignore[method-assign]

    return back
