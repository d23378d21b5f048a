"""What is counted of a phase is what the counters did in it, whatever the minutes before were like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.retune.figures import NOTHING, Figures, figures_of
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample


def sample(pod: str, at: float, finished: float, preempted: float = 0.0) -> PodSample:
    return PodSample(
        pod=pod, at=at, finished=finished, preemptions=preempted, errors=0.0, generation_tokens=10 * finished
    )


def seen(window: Window, at: float, *pods: str) -> Signals:
    return signals_of(window, now=at, live=pods)


def test_what_was_before_the_first_look_of_a_phase_counts_for_nothing():
    window = Window().add(0, [sample("a", 0, 0)]).add(110, [sample("a", 110, 1000, 900)])
    begun = NOTHING.plus(window, seen(window, 110, "a"))
    assert (begun.finished, begun.preempted, begun.seconds) == (0, 0, 0)
    window = window.add(120, [sample("a", 120, 1030, 903)])
    counted = begun.plus(window, seen(window, 120, "a"))
    assert (counted.finished, counted.preempted, counted.tokens, counted.seconds) == (30, 3, 300, 10)


def test_a_look_without_a_new_sample_counts_nothing_twice():
    window = Window().add(10, [sample("a", 12, 10)])
    tally = NOTHING.plus(window, seen(window, 12, "a"))
    window = window.add(20, [sample("a", 22, 20)])
    for _ in range(3):
        tally = tally.plus(window, seen(window, 22, "a"))
    assert (tally.finished, tally.seconds) == (10, 10)


def test_a_replica_counts_from_its_first_sample_on_and_one_that_left_keeps_what_it_counted():
    window = Window().add(10, [sample("a", 10, 5)])
    tally = NOTHING.plus(window, seen(window, 10, "a"))
    window = window.add(20, [sample("a", 20, 9), sample("b", 20, 100)])
    tally = tally.plus(window, seen(window, 20, "a", "b"))
    assert tally.finished == 4
    window = window.add(30, [sample("b", 30, 107)])
    tally = tally.plus(window, seen(window, 30, "b"))
    assert (tally.finished, tally.seconds) == (11, 20)


def test_replicas_that_are_scraped_at_other_moments_are_each_counted_once():
    tally, window = NOTHING, Window()
    for tick in range(1, 11):
        at = 15.0 * tick
        window = window.add(at, [sample("a", at - 14, tick), sample("b", at - 1, 2 * tick)])
        tally = tally.plus(window, seen(window, at, "a", "b"))
    assert tally.finished == 9 + 18
    assert tally.seconds == pytest.approx(2 * 135)


def test_an_engine_that_starts_anew_is_counted_on():
    window = Window().add(10, [sample("a", 10, 500)])
    tally = NOTHING.plus(window, seen(window, 10, "a"))
    window = window.add(20, [sample("a", 20, 3)])
    assert tally.plus(window, seen(window, 20, "a")).finished == 3


@pytest.mark.parametrize(("since", "waits"), [
    (0, 4.4375),  # ten at 11 looks of 16 in five minutes, and two
    (250, 2.875),
    (350, 1.0),
    (500, 1.0),  # nothing was seen since: what the last look says
])  # fmt: skip
def test_how_many_wait_is_the_mean_of_the_looks_at_a_phase_and_not_what_one_of_them_finds(since, waits):
    window = Window()
    for at in range(0, 401, 20):
        queues = {"a": 10.0 if at <= 300 else 0.0, "b": 2.0, "c": None}
        window = window.add(at, [replace(sample(pod, at, at), waiting=many) for pod, many in queues.items()])
    figures = figures_of(seen(window, 400, "a", "b", "c"), Slo(), window, since=since)
    assert figures.waiting == pytest.approx(waits)


KINDS = {"preemptions": "preempted", "errors": "errors", "generation_tokens": "tokens"}


def counted(samples: list[PodSample]) -> Figures:
    """What is known after a look at each of them."""
    tally, window = NOTHING, Window()
    for one in samples:
        window = window.add(one.at, [one])
        tally = tally.plus(window, seen(window, one.at, "a"))
    return Figures(preempted=0.5, errors=0.5, tokens=9.0).over(tally)


@pytest.mark.parametrize("field", KINDS)
def test_a_count_that_vanishes_is_unknown_of_the_whole_phase_and_not_zero(field):
    mute: dict[str, Any] = {field: None}
    rest = [replace(sample("a", at, at), **mute) for at in range(20, 500, 20)]
    figures = counted([sample("a", 10, 10), *rest])
    assert {name for name in KINDS.values() if getattr(figures, name) is None} == {KINDS[field]}
    assert figures.finished == 1


@pytest.mark.parametrize("field", ["finished", *KINDS])
def test_a_question_that_had_no_answer_once_takes_nothing_from_what_is_known_of_the_phase(field):
    samples = [sample("a", at, at, at / 2) for at in range(10, 100, 10)]
    mute: dict[str, Any] = {field: None}
    holed = [replace(one, **mute) if one.at in (30, 60, 70) else one for one in samples]
    assert counted(holed) == counted(samples)
    assert counted(samples).preempted == 0.5


def test_silence_is_no_time_in_which_nothing_was_done():
    window = Window().add(10, [sample("a", 10, 5)])
    tally = NOTHING.plus(window, seen(window, 10, "a"))
    assert tally.plus(window, seen(window, 90, "a")) == tally
    assert tally.plus(window, None) == tally


def shaped(*counts: float) -> Spread:
    """Of values up to 1, 2, 4 and beyond."""
    found = Spread.of(Histogram((1.0, 2.0, 4.0, float("inf")), counts))
    assert found is not None
    return found


@pytest.mark.parametrize(("slo", "kept"), [
    (Slo(ttft_p99_s=2.0), 0.9),
    (Slo(ttft_p99_s=1.5), 0.9),  # of those between 1 and 2 nobody knows that they are late
    (Slo(ttft_p99_s=2.0, itl_p99_s=1.0), 0.7),  # who waits for one may be another than who waits for the other
    (Slo(ttft_p99_s=9.0), 1.0),
    (Slo(), None),
])  # fmt: skip
def test_the_share_that_meets_all_that_is_promised_counts_whoever_is_surely_late_for_any_of_it(slo, kept):
    latencies = Latencies(ttft=shaped(50, 90, 100, 100), itl=shaped(80, 100, 100, 100))
    found = figures_of(Signals(at=0, live=1, replicas=(), latencies=latencies), slo).kept
    assert found == (None if kept is None else pytest.approx(kept))


def test_of_a_few_requests_chance_may_have_made_the_longest_answers_and_of_many_it_has_not():
    few, many = shaped(0, 96, 100, 100), shaped(0, 96_000, 100_000, 100_000)
    least = [
        figures_of(Signals(at=0, live=1, replicas=(), latencies=Latencies(e2e=one)), Slo()).e2e_least
        for one in (few, many)
    ]
    assert few.p99 == many.p99 > 3.4
    assert least[0] == pytest.approx(2.0, abs=0.1)
    assert least[1] == pytest.approx(few.p99, abs=0.1)


@pytest.mark.parametrize(("samples", "late", "beyond"), [
    (22, 2, False),
    (22, 3, True),
    (5, 1, False),
    (5, 2, True),
    (1, 1, False),
    (0.5, 0.5, False),
])  # fmt: skip
def test_of_a_few_answers_only_as_many_late_ones_count_as_chance_hardly_ever_makes(samples, late, beyond):
    few = shaped(0, samples - late, samples, samples)
    figures = figures_of(Signals(at=0, live=1, replicas=(), latencies=Latencies(e2e=few)), Slo())
    assert figures.e2e_p99 is None
    assert figures.e2e_least is not None
    assert (figures.e2e_least > 2.0) is beyond


def test_how_many_requests_fail_is_counted_over_the_minutes_that_latencies_are_of():
    """Failures are rare: of the requests of two minutes fewer are seen, and less is known."""
    window = Window()
    for at in range(0, 401, 20):
        window = window.add(at, [replace(sample("a", at, 2 * at), errors=1.0 if at >= 150 else 0.0)])
    figures = figures_of(seen(window, 400, "a"), Slo(), window)
    assert figures.failing is not None
    assert (figures.failing.bad, figures.failing.of) == pytest.approx((1, 601))
    assert figures.errors == pytest.approx(1 / 601)
