"""Starts that teach: once each, the model that was planned for, and never twice over a restart of the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.status import Accuracy, LLMDeploymentStatus, SetStatus
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.learned import NOTHING, Learned, learned
from plimsoll.facts.model import Certainty
from plimsoll.facts.models import lookup
from plimsoll.facts.report import Report, Warned
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.lessons.measured import Measured
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import inventory, pool
from tests.render.building import resource

NEW = LLMDeploymentStatus()
KEY, GIB = "team-a/chat", 2**30


class Told:
    def __init__(self, **reports: Report) -> None:
        self.reports = reports

    def look(self, key: str, serving: Serving) -> None: ...

    def of(self, key: str) -> dict[str, Report]:
        return self.reports

    def again(self, key: str) -> None: ...

    def forget(self, key: str) -> None:
        self.reports = {}


def turned(
    known: Learned = NOTHING, engine: dict[str, Any] | None = None, **pod: Any
) -> tuple[Seen, Decision]:
    """A deployment that serves its plan."""
    spec: dict[str, Any] = {"engine": engine} if engine else {}
    asked = resource("Qwen/Qwen3-8B", **spec)
    facts = PlanFacts(model=lookup("Qwen/Qwen3-8B"), engine=engine_facts("vllm"))
    config = OperatorConfig.model_validate({"trust": {"images": ["own.example/*"]}})
    seen = Seen(
        deployment=asked, inventory=inventory(pool()), facts=facts, now=100.0, learned=known, config=config
    )
    first = decide(seen)
    name = next(iter(first.revisions))
    made = PodSeen(name="p", uid="u0", stage=Stage.READY, **{"since": 50.0, **pod})
    serving = Serving(sets=(SetSeen(name=name, replicas=1, pods=(made,)),))
    seen = replace(seen, serving=serving, revisions=first.revisions, kept=first.kept)
    return seen, decide(seen)


def report(decision: Decision, less_gib: float = 2.0, **others: Any) -> Report:
    left = decision.plan.sets[0].ledger.left.mid
    return Report(state="serving", kv_bytes=round(left - less_gib * GIB), kv_tokens=1, **others)


def taught_of(measured: Measured) -> dict[str, int]:
    return {one.key.flags: one.bytes for one in measured.own.residuals}


def test_a_start_teaches_once_and_the_next_plan_knows_it():
    seen, decision = turned()
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, seen, decision)
    once = measured.own
    measured.learn(KEY, seen, decision)
    assert measured.own == once
    assert measured.changed.is_set()
    assert all(bytes_ == pytest.approx(2 * GIB, abs=4) for bytes_ in taught_of(measured).values())
    _, after = turned(measured.known)
    term = after.plan.sets[0].ledger.term("activation")
    assert term.certainty is Certainty.LEARNED
    assert decision.plan.sets[0].ledger.left.mid - after.plan.sets[0].ledger.left.mid == pytest.approx(
        2 * GIB, rel=0.05
    )


def test_the_engine_s_next_start_teaches_again():
    seen, decision = turned()
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, seen, decision)
    again, decided = turned(restarts=1)
    measured.learn(KEY, again, decided)
    assert {one.starts for one in measured.own.residuals} == {2}


def test_a_start_from_before_this_process_teaches_only_what_nobody_knows():
    seen, decision = turned()
    first = Measured(reports=Told(u0=report(decision)), began=10.0)
    first.learn(KEY, seen, decision)
    after_restart = Measured(reports=Told(u0=report(decision, less_gib=9)), began=1000.0)
    after_restart.know(first.own, NOTHING)
    after_restart.learn(KEY, seen, decision)
    assert after_restart.own == first.own
    empty = Measured(reports=Told(u0=report(decision)), began=1000.0)
    empty.learn(KEY, seen, decision)
    assert empty.own == first.own


def test_a_start_in_the_second_in_which_this_process_began_teaches_as_those_after_it_do():
    seen, decision = turned()
    first = Measured(reports=Told(u0=report(decision)), began=10.0)
    first.learn(KEY, seen, decision)
    after_restart = Measured(reports=Told(u0=report(decision)), began=50.9)  # the pod's moment is told as 50
    after_restart.know(first.own, NOTHING)
    after_restart.learn(KEY, seen, decision)
    assert {one.starts for one in after_restart.own.residuals} == {2}


def test_a_model_that_was_not_planned_for_teaches_nothing():
    seen, decision = turned()
    other = replace(seen, facts=replace(seen.facts, model=lookup("Qwen/Qwen3-0.6B")))
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, other, decision)
    measured.learn(KEY, replace(seen, facts=replace(seen.facts, model=None)), decision)
    assert measured.own == NOTHING


def test_a_set_that_is_left_behind_by_an_edit_teaches_nothing_of_the_new_model():
    seen, first = turned()
    asked = resource("Qwen/Qwen3-32B")
    edited = replace(
        seen, deployment=asked, facts=PlanFacts(model=lookup("Qwen/Qwen3-32B"), engine=engine_facts("vllm"))
    )
    told = report(first, weights_bytes=16 * GIB)
    measured = Measured(reports=Told(u0=told), began=10.0)
    for paused in (False, True):
        spec = asked.spec.model_copy(update={"paused": paused})
        one = replace(edited, deployment=asked.model_copy(update={"spec": spec}))
        decision = decide(one)
        assert decision.rollout is not None
        assert any(target.name in seen.revisions for target in decision.rollout.targets)
        measured.learn(KEY, one, decision)
    assert measured.own == NOTHING
    measured.learn(KEY, seen, first)
    assert measured.own != NOTHING


def test_a_set_of_another_engine_version_than_is_known_teaches_nothing():
    seen, decision = turned()
    newer = replace(seen, facts=replace(seen.facts, engine=engine_facts("vllm", "0.30.0")))
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, newer, decision)
    assert measured.own == NOTHING


def patched(path: str) -> dict[str, Any]:
    return {"podPatches": [{"op": "add", "path": path, "value": "1"}]}


@pytest.mark.parametrize(
    ("spec", "teaches"),
    [
        ({"engine": {"extraArgs": ["--max-num-seqs", "1"]}}, False),
        (patched("/spec/containers/0/args/-"), False),
        (patched("/spec/containers/0/command"), False),
        (patched("/spec/containers/0"), False),
        (patched("/spec/initContainers/0/image"), False),
        (patched("/spec/initContainers"), False),
        (patched("/spec/hostname"), True),
        (patched("/spec/containers/0/env/-"), False),
        (patched("/spec/containers/0/resources"), True),
        (patched("/spec/volumes/-"), True),
        ({"engine": {"env": [{"name": "LEVEL", "value": "1"}]}}, True),
        ({"engine": {"env": [{"name": "VLLM_USE_V2", "value": "1"}]}}, False),
    ],
)
def test_an_engine_that_its_owner_has_changed_teaches_nobody(spec: dict[str, Any], teaches: bool):
    seen, decision = turned()
    changed = replace(seen, deployment=resource("Qwen/Qwen3-8B", **spec))
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, changed, decision)
    assert (measured.own != NOTHING) is teaches


def test_a_start_of_an_owner_s_image_teaches_those_that_run_this_image_and_nobody_else():
    seen, decision = turned(engine={"image": "own.example/vllm:1"})
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, seen, decision)
    assert {one.key.engine.partition("#")[0] for one in measured.own.residuals} == {
        f"vllm-{engine_facts('vllm').version}@vllm:1"
    }
    rests = {
        image: turned(measured.known, {"image": image} if image else None)[1].plan.sets[0].ledger.left.mid
        for image in ("own.example/vllm:1", "own.example/vllm:2", "")
    }
    plain = decision.plan.sets[0].ledger.left.mid
    assert plain - rests["own.example/vllm:1"] == pytest.approx(2 * GIB, rel=0.05)
    assert rests["own.example/vllm:2"] == rests[""] == plain


def test_an_engine_that_an_admin_s_defaults_have_changed_teaches_nobody():
    seen, decision = turned()
    own = {"namespace": "*", "spec": {"engine": {"extraArgs": ["--max-num-seqs", "1"]}}}
    measured = Measured(reports=Told(u0=report(decision)), began=10.0)
    measured.learn(KEY, replace(seen, config=OperatorConfig.model_validate({"defaults": [own]})), decision)
    assert measured.own == NOTHING


@pytest.mark.parametrize("state", ["preflight", "fetching", "starting", "failed"])
def test_a_start_that_is_not_over_teaches_nothing(state: str):
    seen, decision = turned()
    measured = Measured(reports=Told(u0=replace(report(decision), state=state)), began=10.0)
    measured.learn(KEY, seen, decision)
    assert measured.own == NOTHING


def test_a_seed_is_known_but_never_written_as_one_s_own():
    seen, decision = turned()
    source = Measured(reports=Told(u0=report(decision)), began=10.0)
    source.learn(KEY, seen, decision)
    measured = Measured()
    measured.know(NOTHING, learned(source.own.residuals))
    assert measured.known == source.own
    assert measured.own == NOTHING


def test_there_is_news_until_status_has_told_it():
    _seen, decision = turned()
    told = Told()
    measured = Measured(reports=told)
    assert not measured.news(KEY, NEW)
    told.reports = {"u0": report(decision)}
    assert measured.news(KEY, NEW)
    measured.told(KEY, told.of(KEY))
    assert not measured.news(KEY, NEW)
    told.reports = {}
    assert measured.news(KEY, NEW)
    measured.told(KEY, {})
    assert not measured.news(KEY, NEW)


@pytest.mark.parametrize(
    ("began", "measured_before", "news"), [(1000.0, 1, False), (1000.0, 2, True), (10.0, 1, True)]
)
def test_a_process_that_starts_has_no_news_of_what_stands_in_status_already(
    began: float, measured_before: int, news: bool
):
    seen, decision = turned()
    status = LLMDeploymentStatus(accuracy=Accuracy(kv_tokens_measured=measured_before))
    measured = Measured(reports=Told(u0=report(decision)), began=began)
    measured.look(KEY, seen.serving)
    assert measured.news(KEY, status) is news


@pytest.mark.parametrize("stands", [True, False])
def test_a_warning_that_stands_in_status_is_no_news_to_a_process_that_starts(stands: bool):
    seen, decision = turned()
    told = replace(report(decision), warnings=(Warned(word="NoNvlink", message="slow"),))
    beside = SetStatus(name="chat-a", warning="slow" if stands else None)
    status = LLMDeploymentStatus(accuracy=Accuracy(kv_tokens_measured=1), sets=(beside,))
    measured = Measured(reports=Told(u0=told), began=1000.0)
    measured.look(KEY, seen.serving)
    assert measured.news(KEY, status) is not stands
