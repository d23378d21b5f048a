"""Replicas whose data ranks are balanced outside of the engine: each of their pods takes requests, and all of them are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.facts.serving import PodSeen, Serving, Stage
from plimsoll.reconcile.loop.sources import Asked, Looked
from tests.reconcile.staging import KEY, Scene, staged

PODS = 2
REFUSED = "its metrics page answers HTTP 500"


def balanced_outside(stage: Scene) -> list[str]:
    """From now on each replica has so many pods, which all lead; returns a list of those that are asked, which grows."""
    serving, look, asked_of = stage.serving, stage.look, list[str]()

    def pods(name: str, count: int) -> tuple[PodSeen, ...]:
        return tuple(
            PodSeen(
                name=f"{name}-{group}-{rank}", uid=f"{name}-{group}-{rank}", stage=Stage.READY, node="n",
                group=group, rank=rank, leads=True, created=1.7e9, since=1.7e9 + 60, scheduled=1.7e9,
                address="10.0.0.1",
            )
            for group in range(count)
            for rank in range(PODS)
        )  # fmt: skip

    def seen(*_: object) -> Serving:
        sets = serving().sets
        return Serving(sets=tuple(replace(one, pods_per_replica=PODS) for one in sets))

    async def looked(now: float, asked: Sequence[Asked]) -> Looked:
        asked_of.extend(pod.name for one in asked for pod in one.leaders)
        return await look(now, asked)

    stage.pods, stage.serving, stage.look = pods, seen, looked  # type: ignore[method-assign]
    return asked_of


@pytest.mark.parametrize("load", [20.0, 100.0, 150.0])
def test_the_load_of_all_pods_is_counted_and_asks_for_as_many_replicas_as_anywhere(load: float) -> None:
    alone, beside, plain = staged()
    stage, world, control = staged()
    asked = balanced_outside(stage)
    alone.load = stage.load = load
    alone.run(plain, beside, 20)
    stage.run(control, world, 20)
    assert stage.replicas == alone.replicas
    tracks = control._window.tracks
    assert sum((one.last.running or 0) + (one.last.waiting or 0) for one in tracks.values()) == load
    assert {name.rpartition("-")[2] for name in tracks} == {"0"}, "a replica bears the name of its first pod"
    assert set(asked) >= {pod.name for one in stage.serving().sets for pod in one.pods}


def test_a_replica_of_which_one_pod_is_silent_is_not_taken_for_one_with_half_the_load() -> None:
    stage, world, control = staged()
    balanced_outside(stage)
    stage.load = 100.0
    stage.run(control, world, 20)
    before, look = stage.replicas, stage.look

    async def in_part(now: float, asked: Sequence[Asked]) -> Looked:
        found = await look(now, asked)
        errors: Mapping[str, str] = {
            f"team-a/{one.pod}": REFUSED for one in found.samples if one.pod.endswith("-1")
        }
        heard = tuple(one for one in found.samples if not one.pod.endswith("-1"))
        return replace(found, samples=heard, errors=errors)

    stage.look = in_part  # type: ignore[method-assign]
    stage.load = 0.0
    stage.run(control, world, 40)
    assert stage.replicas == before
    (told,) = [one for one in world.directions[KEY].told if one.type == names.METRICS]
    assert (told.status, REFUSED in told.message) == ("False", True)
