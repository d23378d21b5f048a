"""A deployment over two kinds of devices on one of which engines end again and again, at the most replicas that it may have."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from plimsoll.control.retune import RetuneMemory, Turned, advance
from plimsoll.control.retune import Scene as Look
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop import retuning
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from tests.reconcile.loop.test_mixed import CHEAP, DEAR, SPEC, Mixed, two_pools
from tests.reconcile.staging import KEY, TICK, started
from tests.reconcile.test_decide import seen


@dataclass
class Broken(Mixed):
    fails: str = ""
    """The kind of device on which engines end again and again."""
    since: float = 0.0

    def pods(self, name: str, count: int) -> tuple[PodSeen, ...]:
        found = super().pods(name, count)
        if self.decision.revisions[name].entry.hardware.gpu != self.fails:
            return found
        return tuple(
            replace(
                pod,
                stage=Stage.FAILED,
                reason="CrashLoopBackOff",
                since=self.now - 20,
                created=self.since,
                scheduled=self.since,
                unready=self.since,
                restarts=4,
            )
            for pod in found
        )


def full() -> tuple[Broken, World, Control]:
    """Three at most, of which the cheaper two have begun to fail."""
    spec = {**SPEC, "scaling": {**SPEC["scaling"], "max": 3}}
    asked = replace(seen(spec=spec), inventory=two_pools({}, {}))
    stage = Broken(asked=asked, decision=decide(asked))
    world, control = started(stage)
    stage.load = 400.0
    stage.run(control, world, 20)
    assert stage.by_gpu == {CHEAP: 2, DEAR: 1}
    stage.fails, stage.since = CHEAP, stage.now
    return stage, world, control


def test_the_set_that_serves_takes_the_places_of_the_one_that_fails() -> None:
    stage, world, control = full()
    stage.run(control, world, 40)
    assert stage.by_gpu == {CHEAP: 2, DEAR: 1}, "for ten minutes it may come back by itself"
    stage.run(control, world, 20)
    assert stage.by_gpu == {CHEAP: 0, DEAR: 3}
    stage.fails = ""
    stage.load = 1.0
    stage.run(control, world, 200)
    assert stage.by_gpu == {CHEAP: 0, DEAR: 1}
    stage.load = 400.0
    stage.run(control, world, 20)
    assert stage.by_gpu[CHEAP] > 0, "it is tried again, and works"


def test_while_a_turn_takes_long_it_is_told_once() -> None:
    stage, world, control = full()
    stage.run(control, world, 40)
    stage.news.clear()
    for _ in range(20):
        stage.now += TICK
        asyncio.run(control.tick())
    assert stage.by_gpu == {CHEAP: 2, DEAR: 1}, "no turn has come"
    told = [one.message for one in stage.news if one.reason == "StartFailed"]
    assert len(told) == 1
    assert f"on {CHEAP} have failed for 13 minutes or more; 2 of" in told[0]
    left_alone = control._knows.known[KEY].record.memory.of("serve").blocked
    assert [one.retry_s for one in left_alone.values()] == [60.0]
    stage.turn(world)
    assert stage.by_gpu == {CHEAP: 0, DEAR: 3}
    stage.run(control, world, 4)
    kept = stage.decision.kept.control
    assert kept is not None
    assert [act.reason for act in kept.acts].count("StartFailed") == 1
    assert KEY in world.directions


def test_a_retune_that_would_begin_at_that_look_waits_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """One action a look: replicas that move to another set are one, though their number stays."""
    stage, world, control = full()
    stage.run(control, world, 40)
    stage.news.clear()
    looks: list[tuple[bool, bool]] = []

    def noted(scene: Look, memory: RetuneMemory) -> Turned:
        looks.append((any(one.reason == "StartFailed" for one in stage.news), scene.scaled))
        return advance(scene, memory)

    monkeypatch.setattr(retuning, "advance", noted)
    stage.run(control, world, 20)
    first = [told for told, _ in looks].index(True)
    assert [scaled for _, scaled in looks[first - 2 : first + 2]] == [False, True, False, False]
