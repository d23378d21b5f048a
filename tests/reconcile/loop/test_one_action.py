"""Replicas and settings are decided at one tick, and at most one of the two is acted on at it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from plimsoll.facts.histograms import Histogram
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.sources import Asked, Looked
from tests.planning.asking import pool
from tests.reconcile.staging import AUTO, Scene, started
from tests.reconcile.test_decide import seen

PREEMPTED = 0.1
"""Of what finishes."""
MOVES = {"RetunePlanned", "RetuneCanary", "RetuneRolling"}
"""What begins a retune or takes a replica for it; that it is looked at otherwise from now on is nothing that is done."""
LONG = Histogram((500.0, 2000.0, math.inf), (400.0, 1000.0, 1000.0), 900_000.0)
LENGTHS = {"prompt_lengths": LONG, "output_lengths": LONG}


@dataclass
class Preempting(Scene):
    """Its engines preempt, in a pool that is never nearly full: more replicas are no cure for it."""

    def wants(self, spec: Mapping[str, Any]) -> bool:
        return True

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        looked = await super().look(now, asked)
        return replace(
            looked,
            samples=tuple(
                replace(
                    one,
                    preemptions=PREEMPTED * (one.finished or 0.0),
                    kv_fraction=min(0.8, one.kv_fraction or 0.0),
                    block_size=16,
                )
                for one in looked.samples
            ),
            histograms={
                ("team-a", each.pods[0].name.rpartition("-")[0]): LENGTHS
                for each in self.serving().sets
                if each.pods
            },
        )


@pytest.mark.parametrize("calm", range(21, 24))
def test_no_retune_begins_at_a_tick_that_adds_replicas_and_one_begins_soon_after(calm: int) -> None:
    asked = seen(
        spec={**AUTO, "engine": {"maxSequences": 64}, "tuning": {"mode": "auto"}}, pools=(pool(nodes=4),)
    )
    stage = Preempting(asked=asked, decision=decide(asked), load=10.0)
    world, control = started(stage)
    stage.run(control, world, calm)
    stage.load = 100.0
    stage.run(control, world, 12)
    kept = stage.decision.kept.control
    assert kept is not None
    when: dict[str, list[float]] = {"scale": [], "retune": []}
    for act in kept.acts:
        if act.what == "scale" or act.reason in MOVES:
            when["scale" if act.what == "scale" else "retune"].append(act.at)
    assert when["retune"]
    assert max(when["scale"]) > min(when["retune"]) - 60, "both were due at about the same tick"
    assert not set(when["scale"]) & set(when["retune"])
