"""What a day allows of retunes and of restarts, and that a way back is paid for before the way there begins."""

from dataclasses import replace

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Phase
from tests.control.retune.world import GOOD, OLD, World, judging

HOUR = 3600.0
SLOWER = replace(GOOD, itl=1.3 * OLD.itl)


def test_a_days_budget_of_retunes_holds():
    rules = Restarts(retunes_per_day=1, retry_after_seconds=1)
    world = World(change=SLOWER, rules=rules).run(20 * HOUR)
    assert len(world.memory.past) == 1
    assert "1 are allowed" in world.why_not


def moved(world):
    return len(world.memory.restarts)


def test_restarts_without_a_surge_are_counted_there_and_back():
    world = World(replicas=3, free=0)
    while world.memory.step is None or world.memory.step.rolled < 2:
        world.tick()
    assert moved(world) == 2
    world.change = SLOWER
    world.run(HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert moved(world) == 4


def test_a_roll_that_the_days_restarts_do_not_suffice_for_does_not_begin():
    world = World(replicas=8, free=0).run(3 * HOUR)
    assert (world.memory.step, moved(world)) == (None, 0)
    assert "16 restarts" in world.why_not
    assert "6 are allowed" in world.why_not


def test_a_roll_that_has_become_larger_than_the_days_restarts_goes_back_within_them():
    world = judging(World(replicas=3, free=0))
    world.replicas = 8
    world.run(3 * HOUR)
    assert world.memory.past[0].outcome is Phase.FAILED
    assert "restarts" in world.memory.past[0].reason
    assert 2 <= moved(world) <= 6
