"""What a judge says of a change: it wants a gain, no harm, and figures of both sides."""

from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import pytest

from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.retune.figures import Figures, figures_of
from plimsoll.control.retune.judging import Answer, comparable, judge
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram

OLD_FIGURES = Figures(
    preempted=0.3,
    finished=2,
    tokens=500,
    errors=0.0,
    ttft_p99=1.0,
    itl_p99=0.04,
    gap=4.0,
    gaps=50_000,
    e2e_p99=10,
    e2e_least=10,
    kept=0.9,
    samples=1000,
    waiting=5,
)
BETTER = replace(OLD_FIGURES, preempted=0.05, gap=1.0)
MANY_LONGER: dict[str, Any] = {"gap": 8.0, "longer": ((0.5, 300.0), (4.0, 60.0), (8.0, 0.0))}
PROMISED = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({}, Answer.GOOD),
        ({"preempted": 0.2}, Answer.BAD),
        ({"preempted": None}, Answer.OPEN),
        ({"itl_p99": 0.045}, Answer.BAD),
        ({"itl_p99": 0.043}, Answer.GOOD),
        (MANY_LONGER, Answer.BAD),
        ({"ttft_p99": 1.9}, Answer.GOOD),
        ({"ttft_p99": 2.1}, Answer.BAD),
        ({"errors": 0.004}, Answer.GOOD),
        ({"errors": 0.006}, Answer.OPEN),  # chance gives as many of 1,000
        ({"errors": 0.01}, Answer.BAD),
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
        ({"kept": None, "ttft_p99": None}, Answer.GOOD),  # of a few first tokens
        ({"e2e_p99": None, "e2e_least": 9.0}, Answer.GOOD),  # of a few answers
        ({"e2e_p99": None, "e2e_least": 10.6}, Answer.BAD),
    ],
)
def test_a_judge_wants_a_gain_and_no_harm(changed, answer):
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, **changed), OLD_FIGURES, PROMISED)
    assert verdict.answer is answer
    assert verdict.why


@pytest.mark.parametrize(("changed", "passing"), [
    ({"itl_p99": 0.045}, True),
    (MANY_LONGER, True),
    ({"itl_p99": 0.045, "errors": 0.01}, False),
    ({"itl_p99": 0.045, "ttft_p99": 2.1}, False),
    ({**MANY_LONGER, "e2e_least": 10.6}, False),
    ({**MANY_LONGER, "kept": 0.85}, False),
    ({**MANY_LONGER, "tokens": 470.0}, False),
])  # fmt: skip
def test_longer_gaps_alone_may_be_those_of_a_slow_minute(changed, passing):
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, **changed), OLD_FIGURES, PROMISED)
    assert (verdict.answer, verdict.passing) == (Answer.BAD, passing)


@pytest.mark.parametrize(("mine", "theirs", "beyond", "answer"), [
    (50_000, 50_000, 1, Answer.GOOD),
    (50_000, 50_000, 9, Answer.GOOD),
    (50_000, 50_000, 10, Answer.BAD),
    (5_000, 95_000, 2, Answer.GOOD),
    (5_000, 95_000, 3, Answer.BAD),  # a canary beside many has hardly ever the three longest of all
    (95_000, 5_000, 100, Answer.GOOD),
    (95_000, 5_000, 130, Answer.BAD),
    (50_000, None, 60, Answer.GOOD),  # a release before did not write down how many there were
])  # fmt: skip
def test_gaps_longer_than_any_before_count_once_they_are_more_than_chance_gives_to_one_side_of_two_alike(
    mine, theirs, beyond, answer
):
    new = replace(BETTER, gap=8.0, gaps=mine, longer=((1.0, 500.0), (4.0, beyond), (8.0, 0.0)))
    verdict = judge(Symptom.PREEMPTION, new, replace(OLD_FIGURES, gaps=theirs), PROMISED)
    assert verdict.answer is answer
    assert (answer is Answer.GOOD) or f"{beyond} gaps are longer" in verdict.why


@pytest.mark.parametrize("seed", range(20))
def test_of_two_replicas_alike_neither_is_found_to_have_the_longer_gaps(seed):
    """The longest gap of all is on the one side as often as on the other."""
    random = Random(seed)
    one, other = (replace(OLD_FIGURES, itl_p99=None, **longest(gaps_of(random))) for _ in range(2))
    for new, old in ((one, other), (other, one)):
        assert judge(Symptom.PREEMPTION, replace(new, preempted=0.0), old, PROMISED).answer is Answer.GOOD


def longest(gaps: Histogram) -> dict[str, Any]:
    """What is said of the longest ones."""
    signals = Signals(at=0, live=1, replicas=(), latencies=Latencies(itl=Spread.of(gaps)))
    figures = figures_of(signals, PROMISED)
    return {"gap": figures.gap, "gaps": figures.gaps, "longer": figures.longer}


