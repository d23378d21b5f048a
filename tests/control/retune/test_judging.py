"""What a judge says of a change: it wants a gain, no harm, and figures of both sides."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.retune.figures import Figures
from plimsoll.control.retune.judging import Answer, comparable, judge
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.control.situation import Slo

OLD_FIGURES = Figures(
    preempted=0.3,
    finished=2,
    tokens=500,
    errors=0.0,
    ttft_p99=1.0,
    itl_p99=0.04,
    gap=4.0,
    e2e_p99=10,
    e2e_least=10,
    kept=0.9,
    samples=1000,
    waiting=5,
)
BETTER = replace(OLD_FIGURES, preempted=0.05, gap=1.0)
PROMISED = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({}, Answer.GOOD),
        ({"preempted": 0.2}, Answer.BAD),
        ({"preempted": None}, Answer.OPEN),
        ({"itl_p99": 0.045}, Answer.BAD),
        ({"itl_p99": 0.043}, Answer.GOOD),
        ({"gap": 8.0}, Answer.BAD),
        ({"ttft_p99": 1.9}, Answer.GOOD),
        ({"ttft_p99": 2.1}, Answer.BAD),
        ({"errors": 0.004}, Answer.GOOD),
        ({"errors": 0.006}, Answer.BAD),
        ({"tokens": 480.0}, Answer.GOOD),
        ({"tokens": 470.0}, Answer.BAD),
        ({"tokens": 300.0, "waiting": 0.0}, Answer.GOOD),
        ({"e2e_p99": 10.5, "e2e_least": 10.5}, Answer.GOOD),
        ({"e2e_p99": 10.6, "e2e_least": 10.6}, Answer.BAD),
        ({"e2e_p99": 14.0, "e2e_least": 10.0}, Answer.GOOD),  # of a few requests
        ({"kept": 0.95}, Answer.GOOD),
        ({"kept": 0.87}, Answer.GOOD),  # chance makes as much of 1,000
        ({"kept": 0.85}, Answer.BAD),
        ({"kept": 0.85, "samples": 50}, Answer.GOOD),
        (
            {"kept": None, "e2e_least": None, "ttft_p99": None},
            Answer.GOOD,
        ),  # nothing is promised that is not told
    ],
)
def test_a_judge_wants_a_gain_and_no_harm(changed, answer):
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, **changed), OLD_FIGURES, PROMISED)
    assert verdict.answer is answer
    assert verdict.why


@pytest.mark.parametrize(("changed", "passing"), [
    ({"itl_p99": 0.045}, True),
    ({"gap": 8.0}, True),
    ({"itl_p99": 0.045, "errors": 0.006}, False),
    ({"itl_p99": 0.045, "ttft_p99": 2.1}, False),
    ({"gap": 8.0, "e2e_least": 10.6}, False),
    ({"gap": 8.0, "kept": 0.85}, False),
    ({"gap": 8.0, "tokens": 470.0}, False),
])  # fmt: skip
def test_longer_gaps_alone_may_be_those_of_a_slow_minute(changed, passing):
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, **changed), OLD_FIGURES, PROMISED)
    assert (verdict.answer, verdict.passing) == (Answer.BAD, passing)


def test_a_replica_that_is_given_less_proves_nothing_by_preempting_less():
    assert OLD_FIGURES.finished is not None
    less = replace(BETTER, finished=0.5 * OLD_FIGURES.finished, waiting=0.0)
    assert judge(Symptom.PREEMPTION, less, OLD_FIGURES, PROMISED).answer is Answer.OPEN
    queued = replace(less, waiting=3.0, tokens=OLD_FIGURES.tokens)
    assert judge(Symptom.PREEMPTION, queued, OLD_FIGURES, PROMISED).answer is Answer.GOOD


def test_prompts_cut_less_into_a_replica_that_is_given_less_and_that_proves_nothing():
    quicker = replace(OLD_FIGURES, itl_p99=0.02)
    assert judge(Symptom.CUT_IN, quicker, OLD_FIGURES, PROMISED).answer is Answer.GOOD
    less = replace(quicker, finished=1.0, waiting=0.0)
    verdict = judge(Symptom.CUT_IN, less, OLD_FIGURES, PROMISED)
    assert (verdict.answer, verdict.given_less) == (Answer.OPEN, True)


@pytest.mark.parametrize(("finished", "waiting", "waited", "same"), [
    (1.7, 0.0, 0.0, True),
    (1.5, 0.0, 0.0, False),  # fewer ask
    (1.5, 3.0, 0.0, True),  # as many ask, and fewer are answered
    (2.3, 3.0, 0.0, True),
    (2.5, 3.0, 0.0, False),
    (2.5, 3.0, 3.0, True),  # more ask than are answered, as then
    (2.5, 0.0, 3.0, False),
    (None, 3.0, 3.0, False),
])  # fmt: skip
def test_a_load_is_another_where_more_or_fewer_ask_and_not_where_fewer_or_more_are_answered(
    finished, waiting, waited, same
):
    before = replace(OLD_FIGURES, waiting=waited)
    assert comparable(replace(before, finished=finished, waiting=waiting), before) is same


@pytest.mark.parametrize(("after", "finished", "answer"), [
    (1.8, 2.0, Answer.GOOD),
    (2.9, 2.0, Answer.BAD),
    (1.8, 1.0, Answer.OPEN),  # who is given less answers sooner
    (None, 2.0, Answer.OPEN),
])  # fmt: skip
def test_larger_steps_stay_where_first_tokens_come_sooner_for_it(after, finished, answer):
    late = replace(OLD_FIGURES, ttft_p99=3.0)
    larger = replace(late, ttft_p99=after, finished=finished, waiting=0.0)
    assert judge(Symptom.LATE_FIRST, larger, late, PROMISED).answer is answer


@pytest.mark.parametrize("field", ["errors", "preempted"])
@pytest.mark.parametrize("symptom", [Symptom.CAPPED, Symptom.CUT_IN, Symptom.PREEMPTION])
def test_what_only_the_others_say_is_unknown_of_the_change_and_not_zero(field, symptom):
    mute: dict[str, Any] = {field: None}
    old = replace(OLD_FIGURES, preempted=0.0)
    better = replace(old, itl_p99=0.02, waiting=1.0, **mute)
    assert judge(symptom, better, old, PROMISED).answer is Answer.OPEN
    if symptom is not Symptom.PREEMPTION:
        both = replace(old, **mute)
        assert judge(symptom, better, both, PROMISED).answer is Answer.GOOD, "an engine may not count them"


@pytest.mark.parametrize(("before", "after", "answer"), [
    (1.9, 2.1, Answer.BAD),  # however little it was before
    (None, 2.1, Answer.BAD),
    (3.0, 3.2, Answer.GOOD),  # nobody was promised less than was had
    (3.0, 3.4, Answer.BAD),
])  # fmt: skip
def test_first_tokens_that_came_in_time_come_in_time_and_others_no_later_than_before(before, after, answer):
    old = replace(OLD_FIGURES, ttft_p99=before)
    assert judge(Symptom.PREEMPTION, replace(BETTER, ttft_p99=after), old, PROMISED).answer is answer


def test_without_a_promise_the_first_token_may_come_late_and_the_whole_answer_not():
    later = replace(BETTER, ttft_p99=9.0)
    assert judge(Symptom.PREEMPTION, later, OLD_FIGURES, Slo()).answer is Answer.GOOD
    slower = replace(BETTER, e2e_p99=12.0, e2e_least=12.0)
    assert judge(Symptom.PREEMPTION, slower, OLD_FIGURES, Slo()).answer is Answer.BAD
