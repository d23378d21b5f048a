"""Fewer replicas are asked for while a change goes from one to the next."""

from dataclasses import dataclass, replace

import pytest

from plimsoll.control.retune import Phase
from tests.control.retune.world import Behaviour, World, in_phase

HOUR = 3600.0


@dataclass
class Told(World):
    """Replicas with the change are never more than are asked for in all."""

    def _make(self, effect):
        if effect is not None and not effect.adopt:
            effect = replace(effect, replicas=min(effect.replicas, self.replicas))
        super()._make(effect)


@pytest.mark.parametrize("free", [0, 1])
def test_a_roll_goes_on_where_fewer_replicas_are_asked_for_than_were(free):
    world = in_phase(Phase.ROLLING, Told(replicas=3, free=free))
    while (step := world.memory.step) is None or step.rolled < 3:
        world.tick()
    world.replicas = 2
    world.run(HOUR)
    assert world.memory.past[0].outcome is Phase.DONE, world.memory.past[0].reason


def test_a_way_back_is_as_many_restarts_as_there_are_replicas_with_the_change():
    world = in_phase(Phase.ROLLING, Told(replicas=3, free=0))
    while (step := world.memory.step) is None or step.rolled < 3:
        world.tick()
    world.replicas, world.change = 2, Behaviour(starts=False)
    world.run(HOUR)
    assert len(world.memory.restarts) == 3 + 2
