"""A roll goes no further on what nobody knows: replicas with the change that are not heard, and an operator that has just begun to look."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from plimsoll.control.latencies import Latencies
from plimsoll.control.retune import Phase, advance
from plimsoll.control.retune.figures import NOTHING
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from tests.control.retune.world import GOOD, OLD, TICK, World, in_phase

HOUR = 3600.0


@dataclass
class Unheard(World):
    """Of whose changed replicas some are on a node that no scraper reaches."""

    unheard: int = 0

    def heard(self, kind: str, count: int) -> Signals:
        found = super().heard(kind, count)
        if kind == "old":
            return found
        return replace(found, replicas=found.replicas[self.unheard :])

    def window(self, old: int, new: int) -> Window:
        found = super().window(old, new)
        unheard = {f"new-{place}" for place in range(self.unheard)}
        return Window({pod: track for pod, track in found.tracks.items() if pod not in unheard})


def rolled(world: World) -> int:
    step = world.memory.step
    return 0 if step is None else step.rolled


def test_replicas_with_the_change_that_are_not_heard_keep_others_from_it_and_take_it_back_in_the_end_for_no_fault_of_its_own():
    world = Unheard(replicas=6)
    in_phase(Phase.ROLLING, world)
    while rolled(world) < 3:
        world.tick()
    world.unheard = 9
    world.run(900)
    assert rolled(world) == 3
    world.run(HOUR)
    past = world.memory.past[0]
    assert (past.outcome, world.memory.failures, world.most_changed) == (Phase.FAILED, 0, 3)
    assert "inconclusive" in past.reason


@pytest.mark.parametrize("unheard", [1, 9])
def test_replicas_that_are_heard_again_in_time_are_followed_by_the_others(unheard):
    world = Unheard(replicas=4)
    in_phase(Phase.ROLLING, world)
    world.unheard = unheard
    world.run(900)
    world.unheard = 0
    world.run(2 * HOUR)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


def test_a_new_operator_goes_no_further_before_it_has_looked_for_itself():
    world = in_phase(Phase.ROLLING, World(replicas=4))
    while (changed := world.scene().changed) is None or changed.ready < 2:
        world.tick()
    step = world.memory.step
    assert step is not None
    stored = replace(step, since=world.now - 600, new=NOTHING, old=NOTHING)
    heard = world.heard("new", 2)
    once = tuple(
        replace(each, finished=None, errors=None, preemptions=None, span_s=0.0) for each in heard.replicas
    )
    scene = replace(world.scene(), changed_signals=replace(heard, replicas=once))
    first = advance(scene, replace(world.memory, step=stored)).memory
    assert first.step is not None
    assert (first.step.phase, first.step.rolled) == (Phase.ROLLING, 2)
    world.now += TICK
    second = advance(world.scene(), first).memory
    assert second.step is not None
    assert second.step.rolled == 3


def test_who_is_given_less_than_the_others_for_a_while_holds_up_nothing():
    world = in_phase(Phase.ROLLING, World(replicas=3, change=GOOD))
    world.change = replace(GOOD, rate=0.5 * OLD.rate)
    world.run(1200 + 2 * TICK)
    assert world.memory.step is None or world.memory.step.phase is not Phase.ROLLING


@dataclass
class Mute(World):
    """Whose engines with the change do not say some things, from a moment on."""

    untold: str = ""

    def heard(self, kind: str, count: int) -> Signals:
        found = super().heard(kind, count)
        if kind == "old" or not self.untold:
            return found
        if self.untold == "latencies":
            seen = Latencies(prompt=found.latencies.prompt, output=found.latencies.output)
            return replace(found, latencies=seen)
        without: dict[str, Any] = {self.untold: None}
        return replace(found, replicas=tuple(replace(one, **without) for one in found.replicas))

    def window(self, old: int, new: int) -> Window:
        found = super().window(old, new)
        if self.untold in ("", "latencies"):
            return found
        without: dict[str, Any] = {self.untold: None}
        tracks = {
            pod: track
            if pod.startswith("old")
            else replace(track, samples=tuple(replace(one, **without) for one in track.samples))
            for pod, track in found.tracks.items()
        }
        return Window(tracks)


UNSEEN = replace(GOOD, itl=0.5, ttft=20.0, e2e=100.0, gap=60.0)


@pytest.mark.parametrize("phase", [Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING])
@pytest.mark.parametrize(
    ("untold", "truth", "why"),
    [
        ("latencies", UNSEEN, "how long gaps between tokens take"),
        ("errors", replace(GOOD, errors=0.3), "how many requests fail"),
        ("preemptions", replace(GOOD, preempted=0.9), "how many requests are preempted"),
    ],
)
@pytest.mark.parametrize("load", [0.5, 1.0])
def test_a_change_of_which_something_is_not_told_to_the_end_goes_back_for_no_fault_of_its_own(
    phase, untold, truth, why, load
):
    world = Mute(replicas=4)
    in_phase(phase, world)
    world.untold, world.change = untold, replace(truth, rate=load * OLD.rate)
    world.run(4 * HOUR)
    past = world.memory.past[0]
    assert (past.outcome, world.memory.failures) == (Phase.FAILED, 0), past.reason
    assert "inconclusive" in past.reason
    assert phase is Phase.JUDGING or why in past.reason


def test_what_is_told_again_in_time_keeps_a_change_that_is_good():
    world = Mute(replicas=4)
    in_phase(Phase.VERIFYING, world)
    world.untold = "latencies"
    world.run(1200)
    world.untold = ""
    world.run(HOUR)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason
