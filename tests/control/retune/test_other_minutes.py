"""Minutes are held against the same minutes: those in which the others carried more, or were not heard, speak for and against nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from plimsoll.control.latencies import Latencies
from plimsoll.control.retune import Phase, Scene
from plimsoll.control.retune.looking import verdict_of
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from plimsoll.control.situation import ReplicaState
from plimsoll.facts.pod_sample import PodSample
from tests.control.retune.world import GOOD, OLD, START_S, TICK, Behaviour, World, counts, judging, said

HOUR = 3600.0
LOOKS_BACK_S = 180.0


@dataclass
class Crowded(World):
    """Whose replicas are crowded, with the change or without it, while one of them is away. Latencies look back at that for minutes."""

    crowds: Behaviour = OLD
    crowded: Behaviour = GOOD
    last: float = -1e9
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    seen: Window = field(default_factory=Window)

    @property
    def one_is_away(self) -> bool:
        ready = sum(self.now - at >= START_S for at in self.changed_at.values())
        return bool(self.changed_at) and self._left() + ready < self.replicas

    def _how(self, kind: str, *, away: bool) -> Behaviour:
        if kind == "old":
            return self.crowds if away else self.old
        return self.crowded if away else self.change

    def heard(self, kind: str, count: int) -> Signals:
        if self.one_is_away:
            self.last = self.now
        now = said(self._how(kind, away=self.one_is_away), count, self.now, kind)
        looks_back = self._how(kind, away=self.now - self.last <= LOOKS_BACK_S)
        return replace(now, latencies=said(looks_back, count, self.now, kind).latencies)

    def window(self, old: int, new: int) -> Window:
        """Counters that go on by what each replica did since the last look."""
        rows = []
        for kind, many in (("old", old), ("new", new)):
            how = self._how(kind, away=self.one_is_away)
            for place in range(many):
                name = f"{kind}-{place}"
                rows.append(self._went_on(how, name))
        self.seen = self.seen.add(self.now, rows)
        return self.seen

    def _went_on(self, how: Behaviour, name: str) -> PodSample:
        before, after = counts(how, name, self.now - TICK), counts(how, name, self.now)
        kept = self.counted.setdefault(name, {})
        grown: dict[str, Any] = {}
        for figure in ("finished", "preemptions", "errors", "generation_tokens"):
            more = (getattr(after, figure) or 0.0) - (getattr(before, figure) or 0.0)
            grown[figure] = kept[figure] = kept.get(figure, 1e4) + more
        return replace(after, **grown)


def crowded(replicas: int, old: dict[str, Any], new: dict[str, Any]) -> Crowded:
    """A world in which one replica fewer has the load of all while one is away."""
    more = replicas / (replicas - 1)
    return Crowded(
        replicas=replicas,
        free=0,
        crowds=replace(OLD, rate=OLD.rate * more, **old),
        crowded=replace(GOOD, rate=GOOD.rate * more, **new),
    )


@pytest.mark.parametrize("replicas", [2, 3, 5])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"ttft": 2.6}, {"ttft": 2.6}),
        ({"itl": 0.06}, {"itl": 0.045}),
        ({"preempted": 0.6}, {"preempted": 0.25}),
        ({"errors": 0.03}, {"errors": 0.03}),
    ],
    ids=["as ever", "first tokens are late", "gaps are longer", "more are preempted", "some fail"],
)
def test_a_good_change_stays_though_the_last_replicas_were_crowded_while_one_was_away(
    replicas: int, old: dict[str, Any], new: dict[str, Any]
) -> None:
    world = crowded(replicas, old, new).run(5 * HOUR)
    past = world.memory.past[0]
    assert past.outcome is Phase.DONE, past.reason


@dataclass
class Silent(World):
    """Whose replicas without the change are not heard for some looks."""

    silent: bool = False

    def scene(self) -> Scene:
        scene = super().scene()
        if not self.silent:
            return scene
        return replace(scene, signals=replace(scene.signals, replicas=(), latencies=Latencies()))


@pytest.mark.parametrize("silent_at_s", [None, 600.0])
@pytest.mark.parametrize(
    ("others", "canary", "after"),
    [
        # Of busier minutes: late on both, and sooner with the change.
        (replace(OLD, ttft=2.6), replace(GOOD, ttft=2.4), Phase.ROLLING),
        # Of quieter ones: longer gaps than the others have now, and no longer than they had before.
        (replace(OLD, itl=0.02), replace(GOOD, itl=0.038), Phase.ROLLING_BACK),
    ],
    ids=["busier", "quieter"],
)
def test_a_canary_is_held_against_no_other_minutes_where_the_others_are_not_heard_for_a_look(
    others: Behaviour, canary: Behaviour, after: Phase, silent_at_s: float | None
) -> None:
    world = Silent(replicas=2, free=0)
    judging(world)
    world.old, world.change, began = others, canary, world.now
    while world.memory.step is not None and world.memory.step.phase is Phase.JUDGING:
        world.silent = silent_at_s is not None and world.now - began + TICK == silent_at_s
        world.tick()
    assert world.memory.step is not None
    assert world.memory.step.phase is after, world.memory.step.said


@pytest.mark.parametrize(
    ("state", "unknown"), [(ReplicaState.READY, True), (ReplicaState.UNSCHEDULABLE, False)]
)
def test_a_replica_without_a_node_will_tell_of_no_minutes_and_is_not_waited_for(
    state: ReplicaState, unknown: bool
) -> None:
    world = judging(World(replicas=2, free=0)).run(300)
    scene = world.scene()
    waits = tuple(replace(one, state=state) for one in scene.serving.replicas)
    silent = replace(scene.signals, replicas=(), latencies=Latencies())
    scene = replace(scene, serving=replace(scene.serving, replicas=waits), signals=silent)
    assert world.memory.step is not None
    assert verdict_of(scene, replace(world.memory.step, phase=Phase.JUDGING)).unknown is unknown
