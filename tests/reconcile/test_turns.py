"""Turns as a whole, where something in them goes wrong: what their resource says of it, and when they come again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.api.v1alpha1.status import Condition, LLMDeploymentStatus
from plimsoll.control.decision import Told
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.resolve import Resolver
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.applier import Applied
from plimsoll.kube.child import Child
from plimsoll.kube.errors import KubeError, Unreachable, refusal
from plimsoll.objects import Ref
from plimsoll.reconcile import turn as turns
from plimsoll.reconcile.books import Figures
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.world import Cluster, World
from plimsoll.status.told import News
from tests.planning.asking import deployment, inventory, pool

KEY = "team-a/chat"


@dataclass
class Doors:
    """A fleet with room, and nothing in it unless a test puts it there."""

    written: list[LLMDeploymentStatus] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    unreachable: bool = False
    cut: bool = False
    """Whether a status is written and nobody hears of it."""
    refuses: tuple[KubeError, ...] = ()
    """Of what is asked of pods."""
    there: Serving = field(default_factory=Serving)

    def children(self, _: str) -> Mapping[Ref, Child]:
        return {}

    def serving(self, *_: object) -> Serving:
        return self.there

    def inventory(self, _: str = "") -> Inventory:
        return cast(Inventory, inventory(pool(nodes=4)))

    def promise(self, *_: object) -> None: ...

    def capabilities(self) -> Capabilities:
        return NONE

    async def apply(self, *_: object, **__: object) -> Applied:
        return Applied()

    async def nudge(self, *_: object, **__: object) -> tuple[KubeError, ...]:
        return self.refuses

    async def tell(self, _: ObjectMeta, status: LLMDeploymentStatus, __: Mapping[str, Any]) -> int | None:
        if self.unreachable:
            raise Unreachable("no answer")
        self.written.append(status)
        if self.cut:
            raise Unreachable("the connection was cut")
        return len(self.written)

    def announce(self, _: ObjectMeta, news: Iterable[News]) -> None:
        self.news += news


def staged() -> tuple[Doors, World]:
    doors = Doors()
    world = World(
        cluster=cast(Cluster, doors),
        resources=Resources(),
        models=Models(Resolver(), lambda: 1000.0),
        now=lambda: 1000.0,
        config=OperatorConfig(),
    )
    body = deployment().to_dict()
    namespace, _, name = KEY.partition("/")
    body["metadata"] |= {
        "namespace": namespace, "name": name, "uid": "u1", "generation": 1, "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    world.resources.put(KEY, body)
    return doors, world


def stalled(world: World) -> Condition | None:
    body = world.resources.get(KEY)
    assert body is not None
    return get_condition(LLMDeployment.observed(body).status.conditions, names.STALLED)


def fails(_: Seen) -> None:
    raise KeyError("the password is hunter2")


def test_a_turn_that_fails_by_a_mistake_of_ours_is_a_condition_that_names_its_kind_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors, world = staged()
    monkeypatch.setattr(turns, "decide", fails)
    for _ in range(3):
        with pytest.raises(KeyError):
            asyncio.run(turns.turn(world, KEY))
    found = stalled(world)
    assert found is not None
    assert (found.status, found.reason, found.observed_generation) == ("True", "InternalError", 1)
    assert "KeyError" in found.message
    assert "hunter2" not in str([one.to_dict() for one in doors.written])
    assert [one.reason for one in doors.news] == ["InternalError"], "once, however often it is tried"
    assert len([one for one in doors.written if get_condition(one.conditions, names.STALLED)]) == 1
    assert get_condition(doors.written[-1].conditions, names.RECONCILING) is None


def test_metrics_tell_of_a_resource_whose_turns_fail_that_it_stalls_and_how_many_replicas_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors, world = staged()
    asyncio.run(turns.turn(world, KEY))
    (planned,) = doors.written[-1].sets
    pod = PodSeen(name="p", uid="p", stage=Stage.READY, node="n")
    monkeypatch.setattr(turns, "decide", fails)
    ready = []
    for stage in (Stage.READY, Stage.FAILED):
        pods = (replace(pod, stage=stage),)
        doors.there = Serving(sets=(SetSeen(name=planned.name, replicas=1, pods=pods),))
        with pytest.raises(KeyError):
            asyncio.run(turns.turn(world, KEY))
        ((_, found),) = world.books
        assert (names.STALLED, True) in found.conditions
        replicas = dict(found.replicas)
        ready.append((replicas["wanted"], replicas["ready"], replicas["failed"]))
    assert ready == [(1, 1, 0), (1, 0, 1)]


def test_a_failure_is_told_also_where_what_is_seen_of_the_pods_is_what_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors, world = staged()
    monkeypatch.setattr(doors, "serving", lambda *_: fails(cast(Any, None)))
    with pytest.raises(KeyError):
        asyncio.run(turns.turn(world, KEY))
    assert stalled(world) is not None


def test_metrics_tell_of_a_resource_that_cannot_be_read_that_it_stalls_and_nothing_that_it_was() -> None:
    _, world = staged()
    asyncio.run(turns.turn(world, KEY))
    body = dict(world.resources.get(KEY) or {})
    body |= {"spec": {**body["spec"], "scaling": {"min": "three"}}}
    body |= {"metadata": {**body["metadata"], "generation": 2, "resourceVersion": "9"}}
    world.resources.put(KEY, body)
    for _ in range(2):
        assert asyncio.run(turns.turn(world, KEY)) is None
        ((key, found),) = world.books
        assert key == KEY
        assert found == Figures(conditions=((names.READY, False), (names.STALLED, True)))
        # As an operator that has just taken over.
        world.books.forget(KEY)


def test_a_turn_that_comes_to_its_end_takes_the_failure_of_one_before_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, world = staged()
    with monkeypatch.context() as broken:
        broken.setattr(turns, "decide", fails)
        with pytest.raises(KeyError):
            asyncio.run(turns.turn(world, KEY))
    asyncio.run(turns.turn(world, KEY))
    assert stalled(world) is None


def test_a_failure_that_cannot_be_told_stays_the_one_that_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    doors, world = staged()

    def ends_with_the_connection(seen: Seen) -> None:
        doors.unreachable = True
        fails(seen)

    monkeypatch.setattr(turns, "decide", ends_with_the_connection)
    with pytest.raises(KeyError):
        asyncio.run(turns.turn(world, KEY))


def test_a_status_is_taken_back_of_which_nobody_knows_whether_it_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors, world = staged()
    asyncio.run(turns.turn(world, KEY))
    well = doors.written[-1]
    with monkeypatch.context() as broken:
        broken.setattr(turns, "decide", fails)
        doors.cut = True
        with pytest.raises(KeyError):
            asyncio.run(turns.turn(world, KEY))
    assert doors.written[-1] != well
    doors.cut = False
    asyncio.run(turns.turn(world, KEY))
    assert doors.written[-1] == well
    told = len(doors.written)
    asyncio.run(turns.turn(world, KEY))
    assert len(doors.written) == told


def test_a_clock_that_is_put_back_keeps_no_deployment_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, world = staged()
    clock = {"now": 100_000.0}
    world.now = lambda: clock["now"]
    asyncio.run(turns.turn(world, KEY))
    monkeypatch.setattr(turns, "_needs_nothing", lambda *_: True)
    clock["now"] -= 3600
    looked = []
    for _ in range(10):
        asyncio.run(turns.turn(world, KEY))
        looked.append(world.looked_at[KEY] == clock["now"])
        clock["now"] += turns.UNREADY_SECONDS / 3
    assert looked == [True, False, False] * 3 + [True]


def test_an_engine_that_ended_once_is_told_until_a_turn_comes_when_it_has_served_for_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors, world = staged()
    clock = {"now": 100_000.0}
    world.now = lambda: clock["now"]
    asyncio.run(turns.turn(world, KEY))
    (planned,) = doors.written[-1].sets
    pod = PodSeen(name="p", uid="p", stage=Stage.READY, node="n", restarts=1, since=clock["now"] - 60)
    doors.there = Serving(sets=(SetSeen(name=planned.name, replicas=1, pods=(pod,)),))
    asyncio.run(turns.turn(world, KEY))
    told = []
    for _ in range(3):
        left = asyncio.run(turns.turn(world, KEY))
        assert left is not None
        degraded = get_condition(doors.written[-1].conditions, names.DEGRADED)
        told.append((left, degraded and degraded.reason))
        monkeypatch.setattr(turns, "_needs_nothing", lambda *_: True)
        clock["now"] += left
    assert told == [(3600.0, "EngineRestarts"), (3600.0, "Healthy"), (3600.0, "Healthy")]


@pytest.mark.parametrize("error", [Unreachable("no answer"), KeyError("a mistake of ours")])
def test_a_full_look_that_fails_is_still_to_be_had(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The fleet had moved, and the API server did not answer just then: nobody looked again for minutes."""
    _, world = staged()
    asyncio.run(turns.turn(world, KEY))
    monkeypatch.setattr(turns, "_needs_nothing", lambda *_: True)
    world.looked_at[KEY] = 0.0
    looks = []

    async def decides(*_: object) -> None:
        looks.append("full")
        raise error

    monkeypatch.setattr(turns, "_decide", decides)
    for _ in range(2):
        with suppress(type(error)):
            asyncio.run(turns.turn(world, KEY))
    assert looks == ["full"] * 2


