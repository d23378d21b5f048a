"""An image that cannot be had is nobody's doing here: it is waited for, and where that is in vain nothing is said of the change."""

from dataclasses import replace

import pytest

from plimsoll.control.retune import Phase, Scene, advance
from plimsoll.control.situation import ReplicaState
from plimsoll.planning import codec
from tests.control.retune.world import World, in_phase

HOUR = 3600.0


def without_an_image(world: World, *, now: float) -> Scene:
    """As it is, but that the last replica with the change cannot have its image."""
    scene = world.scene()
    assert scene.changed is not None
    *others, last = scene.changed.replicas
    failing = replace(last, state=ReplicaState.FAILED, outside=True)
    live = [one.id for one in others if one.state is ReplicaState.READY]
    assert scene.changed_signals is not None
    said = tuple(one for one in scene.changed_signals.replicas if one.replica in live)
    return replace(
        scene,
        now=now,
        changed=replace(scene.changed, replicas=(*others, failing)),
        changed_signals=replace(scene.changed_signals, replicas=said, live=len(live)),
    )


@pytest.mark.parametrize("phase", [Phase.CANARY, Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING])
def test_an_image_that_cannot_be_had_for_a_moment_takes_nothing_back(phase):
    world = in_phase(phase, World())
    world.tick()
    memory = advance(without_an_image(world, now=world.now + 30), world.memory).memory
    assert memory.step is not None
    assert memory.step.phase is phase
    world.stored = codec.encode(memory)
    world.now += 30
    world.run(3 * HOUR)
    assert [past.outcome for past in world.memory.past] == [Phase.DONE]


@pytest.mark.parametrize("phase", [Phase.CANARY, Phase.JUDGING, Phase.ROLLING])
def test_one_that_cannot_be_had_in_time_is_no_failure(phase):
    world = in_phase(phase, World())
    world.tick()
    memory, now = world.memory, world.now
    while memory.step is not None and memory.step.phase is phase:
        now += 60
        memory = advance(without_an_image(world, now=now), memory).memory
    assert memory.step is not None
    assert memory.step.phase is Phase.ROLLING_BACK
    assert memory.step.starved, "it says nothing of the change"
    assert "image" in memory.step.said


def test_a_canary_whose_image_is_still_pulled_or_that_a_gate_holds_back_is_no_failure():
    """It does not fail, and it is not its engine that is waited for."""
    world = in_phase(Phase.CANARY, World())
    world.stuck_since = world.now
    world.tick()
    memory, now = world.memory, world.now
    while memory.step is not None and memory.step.phase is Phase.CANARY:
        now += 60
        scene = replace(world.scene(), now=now)
        assert scene.changed is not None
        pulled = tuple(replace(one, outside=True) for one in scene.changed.replicas)
        memory = advance(replace(scene, changed=replace(scene.changed, replicas=pulled)), memory).memory
    assert memory.step is not None
    assert memory.step.starved, "it says nothing of the change"
    assert "image" in memory.step.said
