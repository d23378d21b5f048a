"""What happens to a deployment while it is looked at: pods that are edited in the midst of a retune, and hours without metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.retune import Phase
from plimsoll.control.signals import LATENCY_S
from plimsoll.facts.serving import PodSeen
from plimsoll.reconcile.changing import before_of
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import Asked, Looked
from plimsoll.reconcile.world import World
from tests.planning.asking import pool
from tests.reconcile.loop.test_one_action import Preempting
from tests.reconcile.staging import AUTO, KEY, TICK, Scene, put, staged, started
from tests.reconcile.test_decide import seen

RETUNED: dict[str, Any] = {**AUTO, "engine": {"maxSequences": 64}, "tuning": {"mode": "auto"}}


class Cured(Preempting):
    """Its engines preempt no more once they run with a change."""

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        looked = await super().look(now, asked)
        assert self.decision.rollout is not None
        tried = tuple(one.name for one in self.decision.rollout.targets if one.state == "Canary")
        samples = tuple(
            replace(one, preemptions=0.0) if tried and one.pod.startswith(tried) else one
            for one in looked.samples
        )
        return replace(looked, samples=samples)


class Ending(Cured):
    """The first engine of one set has ended, and serves again."""

    ending: str = ""

    def pods(self, name: str, count: int) -> tuple[PodSeen, ...]:
        found = super().pods(name, count)
        return tuple(replace(one, restarts=int(name == self.ending and one is found[0])) for one in found)


def going(phase: Phase, spec: dict[str, Any] = RETUNED) -> tuple[Ending, World, Control]:
    """Played on until a retune is so far."""
    asked = seen(spec=spec, pools=(pool(nodes=4),))
    stage = Ending(asked=asked, decision=decide(asked), load=10.0)
    world, control = started(stage)
    for _ in range(400):
        stage.run(control, world, 1)
        step = _kept(stage).retune.step
        if step is not None and step.phase is phase:
            return stage, world, control
    raise AssertionError(f"no retune was ever {phase.value}")


def judging() -> tuple[Ending, World, Control]:
    return going(Phase.JUDGING)


def _kept(stage: Scene) -> Any:
    kept = stage.decision.kept.control
    assert kept is not None
    return kept


@pytest.mark.parametrize(
    ("edit", "goes_on"),
    [
        ({"podAnnotations": {"edit": "2"}}, False),
        ({"podLabels": {"team": "a"}}, False),
        ({"scaling": {**AUTO["scaling"], "max": 3}}, True),
        ({"slo": {"availabilityPercent": "99"}}, True),
    ],
)
def test_a_retune_ends_where_the_user_edits_the_pods_that_it_is_about(edit, goes_on):
    stage, world, control = judging()
    put(stage, world, seen(spec={**RETUNED, **edit}, pools=(pool(nodes=4),)))
    stage.turn(world)
    stage.run(control, world, 2)
    record = _kept(stage)
    assert (record.retune.step is not None) is goes_on
    if not goes_on:
        assert (record.retune.past[0].tried, record.retune.failures) == (False, 0)


@pytest.mark.parametrize("phase", [Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING])
@pytest.mark.parametrize("edit", [{"podAnnotations": {"edit": "2"}}, {"podLabels": {"team": "a"}}])
def test_an_edit_of_the_pods_during_a_retune_leaves_as_many_that_serve_as_are_wanted(phase, edit):
    several = {**RETUNED, "scaling": {**AUTO["scaling"], "min": 3}}
    stage, world, _ = going(phase, several)
    served = _replicas(stage)
    put(stage, world, seen(spec={**several, **edit}, pools=(pool(nodes=4),)))
    stage.turn(world)
    left = _replicas(stage)
    assert sum(count for name, count in left.items() if name in served) == 3, "until others serve"


def _replicas(stage: Scene) -> dict[str, int]:
    assert stage.decision.rollout is not None
    return {one.name: one.replicas for one in stage.decision.rollout.targets if one.replicas}


def test_a_retune_of_which_every_replica_is_taken_away_is_over():
    stage, world, control = judging()
    put(stage, world, seen(spec={**RETUNED, "replicas": 0}, pools=(pool(nodes=4),)))
    stage.turn(world)
    stage.run(control, world, 4)
    retune = _kept(stage).retune
    assert (retune.step, retune.failures) == (None, 0)
    assert "no replica" in retune.past[0].reason
    put(stage, world, seen(spec=RETUNED, pools=(pool(nodes=4),)))
    stage.turn(world)
    stage.run(control, world, 4)
    assert stage.replicas >= 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_change_of_the_plan_whose_engines_end_goes_out_of_it_again_and_replicas_move_back(restarted: bool):
    stage, world, control = going(Phase.DONE)
    stage.run(control, world, 8)
    assert _kept(stage).retune.step is None
    ((tried, count),) = _replicas(stage).items()
    (chosen,) = stage.decision.plan.sets
    after = chosen.settings.watermark_permille
    assert after > 0
    if restarted:
        world, control = started(stage)
        stage.run(control, world, 4)
    stage.ending = tried
    stage.run(control, world, 20)
    (chosen,) = stage.decision.plan.sets
    assert (chosen.settings.watermark_permille, before_of(chosen)) == (0, {"watermark": "0"})
    for _ in range(2 * count):
        # Each that comes, and each that is gone.
        stage.turn(world)
    ((serves, now),) = _replicas(stage).items()
    assert serves != tried
    assert now == count
    retune = _kept(stage).retune
    assert (retune.step, retune.kept) == (None, None)
    (past,) = retune.past
    assert (past.outcome, past.before, past.after) == (Phase.FAILED, "0", str(after))
    told = [one.reason for one in stage.news if one.reason.startswith("Retune")]
    assert told[-2:] == ["RetuneRollingBack", "RetuneFailed"]
    assert [act.reason for act in _kept(stage).acts if act.what == "watermark"][:2] == told[:-3:-1]


def test_hours_without_metrics_are_none_in_which_traffic_was_watched():
    stage, world, control = staged()
    stage.run(control, world, 40)
    stage.reachable = False
    stage.run(control, world, 480)
    stage.reachable = True
    stage.load = 30.0
    stage.run(control, world, 160)
    observed = _kept(stage).observed
    assert observed.at - observed.since <= 200 * TICK + LATENCY_S
    assert observed.at - observed.since > 60 * TICK


def test_one_made_anew_under_a_name_inherits_no_retune_of_the_one_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, world, control = judging()
    body = world.resources.get(KEY)
    assert body is not None
    metadata = {**body["metadata"], "uid": "another", "resourceVersion": "99999"}
    fixed = {name: value for name, value in body["spec"].items() if name not in ("scaling", "tuning")}
    world.resources.put(KEY, {"metadata": metadata, "spec": fixed})
    monkeypatch.setattr(stage, "wants", lambda spec: "scaling" in spec)
    stage.news.clear()
    for _ in range(3):
        stage.now += TICK
        asyncio.run(control.tick())
    assert world.direction(KEY) is None
    assert not stage.news
