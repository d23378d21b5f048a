"""A deployment that could not be read since the program began costs nothing from tick to tick, and is read as soon as it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.reconcile import world as worlds
from plimsoll.reconcile.loop import knowing
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from tests.reconcile.loop.test_fleet_budget import is_no_spec, names_a_preset_that_is_gone
from tests.reconcile.staging import KEY, TICK, Scene, put, staged, started
from tests.reconcile.test_untried import trying

Spoils = Callable[[Scene, World, pytest.MonkeyPatch], None]


def cannot_be_made_sense_of(stage: Scene, world: World, patch: pytest.MonkeyPatch) -> None:
    def odd(*_: Any) -> None:
        raise ArithmeticError("odd")

    patch.setattr(knowing, "subject_of", odd)


spoilt = pytest.mark.parametrize("spoils", [is_no_spec, names_a_preset_that_is_gone, cannot_be_made_sense_of])


def tick(stage: Scene, control: Control, ticks: int = 1) -> int:
    """How often it was read."""
    before = stage.reads
    for _ in range(ticks):
        stage.now += TICK
        asyncio.run(control.tick())
    return stage.reads - before


@pytest.fixture(autouse=True)
def _a_large_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which plans of others take the room of what was read."""
    monkeypatch.setattr(worlds, "MOST_KEPT", 0)


@spoilt
@pytest.mark.parametrize("began_before", [False, True])
def test_it_is_read_once_however_many_ticks_there_are(
    spoils: Spoils, began_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, world, control = staged()
    if began_before:
        tick(stage, control)
    spoils(stage, world, monkeypatch)
    put_again(stage, world)
    assert tick(stage, control) == 1
    monkeypatch.setattr(LLMDeployment, "observed", never)
    assert tick(stage, control, 20) == 0


def never(_: object) -> None:
    raise AssertionError("nothing has changed")


def put_again(stage: Scene, world: World) -> None:
    """With another annotation, so that it has changed in any case."""
    body = world.resources.get(KEY)
    assert body is not None
    stage.edits += 1
    metadata = {**body["metadata"], "resourceVersion": str(stage.edits), "labels": {"edit": str(stage.edits)}}
    world.resources.put(KEY, {**body, "metadata": metadata})


@spoilt
def test_it_is_looked_at_as_soon_as_it_can_be_read(spoils: Spoils) -> None:
    stage, world, control = staged()
    right = stage.asked
    with pytest.MonkeyPatch.context() as patch:
        spoils(stage, world, patch)
        tick(stage, control, 5)
    assert KEY not in world.directions
    put(stage, world, right)
    put_again(stage, world)
    tick(stage, control)
    assert KEY in world.directions


def test_so_it_is_once_its_plan_is_another_one() -> None:
    stage, world, control = staged()
    with pytest.MonkeyPatch.context() as patch:
        cannot_be_made_sense_of(stage, world, patch)
        tick(stage, control, 5)
    assert tick(stage, control) == 0
    stage.version += 1
    assert tick(stage, control) == 1
    assert KEY in world.directions


@spoilt
def test_nothing_is_decided_of_one_that_was_read_before_and_cannot_be_any_more(
    spoils: Spoils, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns would do none of it, and events told of it all the same."""
    stage, world, control = staged()
    tick(stage, control, 4)
    stage.turn(world)
    before, right = stage.replicas, stage.asked
    stage.news.clear()
    with monkeypatch.context() as patch:
        spoils(stage, world, patch)
        put_again(stage, world)
        stage.load = 400.0
        tick(stage, control, 20)
        assert stage.news == []
        assert world.directions[KEY].record.replicas == before
        assert world.directions[KEY].told == ()
    put(stage, world, right)
    put_again(stage, world)
    tick(stage, control, 20)
    assert {one.about for one in stage.news} == {"Scale"}


def test_who_could_not_be_asked_for_it_is_asked_again_at_the_next_tick() -> None:
    stage, world, control = staged()
    with pytest.MonkeyPatch.context() as patch:

        async def away(_: Ref) -> Mapping[str, Any]:
            stage.reads += 1
            raise Unreachable("away for a moment")

        patch.setattr(stage, "read", away)
        assert tick(stage, control, 5) == 5
    assert tick(stage, control) == 1
    assert KEY in world.directions


@pytest.mark.parametrize("spoils", [is_no_spec, names_a_preset_that_is_gone])
def test_a_retune_of_it_counts_at_every_tick_until_it_is_gone(
    spoils: Spoils, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, _ = trying()
    world, control = started(stage)
    spoils(stage, world, monkeypatch)
    knows = control._knows
    tick(stage, control)
    counted = dict(knows.retuning)
    assert counted[KEY] > 0
    tick(stage, control, 3)
    assert knows.retuning == counted
    world.resources.remove(KEY, uid="o")
    tick(stage, control)
    assert knows.retuning == {}
