"""A retune that nobody judges any more: what it tried goes, whoever sees it first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.record import Act, Record
from plimsoll.control.retune import Phase, RetuneMemory, Step
from plimsoll.control.retune.figures import Figures
from plimsoll.control.retune.steps import HeldBack
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.world import World
from plimsoll.status.live import retuning
from tests.reconcile.staging import KEY, Scene, conditions, put, staged, started


def trying(phase: Phase = Phase.JUDGING, said: str = "") -> tuple[Scene, World]:
    """One replica runs with a change, or did."""
    stage, world, control = staged(replicas=2, tuning={"allow": ["maxSequences"]})
    asyncio.run(control.tick())
    plan = stage.decision.kept.plan
    assert plan is not None
    step = Step(
        id="a", set=plan.sets[0].digest, setting="maxSequences", before="64", after="40", symptom="preemptions",
        why="w", phase=phase, began=stage.now, since=stage.now, deadline=stage.now + 2700, replicas=2,
        surge=True, spec=plan.spec_digest, baseline=Figures(), rolled=1, said=said,
    )  # fmt: skip
    record = replace(world.directions[KEY].record, retune=RetuneMemory(step=step))
    world.directions[KEY] = Direction(record=record)
    stage.turn(world)
    assert len(tried(stage)) == (1 if phase is Phase.ROLLING_BACK else 2)
    stage.news.clear()
    return stage, world


def kept(stage: Scene) -> Record:
    record = stage.decision.kept.control
    assert record is not None
    return record


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
    assert kept(stage).retune.step is None
    assert turns == 1


def test_what_kept_a_retune_from_beginning_is_told_no_more_once_nobody_looks() -> None:
    stage, world, control = staged(replicas=2, tuning={"allow": ["maxSequences"]})
    asyncio.run(control.tick())
    held = HeldBack(reason="WouldDisrupt", message="the only replica would have to restart", since=stage.now)
    record = replace(world.directions[KEY].record, retune=RetuneMemory(held=held))
    world.directions[KEY] = replace(world.directions[KEY], record=record)
    stage.turn(world)
    assert retuning(kept(stage).retune) is not None
    directions = world.directions
    world, control = started(stage)
    world.directions.update(directions)
    stage.wants = lambda _: False  # type: ignore[method-assign,assignment]
    stage.run(control, world, 20)
    stage.turn(world)
    assert retuning(kept(stage).retune) is None


def test_it_goes_though_what_was_kept_of_it_cannot_be_read_at_first() -> None:
    stage, _ = trying()
    world, control = started(stage)
    stage.wants = lambda _: False  # type: ignore[method-assign,assignment]
    read, failures = stage.read, [Unreachable("away for a moment")]

    async def flaky(ref: Ref) -> Mapping[str, Any]:
        if failures:
            raise failures.pop()
        return await read(ref)

    stage.read = flaky  # type: ignore[method-assign,assignment]
    stage.run(control, world, 20)
    assert len(tried(stage)) == 1
    assert kept(stage).retune.step is None


@pytest.mark.parametrize("about", ["", "tp1 on H100-SXM-80GB"])
@pytest.mark.parametrize("restarted", [True, False])
def test_what_became_of_it_is_kept_and_told_once(restarted: bool, about: str) -> None:
    stage, world = trying()
    act = Act(
        at=stage.now, what=f"maxSequences on {about}" if about else "maxSequences", before="64", after="40",
        reason="RetuneJudging", message="m",
    )  # fmt: skip
    world.directions[KEY] = replace(world.directions[KEY], record=kept(stage).with_act(act))
    stage.turn(world)
    directions = world.directions
    world, control = started(stage)
    if not restarted:
        world.directions.update(directions)
    stage.wants = lambda _: False  # type: ignore[method-assign,assignment]
    stage.run(control, world, 20)
    record = kept(stage)
    (past,), (news,) = record.retune.past, stage.news
    named = f"{about}: " if about else ""
    assert (past.id, past.outcome, past.tried, record.retune.failures) == ("a", Phase.FAILED, False, 0)
    assert past.reason.startswith(f"{named}nobody looks at it any more")
    assert (news.type, news.reason) == ("Warning", "RetuneFailed")
    assert news.message.startswith(f"{named}maxSequences 64 to 40 is given up: nobody looks at it any more")
    assert [one.what for one in record.acts] == [act.what, act.what]
    said = retuning(record.retune)
    assert said is not None
    assert (said.status, said.reason) == ("False", "NotTried")


def test_one_that_was_on_its_way_back_already_ends_as_it_would_have() -> None:
    stage, _ = trying(Phase.ROLLING_BACK, said="slower")
    world, control = started(stage)
    stage.covers = lambda _: False  # type: ignore[method-assign]
    stage.run(control, world, 2)
    (past,) = kept(stage).retune.past
    assert (past.reason, past.tried, kept(stage).retune.failures) == ("slower", True, 1)


def test_the_failure_that_is_one_too_many_pauses_retuning_though_nobody_looks() -> None:
    stage, _ = trying(Phase.ROLLING_BACK, said="slower")
    world, control = started(stage)
    world.config = OperatorConfig.model_validate({"restarts": {"failuresUntilPause": 1}})
    stage.covers = lambda _: False  # type: ignore[method-assign]
    stage.run(control, world, 2)
    assert kept(stage).retune.paused_at is not None


def test_a_spec_that_cannot_be_read_for_a_while_ends_no_retune() -> None:
    stage, _ = trying()
    world, control = started(stage)
    stage.run(control, world, 2)
    right = stage.asked
    wrong = right.deployment.spec.model_copy(update={"workload": Workload(preset="nobody-knows")})
    put(
        stage,
        world,
        replace(right, deployment=right.deployment.model_copy(update={"spec": wrong})),
    )
    stage.run(control, world, 3)
    assert conditions(world.directions[KEY]) == {}, "nothing is told by what is not known"
    step = kept(stage).retune.step
    assert step is not None
    assert step.phase is Phase.JUDGING
    assert len(tried(stage)) == 1, "and nobody judges it now"
    put(stage, world, right)
    stage.run(control, world, 2)
    assert kept(stage).retune.step is not None
    assert len(tried(stage)) == 2
    assert stage.news == []


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