@pytest.mark.parametrize("fails_then", [False, True], ids=["turns go well", "the last fails"])
def test_all_that_limits_scaling_is_noted_at_turns_with_and_without_anything_to_do(
    fails_then: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A status has no place for the reasons beside the first."""
    _, world = staged()
    limited = Told(names.SCALING, "True", "BudgetExhausted", "no budget; no GPUs", ("GPUsUnavailable",))
    world.directions[KEY] = Direction(told=(limited,))
    asyncio.run(turns.turn(world, KEY))
    if fails_then:
        monkeypatch.setattr(turns, "decide", fails)
        world.looked_at[KEY] = 0.0
    else:
        monkeypatch.setattr(turns, "_needs_nothing", lambda *_: True)
    world.books.forget(KEY)
    with suppress(KeyError):
        asyncio.run(turns.turn(world, KEY))
    ((_, figures),) = world.books
    assert figures.limited == ("BudgetExhausted", "GPUsUnavailable")


def test_what_is_lost_since_a_moment_that_is_still_to_come_is_lost_since_now() -> None:
    _, world = staged()
    world.gone_since[KEY] = world.now() + 3600
    lost = SimpleNamespace(lost=True, reservations=(), plan=SimpleNamespace(outcome=None))
    seen = SimpleNamespace(direction=None, serving=Serving())
    turns._remember(world, KEY, cast(Any, seen), cast(Any, lost))
    assert world.gone_since[KEY] == world.now()


def test_what_the_api_server_answers_is_no_mistake_of_ours() -> None:
    doors, world = staged()
    doors.unreachable = True
    with pytest.raises(Unreachable):
        asyncio.run(turns.turn(world, KEY))
    assert stalled(world) is None


def test_what_a_policy_refuses_to_have_done_to_pods_is_said_once_and_tried_ever_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors, world = staged()
    doors.refuses = (refusal(403, {"reason": "Forbidden", "message": "nobody touches pods here"}),)
    waits = [asyncio.run(turns.turn(world, KEY)) for _ in range(7)]
    assert waits == [15.0, 30.0, 60.0, 120.0, 240.0, 300.0, 300.0]
    assert caplog.text.count("nobody touches pods here") == 1
    doors.refuses = ()
    asyncio.run(turns.turn(world, KEY))
    doors.refuses = (refusal(403, {"reason": "Forbidden", "message": "not these either"}),)
    assert asyncio.run(turns.turn(world, KEY)) == 15.0
    assert "not these either" in caplog.text
