"""What a namespace's budget is used up by is known after one look at its deployments, however many they are and though one cannot be read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.reconcile import world as worlds
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.knowing import AT_A_TIME
from plimsoll.reconcile.world import World
from plimsoll.render.shared import plan_ref
from tests.reconcile.staging import AUTO, KEY, Scene, put, started
from tests.reconcile.test_decide import seen

FLEET = (KEY, *(f"team-a/chat-{number}" for number in range(AT_A_TIME + 5)))
LAST = FLEET[-1]


@dataclass
class Many(Scene):
    """All with the same plan."""

    away: frozenset[str] = frozenset()
    """Deployments whose plans cannot be read now."""
    asked_for: Counter[str] = field(default_factory=Counter)
    """How often each plan was."""

    async def read(self, ref: Ref) -> Mapping[str, Any]:
        key = next(one for one in FLEET if plan_ref(*one.split("/")) == ref)
        self.asked_for[key] += 1
        if key in self.away:
            raise Unreachable("away for a moment")
        return await super().read(ref)


def many(*away: str) -> tuple[Many, World, Control]:
    asked = seen(spec={**AUTO, "engine": {"maxSequences": 64}})
    stage = Many(asked=asked, decision=decide(asked), away=frozenset(away))
    world, control = started(stage)
    world.config = OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "gpus": 1000}]})
    for key in FLEET[1:]:
        put(stage, world, asked, key)
    return stage, world, control


def look(control: Control, now: float) -> set[str]:
    return set(asyncio.run(control._knows.cases(now)))


@pytest.fixture(autouse=True)
def _a_large_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which plans of others take the room of what was read."""
    monkeypatch.setattr(worlds, "MOST_KEPT", 8)


def test_no_plan_is_read_a_second_time_for_its_budget() -> None:
    stage, world, control = many()
    assert look(control, stage.now) == set(FLEET)
    assert stage.asked_for == Counter(FLEET)
    assert world.spends().keys() == set(FLEET)


def test_while_a_plan_cannot_be_read_none_but_that_is_asked_for_again_and_nothing_of_its_budget_is_known() -> (
    None
):
    stage, world, control = many(LAST)
    look(control, stage.now)
    for tick in range(3):
        stage.asked_for.clear()
        look(control, stage.now + tick)
        assert stage.asked_for == {LAST: 2}, "at the look at it, and for its neighbours"
        assert not world.spends()
    stage.away = frozenset()
    look(control, stage.now + 3)
    assert world.spends().keys() == set(FLEET)


def test_a_deployment_that_comes_later_hides_nothing_of_what_is_known() -> None:
    """A retune that finds no room for a moment takes a replica that serves."""
    stage, world, control = many()
    body = world.resources.get(LAST)
    assert body is not None
    world.resources.remove(LAST, uid="o")
    look(control, stage.now)
    world.resources.put(LAST, body)
    assert world.spends().keys() == set(FLEET[:-1])
    look(control, stage.now)
    assert world.spends().keys() == set(FLEET)
