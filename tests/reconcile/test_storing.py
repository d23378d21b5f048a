"""What control writes down, and how seldom: a fleet at rest costs no write, and tells nothing twice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from plimsoll.control.memory import LoadMemory, Memory, RoleMemory
from plimsoll.control.record import Record
from plimsoll.reconcile.storing import STORE_S, first_due, taught
from tests.reconcile.test_controlling import staged

HOUR = 240
"""Ticks."""


def test_a_deployment_that_nobody_asks_costs_no_write_in_hours() -> None:
    stage, world, control = staged()
    stage.load = 0.0
    stage.run(control, world, HOUR)
    assert stage.run(control, world, 4 * HOUR) == 0


def test_what_a_busy_hour_taught_fades_without_a_write() -> None:
    stage, world, control = staged()
    stage.load = 40.0
    stage.run(control, world, HOUR)
    stage.load = 0.0
    stage.run(control, world, HOUR)
    assert stage.run(control, world, 30 * HOUR) == 0


def test_what_was_learned_is_stored_within_half_an_hour() -> None:
    stage, world, control = staged()
    stage.run(control, world, 8)
    stage.load = 20.0
    stage.run(control, world, HOUR // 2 + 1)
    kept = stage.decision.kept.control
    assert kept is not None
    assert kept.memory.of("serve").load.level > 0


def test_a_fleet_is_not_stored_all_at_once() -> None:
    due = sorted(first_due(f"team-{n % 7}/chat-{n}", 0.0) for n in range(1000))
    assert 0 <= due[0] < due[-1] < STORE_S
    assert all(later - earlier < STORE_S / 50 for earlier, later in pairwise(due))


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"seen": 99.0, "begun": 50.0, "learnt_at": 90.0, "changed": 70.0, "wishes": ((99.0, 1.0),)}, False),
        ({"load": LoadMemory(at=99.0, profile=(None, 0.0, None), parts_seen=4)}, False),
        ({"load": LoadMemory(profile=(None, 2.0, None))}, True),
        ({"starts": (120.0,)}, True),
        ({"regret": 2.0}, True),
    ],
)
def test_only_what_was_learned_is_new(change: dict[str, object], new: bool) -> None:
    before = RoleMemory(begun=0.0, seen=15.0)
    after = replace(before, **change)  # type: ignore[arg-type]
    records = [Record(memory=Memory(roles={"serve": one})) for one in (after, before)]
    assert taught(*records) is new
