"""The control loop: what a tick hands to turns, whom it wakes, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.v1alpha1.scaling import Tuning
from plimsoll.reconcile.loop import controlling
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.judging import judged
from plimsoll.reconcile.loop.sources import Asked, ByPods, Looked
from plimsoll.reconcile.loop.tick import Case, Judged, Tick
from tests.reconcile.staging import KEY, conditions, put, replace_look, staged, started, woken


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


@pytest.mark.parametrize("besides", [(), ("GPUsUnavailable",)], ids=["one reason", "a further one"])
def test_an_operator_that_starts_again_takes_a_turn_for_reasons_that_the_status_has_no_place_for(
    besides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns leave them for metrics, and an alert would end without them."""
    stage, world, control = staged()
    stage.load = 400.0
    stage.run(control, world, 30)
    told = world.directions[KEY].told
    assert [one.reason for one in told if one.type == names.SCALING] == ["AtMax"]

    def besides_told(tick: Tick, cases: Mapping[str, Case]) -> dict[str, Judged]:
        limited = [replace(one, besides=besides if one.type == names.SCALING else ()) for one in told]
        return {key: replace(one, told=tuple(limited)) for key, one in judged(tick, cases).items()}

    monkeypatch.setattr(controlling, "judged", besides_told)
    world, control = started(stage)
    moment = "2026-01-01T00:00:00Z"
    said = [
        {
            "type": one.type, "status": one.status, "reason": one.reason, "message": one.message,
            "lastTransitionTime": moment,
        }
        for one in told
    ]  # fmt: skip
    world.resources.put_status(KEY, {"conditions": said}, uid="o", version=99)
    asyncio.run(control.tick())
    assert stage.woken == ([KEY] if besides else [])


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
    stage, world, control = woken()
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
