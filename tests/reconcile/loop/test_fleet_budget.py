"""The fleet's budget of retunes counts those of deployments, too, of which nothing can be decided now: their canaries are out all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.retune import RetuneMemory, Turned
from plimsoll.control.retune.allowed import refusal
from plimsoll.control.retune.scene import Scene as Retuned
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.reconcile.kept import CONTROL_KEY
from plimsoll.reconcile.loop.situations import situation_of
from plimsoll.reconcile.world import World
from tests.control.retune.world import World as Played
from tests.reconcile.staging import KEY, Scene, put, started
from tests.reconcile.test_untried import trying

OTHER = "team-b/other"
Spoils = Callable[[Scene, World, pytest.MonkeyPatch], None]


def names_a_preset_that_is_gone(stage: Scene, world: World, _: pytest.MonkeyPatch) -> None:
    asked = stage.asked.deployment
    wrong = asked.spec.model_copy(update={"workload": Workload(preset="nobody-knows")})
    put(stage, world, replace(stage.asked, deployment=asked.model_copy(update={"spec": wrong})))


def is_no_spec(stage: Scene, world: World, _: pytest.MonkeyPatch) -> None:
    stage.edits += 1
    body = world.resources.get(KEY)
    assert body is not None
    metadata = {**body["metadata"], "resourceVersion": str(stage.edits)}
    world.resources.put(KEY, {**body, "metadata": metadata, "spec": {"replicas": "two"}})


def spoils_a_tick(stage: Scene, world: World, patch: pytest.MonkeyPatch) -> None:
    del stage, world

    def situation(subject: Any, *args: Any, **more: Any) -> Any:
        if subject.key == KEY:
            raise ValueError("odd")
        return situation_of(subject, *args, **more)

    patch.setattr("plimsoll.reconcile.loop.judging.situation_of", situation)


def cannot_be_asked_for(stage: Scene, world: World, patch: pytest.MonkeyPatch) -> None:
    del world
    read = stage.read

    async def away(ref: Ref) -> Mapping[str, Any]:
        if ref.namespace != OTHER.partition("/")[0]:
            raise Unreachable("away for a moment")
        return await read(ref)

    patch.setattr(stage, "read", away)


def others_see(stage: Scene, spoils: Spoils, patch: pytest.MonkeyPatch, *, restarted: bool) -> float:
    """GPUs in retunes, as another deployment's look at its settings finds them."""
    seen: dict[str, float] = {}
    read = stage.read

    def noting(scene: Retuned, memory: RetuneMemory) -> Turned:
        seen[scene.name] = scene.fleet_retuning
        return Turned(memory=memory)

    async def of_each(ref: Ref) -> Mapping[str, Any]:
        found = await read(ref)
        if ref.namespace == KEY.partition("/")[0]:
            return found
        return {**found, "data": {name: text for name, text in found["data"].items() if name != CONTROL_KEY}}

    patch.setattr(stage, "read", of_each)
    patch.setattr("plimsoll.reconcile.loop.retuning.advance", noting)
    world, control = started(stage)
    body = world.resources.get(KEY)
    assert body is not None
    namespace, _, name = OTHER.partition("/")
    metadata = {**body["metadata"], "namespace": namespace, "name": name, "resourceVersion": "77"}
    world.resources.put(OTHER, {**body, "metadata": metadata})
    if not restarted:
        asyncio.run(control.tick())
        assert seen == {KEY: 0.0, OTHER: gpus(stage)}
        seen.clear()
    spoils(stage, world, patch)
    asyncio.run(control.tick())
    assert set(seen) == {OTHER}, "of the deployment itself nothing is decided"
    return seen[OTHER]


def gpus(stage: Scene) -> float:
    plan = stage.decision.kept.plan
    assert plan is not None
    return float(sum(one.devices_per_replica * one.replicas for one in plan.sets))


@pytest.mark.parametrize(
    ("spoils", "restarted"),
    [
        (names_a_preset_that_is_gone, False),
        (names_a_preset_that_is_gone, True),
        (is_no_spec, True),
        (spoils_a_tick, False),
        (spoils_a_tick, True),
    ],
)
def test_a_retune_of_a_deployment_that_cannot_be_read_now_counts_all_the_same(
    spoils: Spoils, restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, _ = trying()
    assert others_see(stage, spoils, monkeypatch, restarted=restarted) == gpus(stage) > 0


def test_where_nobody_knows_whether_it_is_in_a_retune_none_begins_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, _ = trying()
    assert others_see(stage, cannot_be_asked_for, monkeypatch, restarted=True) == inf
    no = refusal(replace(Played().scene(), fleet_retuning=inf), RetuneMemory(), Symptom.PREEMPTION)
    assert no is not None
    assert (no.reason, no.message) == (
        "FleetBusy",
        "it cannot be read how many GPUs of the fleet are in retunes, 10 may be",
    )
