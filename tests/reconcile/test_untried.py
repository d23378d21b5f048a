"""A retune that nobody judges any more: what it tried goes, whoever sees it first."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from plimsoll.control.retune import Phase, RetuneMemory, Step
from plimsoll.control.retune.figures import Figures
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.world import World
from tests.reconcile.staging import KEY, Scene, staged, started


def trying() -> tuple[Scene, World]:
    """One replica runs with a change."""
    stage, world, control = staged(replicas=2)
    asyncio.run(control.tick())
    plan = stage.decision.kept.plan
    assert plan is not None
    step = Step(
        id="a", set=plan.sets[0].digest, setting="maxSequences", before="64", after="40", symptom="preemptions",
        why="w", phase=Phase.JUDGING, began=stage.now, since=stage.now, deadline=stage.now + 2700, replicas=2,
        surge=True, spec="s", baseline=Figures(), rolled=1,
    )  # fmt: skip
    record = replace(world.directions[KEY].record, retune=RetuneMemory(step=step))
    world.directions[KEY] = Direction(record=record)
    stage.turn(world)
    assert len(tried(stage)) == 2
    return stage, world


def tried(stage: Scene) -> list[str]:
    assert stage.decision.rollout is not None
    return [one.name for one in stage.decision.rollout.targets if one.replicas]


@pytest.mark.parametrize("restarted", [True, False])
def test_a_canary_goes_when_nobody_is_to_look_at_it_any_more(restarted: bool) -> None:
    stage, world = trying()
    directions = world.directions
    world, control = started(stage)
    if not restarted:
        world.directions.update(directions)
    stage.wants = lambda _: False  # type: ignore[method-assign,assignment]
    turns = stage.run(control, world, 20)
    stage.turn(world)
    assert len(tried(stage)) == 1
    assert stage.decision.kept.control is not None
    assert stage.decision.kept.control.retune.step is None
    assert turns == 1


def test_what_one_tried_is_not_said_of_another_of_its_name() -> None:
    stage, _ = trying()
    world, control = started(stage)
    stage.wants = lambda _: False  # type: ignore[method-assign,assignment]
    asyncio.run(control.tick())
    assert world.direction(KEY) is not None, "its canary is to go"
    body = world.resources.get(KEY)
    assert body is not None
    about = {**body["metadata"], "uid": "another", "resourceVersion": "1000000"}
    world.resources.put(KEY, {**body, "metadata": about})
    assert world.direction(KEY) is None
