"""What happens to a deployment while it is looked at: pods that are edited in the midst of a retune, and hours without metrics."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.control.retune import Phase
from plimsoll.control.signals import LATENCY_S
from plimsoll.reconcile.controlling import Control
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.world import World
from tests.planning.asking import pool
from tests.reconcile.staging import AUTO, TICK, Scene, put, staged, started
from tests.reconcile.test_decide import seen
from tests.reconcile.test_one_action import Preempting

RETUNED: dict[str, Any] = {**AUTO, "engine": {"maxSequences": 64}, "tuning": {"mode": "auto"}}


def judging() -> tuple[Scene, World, Control]:
    asked = seen(spec=RETUNED, pools=(pool(nodes=4),))
    stage = Preempting(asked=asked, decision=decide(asked), load=10.0)
    world, control = started(stage)
    for _ in range(200):
        stage.run(control, world, 1)
        step = _kept(stage).retune.step
        if step is not None and step.phase is Phase.JUDGING:
            return stage, world, control
    raise AssertionError("no canary was ever judged")


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
