"""What control writes down, and how seldom: a fleet at rest costs no write, and tells nothing twice."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from plimsoll.api.v1alpha1.status import Condition
from plimsoll.control.memory import LoadMemory, Memory, RoleMemory
from plimsoll.control.record import Record
from plimsoll.reconcile.loop.sources import Looked
from plimsoll.reconcile.loop.storing import STORE_S, first_due, taught
from tests.reconcile.staging import AUTO, KEY, conditions, put, replace_look, staged, started

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
    ],
)
def test_only_what_was_learned_is_new(change: dict[str, object], new: bool) -> None:
    before = RoleMemory(begun=0.0, seen=15.0)
    after = replace(before, **change)  # type: ignore[arg-type]
    records = [Record(memory=Memory(roles={"serve": one})) for one in (after, before)]
    assert taught(*records) is new


def test_a_load_that_wavers_around_the_most_is_limited_all_the_time() -> None:
    stage, world, control = staged(scaling={**AUTO["scaling"], "max": 2, "downWindowSeconds": 3600})
    wavering = random.Random(1)
    turns = 0
    for tick in range(HOUR + 40):
        stage.load = wavering.uniform(36, 60)
        turned = stage.run(control, world, 1)
        turns += turned if tick >= 40 else 0
    assert conditions(world.directions[KEY])["ScalingLimited"] == ("True", "AtMax")
    assert turns < 8, "14 where each change is told"


def test_a_most_that_was_raised_limits_nobody_any_more() -> None:
    stage, world, control = staged(scaling={**AUTO["scaling"], "max": 2})
    stage.load = 100.0
    stage.run(control, world, 40)
    assert conditions(world.directions[KEY])["ScalingLimited"] == ("True", "AtMax")
    spec = stage.asked.deployment.spec
    raised = spec.model_copy(update={"scaling": spec.scaling.model_copy(update={"max": 8})})
    deployment = stage.asked.deployment.model_copy(update={"spec": raised})
    stage.load = 60.0
    put(stage, world, replace(stage.asked, deployment=deployment))
    stage.run(control, world, 3)
    assert "ScalingLimited" not in conditions(world.directions[KEY])


def test_a_prometheus_that_starts_again_is_no_write() -> None:
    stage, world, control = staged()
    stage.run(control, world, 30)
    stage.reachable = False
    turns = stage.run(control, world, 4)
    stage.reachable = True
    assert turns + stage.run(control, world, 4) == 0


@pytest.mark.parametrize("told", [("True", "Fresh"), ("False", "Missing")])
def test_an_operator_that_starts_without_metrics_writes_nothing_for_a_moment(told: tuple[str, str]) -> None:
    stage, world, control = staged()
    stage.run(control, world, 30)
    said = {**conditions(world.directions[KEY]), "MetricsAvailable": told}
    there = [
        {
            "type": kind,
            "status": one[0],
            "reason": one[1],
            "message": "said",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, one in said.items()
    ]
    listed = tuple(Condition.model_validate(one) for one in there)
    status = stage.asked.deployment.status.model_copy(update={"conditions": listed})
    stage.asked = replace(
        stage.asked, deployment=stage.asked.deployment.model_copy(update={"status": status})
    )
    world, control = started(stage)
    replace_look(stage, Looked())
    assert stage.run(control, world, 3) == 0
