"""What is told and kept of a retune says of which set it is, where a plan has several."""

import pytest

from plimsoll.control.retune import Consent
from tests.control.retune.world import GOOD, OLD, World

HOUR = 3600.0
ONE = "tp1 on H100-SXM-80GB"


@pytest.mark.parametrize("change", [GOOD, OLD])
def test_what_is_kept_of_a_retune_begins_with_its_set(change):
    world = World(change=change, about=ONE)
    while world.memory.step is None:
        world.tick()
    assert world.memory.step.why.startswith(f"{ONE}: 30% of requests are preempted")
    world.run(2 * HOUR)
    assert world.memory.past
    assert all(past.reason.startswith(f"{ONE}: ") for past in world.memory.past)


def test_what_a_dry_run_suggests_does_too():
    suggested = World(about=ONE, consent=Consent(mode="dryRun")).run(HOUR).memory.suggested
    assert suggested is not None
    assert suggested.reason.startswith(f"{ONE}: 30% of requests are preempted")


def test_what_keeps_one_from_beginning_does_too():
    held = World(about=ONE, replicas=1, free=0).run(HOUR).memory.held
    assert held is not None
    assert held.message.startswith(f"{ONE}: the only replica would have to restart")


def test_what_keeps_one_from_beginning_is_told_of_the_set_that_is_looked_at_now():
    held = World(about=ONE, replicas=1, free=0).run(HOUR)
    held.about = "tp1 on A100-SXM-80GB"
    held.run(HOUR)
    assert held.memory.held is not None
    assert held.memory.held.message.startswith("tp1 on A100-SXM-80GB: the only replica would have to restart")


def test_events_leave_it_to_whoever_tells_them():
    """Who tells names it in each of them alike, so none may name it twice."""
    for mode in ("auto", "dryRun"):
        world = World(about=ONE, consent=Consent(mode=mode)).run(3 * HOUR)
        assert world.events
        assert [event for event in world.events if ONE in event.message] == []
