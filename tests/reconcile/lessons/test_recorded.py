"""A ramp that was handed in: judged once, taken where it speaks of what was planned, refused with a reason else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll import names
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.status import RampStatus
from plimsoll.facts.learned import NOTHING, Learned, export_learned, import_learned, learned
from plimsoll.facts.models import lookup
from plimsoll.facts.ramp_record import LEAST, MOST, RampPoint, RampRecord, write_record
from plimsoll.facts.serving import PodSeen, SetSeen, Stage
from plimsoll.planning.speed.believing import belief
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.lessons.measured import Measured
from plimsoll.reconcile.lessons.recorded import JudgedRamp, Ramps, judge_ramp, ramp_told, ramp_untold
from plimsoll.reconcile.seen import Seen
from plimsoll.status.told import ramp_news
from tests.reconcile.lessons.test_measured import turned

SLOWER = 1.5
SERVES = turned()


def record(seen: Seen, decision: Decision, **changed: Any) -> RampRecord:
    """A ramp whose every answer took longer than the model says."""
    chosen = decision.plan.sets[0]
    assert chosen.performance is not None
    point = RampPoint(
        load=1.0,
        in_flight=chosen.load.concurrency,
        requests=50,
        input_tokens=chosen.load.input_tokens,
        output_tokens=chosen.load.output_tokens,
        ttft_ms=SLOWER * chosen.performance.ttft_ms.mid,
        tpot_ms=SLOWER * chosen.performance.tpot_ms.mid,
        itl_p99_ms=None,
        tokens_per_second=100.0,
    )
    made = RampRecord(
        set=seen.serving.sets[0].name,
        replicas=1,
        at=50,
        closed_loop=True,
        prefix_tokens=0,
        knee=None,
        points=(point,),
    )
    return replace(made, **changed)


def handed_in(seen: Seen, text: str, told: RampStatus | None = None) -> Seen:
    asked = seen.deployment
    metadata = asked.metadata.model_copy(update={"annotations": {names.ANNOTATION_RAMP: text}})
    status = asked.status.model_copy(update={"ramp": told})
    return replace(seen, deployment=asked.model_copy(update={"metadata": metadata, "status": status}))


def with_spec(deployment: LLMDeployment, **spec: Any) -> LLMDeployment:
    data = {**deployment.spec.to_dict(), **spec}
    return deployment.model_copy(update={"spec": type(deployment.spec).model_validate(data)})


def taken(seen: Seen, decision: Decision, own: Learned = NOTHING, **changed: Any) -> JudgedRamp:
    found = judge_ramp(handed_in(seen, write_record(record(seen, decision, **changed))), decision, own)
    assert found is not None
    return found


def test_what_was_measured_is_in_the_next_plan_and_leaves_the_pinned_one_as_it_is():
    seen, decision = turned()
    found = taken(seen, decision)
    assert found.speed is not None, found.message
    assert found.speed.tpot == pytest.approx(SLOWER, rel=0.01)
    assert "further ones 1.50 times as long as the model says (tp1 on " in found.message
    measured = Measured()
    assert not measured.take(found.speed), "nobody keeps it yet"
    assert measured.changed.is_set()

    taught = replace(seen, learned=measured.known)
    same = with_spec(seen.deployment, topology={"tensor": 1})
    before, after = (one.plan(same).sets[0].performance for one in (seen, taught))
    assert before is not None
    assert after is not None
    assert before.learned is None
    assert after.learned is not None
    assert after.tpot_ms.mid > 1.2 * before.tpot_ms.mid
    stands = decide(taught)
    assert stands.plan.pinning is not None
    assert stands.plan.pinning.kept
    assert [one.digest for one in stands.plan.sets] == [one.digest for one in decision.plan.sets]
    assert stands.revisions == decision.revisions


def test_a_record_is_judged_once_whatever_came_of_it():
    seen, decision = turned()
    for text in (write_record(record(seen, decision)), "no record at all"):
        first = handed_in(seen, text)
        assert ramp_untold(first.deployment)
        told = ramp_told(judge_ramp(first, decision, NOTHING), now=100.0)
        assert told is not None
        again = handed_in(seen, text, told)
        assert not ramp_untold(again.deployment)
        assert judge_ramp(again, decision, NOTHING) is None
        assert ramp_untold(handed_in(seen, f"{text} ", told).deployment), "another one is judged again"


def test_the_same_record_once_more_teaches_nothing_new():
    seen, decision = turned()
    speed = taken(seen, decision).speed
    assert speed is not None
    known = learned([], speeds=[speed])
    measured = Measured(own=known, kept=known)
    assert measured.take(speed)
    assert not measured.changed.is_set()
    assert taken(seen, decision, measured.own).speed == speed, "a turn that could not tell it is made again"


def test_what_serves_by_the_time_that_a_lesson_is_kept_changes_nothing_of_it():
    seen, decision = turned()
    measured, ramps = Measured(), Ramps()
    first = handed_in(seen, write_record(record(seen, decision)))
    assert ramps.look("a", first, decision, measured) is None
    assert ramps.waits("a"), "nobody keeps it yet"
    gone = replace(first, serving=replace(first.serving, sets=()))
    assert ramps.look("a", gone, decision, measured) is None
    measured.kept = measured.own
    found = ramps.look("a", gone, decision, measured)
    assert found is not None
    assert found.speed is not None
    told = handed_in(gone, write_record(record(seen, decision)), ramp_told(found, now=100.0))
    assert ramps.look("a", told, decision, measured) is None
    assert not ramps.waits("a")


def test_a_lesson_is_told_too_where_a_newer_one_took_its_place_before_it_was_kept():
    seen, decision = turned()
    measured, ramps = Measured(), Ramps()
    older = handed_in(seen, write_record(record(seen, decision, at=50)))
    assert ramps.look("a", older, decision, measured) is None
    newer = taken(seen, decision, at=60).speed
    assert newer is not None
    measured.take(newer)
    assert ramps.look("a", older, decision, measured) is None
    measured.kept = measured.own
    assert ramps.look("a", older, decision, measured) is not None


def test_nothing_handed_in_is_nothing_to_judge():
    seen, decision = turned()
    assert judge_ramp(seen, decision, NOTHING) is None
    assert not ramp_untold(handed_in(seen, "").deployment)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"set": "chat-00000000"}, "'chat-00000000', which does not serve"),
        ({"replicas": 2}, "of 2 replicas, and 1 serve"),
        ({"at": 10_000}, "still to come"),
    ],
)
def test_a_record_that_does_not_fit_what_serves_is_refused(changed: dict[str, Any], said: str):
    found = taken(*turned(), **changed)
    assert found.speed is None
    assert found.message.startswith("the ramp was refused: ")
    assert said in found.message


def test_a_record_older_than_what_is_known_is_refused():
    seen, decision = turned()
    newer = taken(seen, decision, at=80).speed
    assert newer is not None
    found = taken(seen, decision, learned([], speeds=[newer]), at=79)
    assert found.speed is None
    assert "a newer ramp of the same model and layout is known" in found.message


def test_a_record_of_loads_beyond_the_cache_is_refused():
    seen, decision = turned()
    point = replace(record(seen, decision).points[0], in_flight=1e6)
    assert "more than the plan's cache and steps carry" in taken(seen, decision, points=(point,)).message


def test_while_two_sets_serve_nobody_knows_which_answered():
    seen, decision = turned()
    pod = PodSeen(name="q", uid="u9", stage=Stage.READY, since=50.0)
    other = SetSeen(name="chat-99999999", replicas=1, pods=(pod,))
    both = replace(seen, serving=replace(seen.serving, sets=(*seen.serving.sets, other)))
    assert "2 sets serve" in taken(both, decision).message


def test_what_the_owner_runs_differently_is_nobody_elses_lesson():
    seen, decision = turned()
    own = replace(seen, deployment=with_spec(seen.deployment, engine={"extraArgs": ["--max-num-seqs", "1"]}))
    assert "its own arguments or patches" in taken(own, decision).message


def test_a_ramp_of_an_owner_s_image_corrects_plans_with_that_image_alone():
    seen, decision = turned()
    own = replace(seen, deployment=with_spec(seen.deployment, engine={"image": "own.example/vllm:1"}))
    speed = taken(own, decision).speed
    assert speed is not None
    assert "@vllm:1#" in speed.key.engine
    known = Learned(speeds=(speed,))
    assert belief(known, speed.key) is not None
    assert belief(known, speed.key.of_release) is None


def test_an_owner_s_image_is_believed_to_be_half_as_fast_or_slow_as_the_release_until_it_is_measured():
    seen, decision = turned()
    released = taken(seen, decision).speed
    assert released is not None
    own = replace(released.key, engine=f"{released.key.engine}@vllm:1#0")
    found = belief(Learned(speeds=(released,)), own)
    assert found is not None
    assert not found.own
    newer = replace(released, key=replace(released.key, flags="tp8"), at=released.at + 1)
    measured = replace(released, key=replace(own, flags="tp4"))
    found = belief(Learned(speeds=tuple(sorted([newer, measured]))), own)
    assert found is not None
    assert found.speed == measured


def test_what_is_paused_may_serve_something_else_than_is_planned():
    seen, _ = turned()
    paused = replace(seen, deployment=with_spec(seen.deployment, paused=True))
    assert "is paused" in taken(paused, decide(paused)).message


def test_a_ramp_that_is_older_than_all_that_there_is_room_for_is_refused():
    seen, decision = turned()
    speed = taken(seen, decision).speed
    assert speed is not None
    others = (replace(speed, at=99, key=replace(speed.key, model=str(n))) for n in range(2000))
    full = learned([], speeds=others)
    assert "as many newer ramps are known as are kept" in taken(seen, decision, full).message


FIGURES = st.floats(LEAST, MOST)
TOKENS = st.floats(0, 1) | st.floats(1, 4096)


@given(
    st.builds(
        RampPoint,
        load=FIGURES,
        in_flight=st.floats(LEAST, 64),
        requests=st.integers(10, 99),
        input_tokens=TOKENS,
        output_tokens=TOKENS,
        ttft_ms=FIGURES,
        tpot_ms=FIGURES,
        itl_p99_ms=st.none(),
        tokens_per_second=FIGURES,
    )
)
def test_whatever_figures_a_record_has_what_it_teaches_can_be_read_again(point: RampPoint):
    """What one deployment hands in is kept beside what all others have taught."""
    found = taken(*SERVES, points=(point,)).speed
    known = NOTHING if found is None else learned([], speeds=[found])
    assert import_learned(export_learned(known)) == known


def test_another_model_than_was_planned_for_is_refused():
    seen, decision = turned()
    other = replace(seen, facts=replace(seen.facts, model=lookup("Qwen/Qwen3-0.6B")))
    assert "another model is known now" in taken(other, decision).message


def test_text_that_is_no_record_is_refused_with_what_would_be_right():
    seen, decision = turned()
    found = judge_ramp(handed_in(seen, json.dumps({"schema": 1})), decision, NOTHING)
    assert found is not None
    assert found.speed is None
    assert "1 to 64 points" in found.message


def test_whoever_handed_it_in_is_told_once_by_an_event():
    good, bad = (
        RampStatus(record="a", taken=True, message="taken"),
        RampStatus(record="b", taken=False, message="refused"),
    )
    (one,) = ramp_news(None, good)
    assert (one.type, one.reason, one.message) == ("Normal", "RampTaken", "taken")
    (one,) = ramp_news(good, bad)
    assert (one.type, one.reason) == ("Warning", "RampRefused")
    assert ramp_news(bad, bad) == ramp_news(bad, None) == ()