def gaps_of(random: Random) -> Histogram:
    """Of two hundred answers, of which a tenth was preempted and stood still for seconds."""
    drawn = [random.expovariate(1 / 0.03) for _ in range(20_000)] + [
        random.expovariate(1 / 6) for _ in range(20)
    ]
    bounds = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, inf)
    return Histogram(bounds, tuple(float(sum(gap <= bound for gap in drawn)) for bound in bounds), sum(drawn))


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


@pytest.mark.parametrize(("before", "after", "answer"), [
    (2.5, 0.4, Answer.GOOD),
    (2.5, 2.4, Answer.BAD),
    (None, 0.4, Answer.OPEN),
])  # fmt: skip
def test_more_at_once_stay_where_fewer_wait_in_the_mean_for_it(before, after, answer):
    capped = replace(OLD_FIGURES, preempted=0.0, waiting=before)
    verdict = judge(Symptom.CAPPED, replace(capped, waiting=after), capped, PROMISED)
    assert verdict.answer is answer
    assert before is None or f"{before} waiting requests a replica to {after}" in verdict.why


def test_fewer_who_wait_are_no_gain_where_others_are_preempted_for_it():
    capped = replace(OLD_FIGURES, preempted=0.0)
    verdict = judge(Symptom.CAPPED, replace(capped, waiting=0.4, preempted=0.02), capped, PROMISED)
    assert (verdict.answer, verdict.why) == (
        Answer.BAD,
        "no gain: 5.0 waiting requests a replica to 0.4",
    )


@pytest.mark.parametrize(("tokens", "answer"), [(960.0, Answer.GOOD), (940.0, Answer.BAD)])
def test_a_replica_with_twice_the_gpus_puts_out_nearly_twice_as_much(tokens: float, answer: Answer):
    larger = replace(BETTER, tokens=tokens)
    assert judge(Symptom.PREEMPTION, larger, OLD_FIGURES, PROMISED, gpus=2.0).answer is answer


def test_a_request_that_waits_now_and_then_is_no_queue():
    """Of one that has one more is asked than it does."""
    now_and_then = replace(BETTER, waiting=0.3, finished=0.5 * (OLD_FIGURES.finished or 0.0), tokens=250.0)
    assert judge(Symptom.PREEMPTION, now_and_then, OLD_FIGURES, PROMISED).given_less
    assert not comparable(now_and_then, OLD_FIGURES)


def test_of_a_queue_that_is_gone_nobody_expects_as_many_tokens():
    slower = replace(BETTER, tokens=300.0, waiting=3.0)
    assert judge(Symptom.PREEMPTION, slower, OLD_FIGURES, PROMISED).answer is Answer.BAD
    over = replace(slower, waiting_now=0.0)
    assert judge(Symptom.PREEMPTION, over, OLD_FIGURES, PROMISED).answer is Answer.GOOD


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


UNSEEN: dict[str, dict[str, Any]] = {
    "gaps between tokens": {"itl_p99": None, "gap": None, "gaps": None},
    "whole answers": {"e2e_p99": None, "e2e_least": None},
    "first tokens": {"ttft_p99": None, "samples": 0.0},
}


@pytest.mark.parametrize("what", UNSEEN)
@pytest.mark.parametrize("symptom", [Symptom.CAPPED, Symptom.PREEMPTION])
def test_times_that_only_the_others_show_are_waited_for_and_those_that_nobody_shows_are_not(what, symptom):
    better = replace(BETTER, preempted=0.0, waiting=1.0)
    verdict = judge(symptom, replace(better, **UNSEEN[what]), OLD_FIGURES, PROMISED)
    assert (verdict.answer, verdict.given_less) == (Answer.OPEN, False)
    assert what in verdict.why
    mute = replace(OLD_FIGURES, **UNSEEN[what])
    assert judge(symptom, replace(better, **UNSEEN[what]), mute, PROMISED).answer is Answer.GOOD
    worse = replace(OLD_FIGURES, **UNSEEN[what])
    assert judge(symptom, worse, OLD_FIGURES, PROMISED).answer is Answer.BAD, (
        "what brings nothing needs no more"
    )
    less = replace(better, finished=0.1, waiting=0.0, **UNSEEN[what])
    assert judge(symptom, less, OLD_FIGURES, PROMISED).given_less


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


def test_what_comes_later_than_promised_is_told_as_shares_of_tokens_and_gaps_and_not_of_requests():
    verdict = judge(Symptom.PREEMPTION, replace(BETTER, kept=0.8), OLD_FIGURES, PROMISED)
    assert verdict.answer is Answer.BAD
    assert verdict.why == (
        "the shares of first tokens and of gaps between tokens that are later than promised come to 20.0% together, 10.0% without "
        "the change"
    )
