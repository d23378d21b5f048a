"""What a set is known by for its retunes and start-ups: what its replicas run, and not what retunes change or people write beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.record import Record
from plimsoll.control.retune.scene import changed
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.subject import subject_of
from tests.planning.asking import SMALL, deployment, facts, pool
from tests.reconcile.staging import Scene, put, started
from tests.reconcile.test_decide import after, seen

AUTO: dict[str, Any] = {
    "scaling": {"min": 1, "max": 4},
    "engine": {"maxSequences": 64},
    "workload": {"contextTokens": 8192},
}


def runs(kept: Any, asked: Any, revisions: Any) -> str:
    found = subject_of(asked.deployment, kept, asked.config, revisions)
    assert found is not None
    (one,) = found.sets
    return one.runs


def before_and_after(**edit: Any) -> tuple[str, str]:
    asked = seen(spec=AUTO, pools=(pool(nodes=4),))
    first = decide(asked)
    wanted = deployment(**{**AUTO, **edit})
    edited = replace(after(first, asked), deployment=wanted, facts=facts(wanted))
    moved = decide(edited)
    return runs(first.kept, asked, first.revisions), runs(moved.kept, edited, moved.revisions)


@pytest.mark.parametrize(
    "edit",
    [
        {"model": {"source": SMALL}},
        {"engine": {"maxSequences": 64, "version": "0.20.0"}},
        {"memory": {"kvCacheDtype": "fp8"}},
        {"memory": {"utilizationPercent": 70}},
        {"workload": {"contextTokens": 4096}},
    ],
    ids=str,
)
def test_what_failed_before_such_an_edit_says_nothing_of_what_runs_after_it(edit: dict[str, Any]) -> None:
    before, now = before_and_after(**edit)
    assert before
    assert now
    assert before != now


@pytest.mark.parametrize(
    "edit",
    [
        {"podLabels": {"team": "search"}},
        {"scaling": {"min": 1, "max": 3}},
        {"slo": {"itlP99Ms": 80}},
        {"engine": {"maxSequences": 32}},
    ],
    ids=str,
)
def test_after_such_an_edit_the_same_runs(edit: dict[str, Any]) -> None:
    before, now = before_and_after(**edit)
    assert before == now != ""


def test_a_retune_that_stays_changes_nothing_of_it_and_a_plan_that_does_not_know_its_model_says_nothing() -> (
    None
):
    asked = seen(spec=AUTO, pools=(pool(nodes=4),))
    first = decide(asked)
    plan = first.kept.plan
    assert plan is not None
    (one,) = plan.sets
    stays = changed(one, "maxSequences", "20", engine=plan.engine, version=plan.engine_version)
    assert stays.digest != one.digest
    tuned = replace(first.kept, plan=replace(plan, sets=(stays,)))
    assert runs(tuned, asked, first.revisions) == runs(first.kept, asked, first.revisions)
    unknown = replace(first.kept, plan=replace(plan, model_digest=""))
    assert runs(unknown, asked, first.revisions) == ""


def starts_after(edit: dict[str, Any], starts: tuple[float, ...]) -> tuple[float, ...]:
    """Start-ups that are kept an hour after an edit, where these were known before it."""
    asked = seen(spec=AUTO, pools=(pool(nodes=4),))
    first = decide(asked)
    taught = RoleMemory(starts=starts, started_until=1_800_000_000.0)
    record = Record(memory=Memory(roles={"serve": taught}))
    stage = Scene(asked=asked, decision=replace(first, kept=replace(first.kept, control=record)))
    world, control = started(stage)
    stage.run(control, world, 2)
    wanted = deployment(**{**AUTO, **edit})
    put(stage, world, replace(asked, deployment=wanted, facts=facts(wanted)))
    stage.turn(world)
    stage.run(control, world, 240)
    kept = stage.decision.kept.control
    assert kept is not None
    return kept.memory.of("serve").starts


@pytest.mark.parametrize(
    ("edit", "took", "kept"),
    [
        ({"model": {"source": SMALL}}, 40.0, 0),
        ({"model": {"source": SMALL}}, 600.0, 20),
        ({"podLabels": {"team": "search"}}, 40.0, 20),
    ],
    ids=["another model", "another model, that may start as slowly", "the same model"],
)
def test_how_fast_another_model_started_is_believed_of_none_that_nobody_saw_start(
    edit: dict[str, Any], took: float, kept: int
) -> None:
    assert starts_after(edit, (took,) * 20) == (took,) * kept
