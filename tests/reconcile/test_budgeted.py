"""A replica that comes beside all others, for a rollout or a retune, is one more of the namespace's budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.planning.placing.budgets import claim_of, limits_of
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.loop.budgets import Budgets
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from plimsoll.render.shared import plan_ref
from tests.planning.asking import deployment, pool
from tests.reconcile.loop.test_one_action import Preempting
from tests.reconcile.staging import AUTO, KEY, Scene, put, started
from tests.reconcile.test_decide import after, seen

OTHER = "team-a/other"
RETUNES: dict[str, Any] = {
    "scaling": {**AUTO["scaling"], "min": 2, "max": 2},
    "engine": {"maxSequences": 64},
    "topology": {"tensor": 1},
    "tuning": {"mode": "auto", "allow": ["maxSequences", "watermark"]},
}


def admin(gpus: int) -> OperatorConfig:
    return OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "gpus": gpus}]})


def rolled(gpus: int, *, tensor: int = 1, **rollout: Any) -> list[int]:
    """GPUs that are asked for at each step of a rollout from two replicas of one GPU to two of `tensor`; four nodes are free."""
    config = admin(gpus)
    spec: dict[str, Any] = {"replicas": 2, "topology": {"tensor": 1}, "rollout": rollout}
    asked = seen(spec=spec, pools=(pool(nodes=4),), config=config, limits=limits_of("team-a", config))
    first = decide(asked)
    other = {**spec, "topology": {"tensor": tensor}, "podLabels": {"team": "search"}}
    now, held = replace(after(first, asked), deployment=deployment(**other)), list[int]()
    for _ in range(12):
        step = decide(now)
        assert step.rollout is not None
        there = {**now.revisions, **step.revisions}
        held.append(sum(there[one.name].entry.layout.gpus * one.replicas for one in step.rollout.targets))
        now = replace(after(step, now), revisions=there, now=now.now + 600)
    return held


@pytest.mark.parametrize(
    ("gpus", "tensor", "rollout", "most"),
    [
        (2, 1, {}, 2),
        (3, 1, {}, 3),
        (9, 1, {}, 3),
        (9, 1, {"maxSurge": 2}, 4),
        (3, 1, {"maxSurge": 2}, 3),
        (4, 2, {}, 4),
        (5, 2, {}, 5),
        (2, 1, {"strategy": "surge"}, 3),
        (9, 1, {"strategy": "replace"}, 2),
    ],
)
def test_a_rollout_goes_beyond_a_budget_only_where_a_surge_is_asked_for(
    gpus: int, tensor: int, rollout: dict[str, Any], most: int
) -> None:
    held = rolled(gpus, tensor=tensor, **rollout)
    assert (max(held), held[-1]) == (most, 2 * tensor)


class Told(Preempting):
    """Its turns say what they take of the budget, as the operator's do."""

    def promise(self, key: str, reservations: tuple[Reservation, ...]) -> None:
        """No other turn is taken here."""

    def turn(self, world: World) -> None:
        super().turn(world)
        world.promise(KEY, self.decision.kept, ())


@pytest.mark.parametrize(("gpus", "others", "most"), [(2, 0, 2), (3, 0, 3), (4, 0, 3), (3, 1, 2), (4, 1, 3)])
def test_a_retune_takes_no_replica_that_the_budget_does_not_allow(gpus: int, others: int, most: int) -> None:
    config = admin(gpus)
    asked = seen(spec=RETUNES, pools=(pool(nodes=4),), config=config, limits=limits_of("team-a", config))
    stage = Told(asked=asked, decision=decide(asked), load=10.0)
    stage.covers = lambda subject: subject.autoscaled  # type: ignore[method-assign,assignment]
    world, control = started(stage)
    world.config = config
    world.promise(KEY, stage.decision.kept, ())
    if others:
        another = seen(spec={"replicas": others, "topology": {"tensor": 1}})
        put(stage, world, another, OTHER)
        world.promise(OTHER, decide(another).kept, ())
    held, tried = set[int](), False
    for _ in range(200):
        stage.run(control, world, 1)
        assert stage.decision.kept.control is not None
        held.add(stage.replicas)
        tried = tried or stage.decision.kept.control.retune.step is not None
    assert tried
    assert max(held) == most


class Neighboured(Preempting):
    """Beside it is another deployment, with its own plan."""

    other: Decision
    away = False
    """Whether that plan cannot be read now."""
    odd = False
    """Whether somebody has edited it, so that nobody can tell what it takes."""

    async def read(self, ref: Ref) -> Mapping[str, Any]:
        if ref != plan_ref(*OTHER.split("/")):
            return await super().read(ref)
        if self.away:
            raise Unreachable("away for a moment")
        assert self.other.kept.plan is not None
        plan = json.loads(self.other.kept.plan.to_bytes())
        if self.odd:
            plan["sets"][0]["hardware"]["sharing"] = 0
        data = {names.PLAN_KEY: json.dumps(plan)}
        return {"data": data, "metadata": {"uid": "u", "resourceVersion": str(self.version)}}


def neighboured() -> tuple[Neighboured, World, Control]:
    """Four GPUs for two deployments, of which the other is not looked at."""
    config = admin(4)
    asked = seen(spec=RETUNES, pools=(pool(nodes=4),), config=config)
    stage = Neighboured(asked=asked, decision=decide(asked), load=10.0)
    another = seen(spec={"replicas": 1, "topology": {"tensor": 1}})
    stage.other = decide(another)
    stage.covers = lambda subject: subject.autoscaled  # type: ignore[method-assign,assignment]
    world, control = started(stage)
    world.config = config
    put(stage, world, another, OTHER)
    return stage, world, control


def allowed(stage: Scene, world: World) -> int | None:
    """Further replicas that a retune may have."""
    assert stage.decision.kept.plan is not None
    claim = claim_of(stage.decision.kept.plan.sets[0])
    return Budgets(world.config, world.spends()).allows(KEY, claim)


def test_what_was_decided_before_a_restart_counts_from_the_first_look_that_can_read_it() -> None:
    """No turn decides anew what is as it was kept. A retune would find no room for half an hour, and take a replica that serves beside free GPUs."""
    stage, world, control = neighboured()
    found = []
    for stage.away in (True, False):
        asyncio.run(control.tick())
        found.append(allowed(stage, world))
    assert found == [0, 1], "of four GPUs two are its own, and one is the other's"


def test_a_plan_of_which_nobody_can_tell_what_it_takes_counts_as_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one that cannot be read at all. Else neither a tick nor any turn of its namespace would end well until somebody mends it."""
    stage, world, control = neighboured()
    stage.odd = True
    for _ in range(3):
        asyncio.run(control.tick())
        asyncio.run(world.read_budget(KEY))
    assert allowed(stage, world) == 2
    limits = world.limits(KEY)
    assert limits is not None
    assert limits.devices == 4
    said = [one for one in caplog.records if "budget" in one.message]
    assert [vars(one)["deployment"] for one in said] == [OTHER]


def test_what_goes_wrong_as_a_budget_is_read_keeps_nobody_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, world, control = neighboured()

    async def odd(*_: object) -> None:
        raise ArithmeticError("odd")

    monkeypatch.setattr(World, "read_budget", odd)
    asyncio.run(control.tick())
    assert KEY in world.directions
