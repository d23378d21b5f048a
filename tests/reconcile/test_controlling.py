"""The control loop: what a tick hands to turns, whom it wakes, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

import pytest

from plimsoll import names
from plimsoll.api.conditions import set_condition
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.api.v1alpha1.status import Condition
from plimsoll.control.decision import Told
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.pod_sample import PodSample
from plimsoll.facts.resolve import Resolver
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.child import Child
from plimsoll.objects import Ref
from plimsoll.prometheus.wakes import Woken
from plimsoll.reconcile import controlling
from plimsoll.reconcile.controlling import Control
from plimsoll.reconcile.decide import Decision, decide
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.sources import Asked, ByPods, Looked
from plimsoll.reconcile.subject import Subject
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
        return "tuning" not in spec

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


def test_load_that_rises_brings_replicas_within_bounds_and_one_event_a_decision() -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    assert stage.replicas == 1
    stage.load = 400.0
    stage.run(control, world, 12)
    assert stage.replicas == 4
    assert stage.news[0].reason in {"LoadRose", "Panic"}
    kept = stage.decision.kept.control
    assert kept is not None
    assert [(act.before, act.after) for act in reversed(kept.acts)][-1][1] == "4"
    assert len(stage.news) == len(kept.acts)


def test_a_deployment_that_rests_costs_no_turn() -> None:
    stage, world, control = staged()
    stage.run(control, world, 30)
    assert stage.run(control, world, 60) == 0


def test_nothing_goes_while_nobody_can_say_and_the_condition_says_so() -> None:
    stage, world, control = staged()
    stage.load = 400.0
    stage.run(control, world, 16)
    assert stage.replicas == 4
    stage.reachable, stage.load = False, 1.0
    stage.run(control, world, 120)
    assert stage.replicas == 4
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("False", "PrometheusUnreachable")
    stage.reachable = True
    stage.run(control, world, 120)
    assert stage.replicas < 4
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("True", "Fresh")


HOUR: Final = round(3600 / TICK)


def metrics_told(world: World) -> Told:
    return next(one for one in world.directions[KEY].told if one.type == "MetricsAvailable")


@pytest.mark.parametrize("spec", [{}, {"scaling": {}, "replicas": 2}], ids=["scaled", "only retuned"])
def test_metrics_that_are_missing_for_long_are_told_of_once_more_since_when_and_where_to_look(
    spec: dict[str, Any],
) -> None:
    stage, world, control = staged(**spec)
    stage.run(control, world, 4)
    stage.reachable = False
    dark = said(stage.now + TICK)
    assert stage.run(control, world, HOUR // 2) <= 2, (
        "one tells of it, and one stores what was learned before"
    )
    first = metrics_told(world)
    assert (first.reason, first.message[: len(dark)]) == ("PrometheusUnreachable", dark)
    assert stage.run(control, world, HOUR) == 1, "one turn, and none for each tick of an hour"
    told = metrics_told(world)
    assert (told.status, told.reason, told.message[: len(dark)]) == ("False", "Outage", dark)
    assert "held and nothing is retuned" in told.message
    assert "look at the Prometheus of prometheusUrl" in told.message
    replace_look(stage, Looked())
    assert stage.run(control, world, 8) == 0, "silent in another way: it is the same outage"


def said(at: float) -> str:
    return f"since {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC "


@pytest.mark.parametrize(("hours", "turns"), [(0.25, 1), (0.75, 0)], ids=["not for long yet", "for long"])
def test_an_outage_goes_on_from_what_the_status_says_where_an_operator_starts_again(
    hours: float, turns: int
) -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    stage.reachable = False
    stage.run(control, world, round(hours * HOUR))
    since = metrics_told(world).message.partition(" UTC")[0]
    flipped = datetime.fromtimestamp(stage.now - hours * 3600 + TICK, UTC)
    there: tuple[Condition, ...] = ()
    for one in world.directions[KEY].told:
        there = set_condition(
            there, one.type, status=one.status, reason=one.reason, message=one.message,
            now=f"{flipped:%Y-%m-%dT%H:%M:%SZ}",
        )  # fmt: skip
    status = stage.asked.deployment.status.model_copy(update={"conditions": there})
    stage.asked = replace(
        stage.asked, deployment=stage.asked.deployment.model_copy(update={"status": status})
    )
    world, control = started(stage)
    stage.woken.clear()
    assert stage.run(control, world, HOUR // 2) == turns
    told = metrics_told(world)
    assert (told.reason, told.message.partition(" UTC")[0]) == ("Outage", since)


def test_a_query_that_was_refused_before_an_outage_is_no_part_of_it() -> None:
    stage, world, control = staged(scaling={"max": 4, "zero": {"wake": {"query": "sum(("}}})
    back = replace_look(stage, Looked(woken=Woken(refused={KEY: "no closing parenthesis"})))
    stage.run(control, world, HOUR // 2)
    assert metrics_told(world).reason == "QueryRefused"
    back()
    stage.reachable = False
    dark = said(stage.now + TICK)
    stage.run(control, world, HOUR // 4)
    assert metrics_told(world).reason == "PrometheusUnreachable"
    assert metrics_told(world).message.startswith(dark)


def test_an_operator_that_starts_again_goes_on_from_what_was_kept() -> None:
    stage, world, control = staged()
    stage.load = 400.0
    stage.run(control, world, 16)
    world, control = started(stage)
    stage.woken.clear()
    stage.turn(world)
    assert stage.replicas == 4, "before the first tick"
    assert stage.run(control, world, 3) <= 1
    assert stage.replicas == 4
    kept = stage.decision.kept.control
    assert kept is not None
    assert kept.memory.of("serve").begun is not None


@pytest.mark.parametrize("spec", [{"replicas": 2}, {"scaling": {"min": 2}}])
def test_a_number_that_is_not_controls_is_left_alone(spec: dict[str, Any]) -> None:
    stage, world, control = staged(**spec)
    stage.load = 400.0
    stage.run(control, world, 20)
    assert stage.replicas == 2
    assert stage.news == []


def test_a_paused_deployment_is_not_scaled() -> None:
    stage, world, control = staged()
    stage.run(control, world, 2)
    spec = stage.asked.deployment.spec.model_copy(update={"paused": True})
    put(
        stage,
        world,
        replace(stage.asked, deployment=stage.asked.deployment.model_copy(update={"spec": spec})),
    )
    stage.load = 400.0
    stage.run(control, world, 20)
    assert stage.replicas == 1
    assert stage.news == []


def test_replicas_that_have_just_come_are_not_told_of_as_silent() -> None:
    stage, world, control = staged()
    stage.reachable = True
    silent = replace_look(stage, Looked())
    stage.run(control, world, 3)
    assert "MetricsAvailable" not in conditions(world.directions[KEY])
    stage.run(control, world, 4)
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("False", "Missing")
    silent()
    stage.run(control, world, 2)
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("True", "Fresh")


def replace_look(stage: Scene, answer: Looked) -> Any:
    """Until the returned function is called every look gives this answer."""
    before = stage.look

    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        del now, asked
        return answer

    stage.look = look  # type: ignore[method-assign]

    def back() -> None:
        stage.look = before  # type: ignore[method-assign]

    return back


def test_a_resource_that_is_gone_is_forgotten() -> None:
    stage, world, control = staged()
    stage.run(control, world, 2)
    world.resources.remove(KEY, uid="o")
    asyncio.run(control.tick())
    assert KEY not in world.directions


def test_a_deployment_that_nobody_is_to_look_at_is_not_even_read() -> None:
    stage, world, control = staged(tuning={"mode": "auto"})
    stage.load = 400.0
    assert stage.run(control, world, 5) == 0
    assert (stage.replicas, stage.reads) == (1, 0)


def test_what_was_told_is_taken_back_when_nobody_looks_any_more() -> None:
    stage, world, control = staged()
    stage.run(control, world, 2)
    assert conditions(world.directions[KEY])
    spec = stage.asked.deployment.spec.model_copy(update={"tuning": Tuning(mode="off")})
    put(
        stage,
        world,
        replace(stage.asked, deployment=stage.asked.deployment.model_copy(update={"spec": spec})),
    )
    assert stage.run(control, world, 3) == 1
    assert conditions(world.directions[KEY]) == {}


@pytest.mark.parametrize(
    ("spec", "defaults", "wanted"),
    [
        ({"scaling": {"max": 2}}, False, True),
        ({"tuning": {"mode": "auto"}}, False, True),
        ({"scaling": {"min": 2}}, False, False),
        ({}, False, False),
        ({}, True, True),
    ],
)
def test_without_a_prometheus_only_those_are_asked_that_ask_for_something(
    spec: dict[str, Any], defaults: bool, wanted: bool
) -> None:
    assert ByPods(defaults=defaults).wants(spec) is wanted


def test_one_tick_without_an_answer_is_no_news() -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    stage.reachable = False
    assert stage.run(control, world, 1) == 0
    stage.reachable = True
    assert stage.run(control, world, 1) == 0
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("True", "Fresh")


def test_why_nobody_can_be_asked_is_told() -> None:
    stage, world, control = staged()
    replace_look(stage, Looked(reachable=False, problem="900 pods would have to be asked"))
    stage.run(control, world, 6)
    (told,) = [one for one in world.directions[KEY].told if one.type == "MetricsAvailable"]
    assert told.message.endswith("900 pods would have to be asked")


def test_a_look_that_is_asked_for_does_not_wait_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controlling, "LEAST_PAUSE", 0.0)
    stage, world, _ = staged()
    control = Control(world, stage, stage.woken.append, interval_s=100_000.0)

    async def asked_twice() -> None:
        running = asyncio.create_task(control.run())
        for looks in (1, 2, 3):
            while control.ticks < looks:
                await asyncio.sleep(0.01)
            control.soon()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def within_patience() -> None:
        await asyncio.wait_for(asked_twice(), 300)

    asyncio.run(within_patience())


def test_a_deployment_asleep_is_woken_by_its_annotation() -> None:
    zero = {"scaling": {"max": 4, "zero": {"wake": {"annotation": True}, "afterSeconds": 60}}}
    stage, world, control = staged(**zero)
    stage.load = 0.0
    stage.run(control, world, 120)
    assert stage.replicas == 0
    asked = stage.asked.deployment
    metadata = asked.metadata.model_copy(update={"annotations": {names.ANNOTATION_WAKE: "now"}})
    put(stage, world, replace(stage.asked, deployment=asked.model_copy(update={"metadata": metadata})))
    stage.run(control, world, 2)
    assert stage.replicas == 1
    assert stage.news[-1].reason == "Woken"


def test_a_source_that_breaks_is_a_source_that_says_nothing() -> None:
    stage, world, control = staged()

    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        raise RuntimeError(f"{now} {asked}")

    stage.look = look  # type: ignore[method-assign]
    stage.run(control, world, 6)
    assert conditions(world.directions[KEY])["MetricsAvailable"] == ("False", "PrometheusUnreachable")
