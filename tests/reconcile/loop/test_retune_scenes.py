"""What a retune is told of the scaling beside it is what the same look has decided, and the simulator tells it the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.control.memory import RoleMemory
from plimsoll.control.retune import Scene
from plimsoll.control.retune.beside_scaling import beside_scaling
from plimsoll.reconcile.loop import retuning as operators
from plimsoll.reconcile.loop.tick import ROLE
from plimsoll.simulate.policies import retuning as simulators
from tests.reconcile.staging import staged


def test_a_wish_that_comes_up_and_replicas_that_are_added_in_a_look_count_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = operators._scene
    seen: list[tuple[Scene, RoleMemory, RoleMemory]] = []

    def scene(tick: Any, case: Any, so_far: Any, *others: Any) -> Scene:
        found = real(tick, case, so_far, *others)
        seen.append((found, case.record.memory.of(ROLE), so_far.record.memory.of(ROLE)))
        return found

    monkeypatch.setattr(operators, "_scene", scene)
    stage, world, control = staged()
    stage.run(control, world, 4)
    stage.load = 400.0
    stage.run(control, world, 12)
    for found, _, after in seen:
        assert found.wants_more == (after.over_since is not None)
        assert (found.wanted, found.scaled_at) == (after.wanted, after.up_at)
    assert any(before.up_at != after.up_at for _, before, after in seen)
    assert any((before.over_since is None) != (after.over_since is None) for _, before, after in seen)


@pytest.mark.parametrize("room", [operators, simulators], ids=["operator", "simulator"])
def test_operator_and_simulator_ask_the_same_function(room: Any) -> None:
    names: Mapping[str, object] = vars(room)
    assert names["beside_scaling"] is beside_scaling
