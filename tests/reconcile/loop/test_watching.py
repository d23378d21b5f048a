"""What control makes of a time that it did not see, and of a deployment that it cannot make anything of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control import fleet
from plimsoll.facts.pod_sample import PodSample
from plimsoll.reconcile.loop import judging
from plimsoll.reconcile.loop.sources import Asked, Looked
from tests.reconcile.staging import KEY, Scene, put, staged, started

OUTAGE = 60
"""Ticks: a quarter of an hour."""


def test_the_first_samples_after_an_outage_take_nothing_away() -> None:
    stage, world, control = staged()
    stage.load = 220.0
    stage.run(control, world, 60)
    before = stage.replicas
    assert before > 1
    stage.reachable = False
    stage.run(control, world, OUTAGE)
    stage.reachable, stage.load = True, 4.0
    stage.run(control, world, 3)
    assert stage.replicas == before
    stage.run(control, world, OUTAGE)
    assert stage.replicas < before


def test_an_operator_that_starts_takes_nothing_away_before_it_has_watched() -> None:
    stage, world, control = staged()
    stage.load = 220.0
    stage.run(control, world, 12)
    before = stage.replicas
    stage.now, stage.load = stage.now + 300.0, 4.0
    world, control = started(stage)
    stage.turn(world)
    stage.run(control, world, 3)
    assert stage.replicas == before > 1


ZERO: dict[str, Any] = {"scaling": {"max": 4, "zero": {"wake": {"annotation": True}, "afterSeconds": 900}}}


def only_ages(stage: Scene) -> None:
    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        return Looked(samples=tuple(PodSample(pod=pod.uid, at=now) for each in asked for pod in each.leaders))

    stage.look = look  # type: ignore[method-assign]


def silence(stage: Scene) -> None:
    stage.reachable = False


@pytest.mark.parametrize("hidden", [silence, only_ages])
def test_nobody_falls_asleep_by_a_time_that_nobody_saw(hidden: Callable[[Scene], None]) -> None:
    stage, world, control = staged(**ZERO)
    stage.load = 20.0
    stage.run(control, world, 2 * OUTAGE)
    seeing = stage.look
    hidden(stage)
    stage.run(control, world, 2 * OUTAGE)
    assert stage.replicas > 0
    stage.look, stage.reachable, stage.load = seeing, True, 0.0  # type: ignore[method-assign]
    stage.run(control, world, OUTAGE - 5)
    assert stage.replicas > 0
    stage.run(control, world, OUTAGE)
    assert stage.replicas == 0


@pytest.mark.parametrize("step", ["_situation", "_scaled", "retuned", "_zero", "decide"])
def test_a_deployment_that_nothing_can_be_decided_for_keeps_nobody_from_theirs(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, world, control = staged(**ZERO)
    odd = stage.asked.deployment.model_copy(
        update={"metadata": stage.asked.deployment.metadata.model_copy(update={"name": "odd"})}
    )
    put(stage, world, replace(stage.asked, deployment=odd), key="team-a/odd")
    place = fleet if step == "decide" else judging
    whole = getattr(place, step)

    def broken(*said: Any, **named: Any) -> Any:
        if "team-a/odd" in repr((said[1:2], named.get("situation"))):
            raise OverflowError("too much")
        return whole(*said, **named)

    monkeypatch.setattr(place, step, broken)
    stage.run(control, world, 3)
    assert set(world.directions) == {KEY}
