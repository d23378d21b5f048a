"""A load that leaps between levels, as batches and shifts make it: neither the edges nor their sizes are taken for chance."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control.demand import Demand, load_of
from plimsoll.control.forecast import EXPECTED_KEPT, RECORD_LEAST, expecting, forecast, leaps, observed, sure
from plimsoll.control.law import LAW
from plimsoll.control.memory import LoadMemory
from plimsoll.control.need import asked
from plimsoll.control.prompts import StepMemory
from plimsoll.control.signals import RATE_S, RECENT_S
from plimsoll.control.situation import Slo
from tests.control.situations import CAPACITY, NOW, serving, signals, situation
from tests.control.test_figures import BEST_RATE, story
from tests.control.test_learning import minute, settled

PLANNED = replace(CAPACITY, max_batched_tokens=2048)
LOW, HIGH = 4.0, 20.0
LEAD_S = 260.0
TWICE = 2.0
"""As much of the room for surprises as there may be."""


def leaping(period):
    return lambda at: HIGH if (at // period) % 2 else LOW


def watched(load, seconds, *, lead=LEAD_S):
    """The memory after each look at a load without any chance, with what it takes for sure one start-up later."""
    memory, seen = LoadMemory(), []
    for at in range(0, seconds, 15):
        steady, recent = (
            sum(load(max(0, second)) for second in range(at - int(span), at)) / span
            for span in (RATE_S, RECENT_S)
        )
        memory = observed(memory, float(at), steady, recent)
        coming = forecast(memory, float(at), lead)
        assert coming is not None
        memory = expecting(memory, at, lead, coming)
        seen.append((at, memory, coming, sure(memory, coming, TWICE)))
    return seen


@pytest.mark.parametrize("period", [60, 180, 600, 1200])
def test_once_the_upper_level_is_known_little_more_is_reckoned_with(period):
    known = [sure for at, _, _, sure in watched(leaping(period), 4 * 3600) if at > 2 * 3600]
    assert max(known) <= 1.05 * RECORD_LEAST * HIGH


def test_but_the_next_leap_is_still_prepared_for_as_far_as_forecasts_were_passed():
    low = [
        (coming, sure)
        for at, memory, coming, sure in watched(leaping(1200), 4 * 3600)
        if at > 2 * 3600 and memory.level < 1.1 * LOW
    ]
    assert low
    assert all(sure > 2 * coming for coming, sure in low)


def test_growth_beyond_all_that_was_seen_keeps_its_room():
    growing = watched(lambda at: LOW * (1 + at / 1800), 3 * 3600)
    for _, memory, coming, kept in growing[240:]:
        assert kept >= coming >= memory.most


@pytest.mark.parametrize(("recent", "is_one"), [(8.0, True), (0.5, True), (5.0, False), (3.2, False)])
def test_a_leap_is_what_chance_does_not_explain_in_either_direction(recent, is_one):
    assert leaps(LoadMemory(), 4.0, recent) is is_one
    assert leaps(LoadMemory(burstiness=100.0), 4.0, recent) is False
    assert leaps(LoadMemory(), None, recent) is leaps(LoadMemory(), 4.0, None) is False


@pytest.mark.parametrize(("recently", "learned"), [(15.0, True), (60.0, False), (0.0, False)])
def test_tokens_at_a_leap_say_nothing_of_how_unevenly_they_come_at_other_times(recently, learned):
    said = signals(
        2, arrived=60.0, recently=recently, prompt_tokens=60_000.0, recent_prompt_tokens=recently * 1000
    )
    before = StepMemory(lumps=5000.0)
    after = minute(settled(steps=before), said).steps
    assert (after.lumps != before.lumps) is learned


@pytest.mark.parametrize(
    ("rush", "lumps", "bounded"),
    [(6.0, 2e6, True), (6.0, 500.0, False), (400.0, 2e6, False)],
    ids=[
        "where rushes have taught that replicas must be half empty",
        "where prompts come evenly",
        "where the highest half minute was far above the rate now",
    ],
)
def test_in_a_rush_no_more_is_asked_for_than_computes_the_highest_half_minute_in_time(rush, lumps, bounded):
    promised = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)
    role = situation(signals(2), serving(capacity=PLANNED)).roles[0]
    seen = LoadMemory(surprise=1.0, record=1.0, rush=rush, at=NOW, level=8.0, most=8.0)
    memory = replace(settled(steps=StepMemory(lumps=lumps)), load=seen)
    load = load_of(role, memory, now=NOW, lead_s=100, law=LAW, slo=promised)
    need = asked(role, memory, load, slo=promised, now=NOW, law=LAW).need
    holds, rate = load.holds, load.demand.arrivals
    assert rate is not None
    assert holds.prompt is not None
    assert holds.even is not None
    assert need.forecast is not None
    assert need.prompts == pytest.approx(rush / holds.even if bounded else rate / holds.prompt)
    # What is foreseen may be more than any half minute of hours.
    assert need.forecast >= min(8.0 / holds.prompt, max(8.0, rush) / holds.even)
    assert (need.forecast < 8.0 / holds.prompt) is bounded


@given(
    rate=st.floats(0.01, 1000),
    burstiness=st.floats(1, 200),
    rush=st.floats(0, 2000),
    sigmas=st.floats(0.5, 4),
)
def test_a_burst_is_no_larger_than_hours_have_shown_and_never_smaller_than_chance_makes_it(
    rate, burstiness, rush, sigmas
):
    def crest(burstiness, rush):
        demand = Demand(
            arrivals=rate, running=0.0, inflight=0.0, waiting=0.0, burstiness=burstiness, rush=rush
        )
        return demand.crest(rate, sigmas)

    independent, unbounded = crest(1.0, 0.0), crest(burstiness, math.inf)
    assert independent <= crest(burstiness, rush) <= unbounded * (1 + 1e-9)
    assert crest(burstiness, rush) <= max(independent, rush) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_a_load_that_leaps_faster_than_replicas_start_is_given_what_its_upper_level_needs(seed):
    told = story(leaping(180), 5, 4 * 3600, seed=seed)
    assert max(count for _, _, count in told.actions) <= math.ceil(HIGH / BEST_RATE) + 2
    assert len(told.actions) <= 8
    assert told.cluster.attained() >= 0.999


@pytest.mark.parametrize("lead_s", [60.0, 900.0, 2300.0, 2460.0, 3780.0, 9000.0])
def test_forecasts_are_judged_however_long_a_start_takes_and_no_more_of_them_are_kept(lead_s: float) -> None:
    """A node that takes an hour to make is looked ahead for by more than an hour."""
    memory, most = LoadMemory(), 0
    for look in range(int(6 * lead_s / 15)):
        at = 15.0 * look
        memory = observed(memory, at, 15.0 if at % 8000 < 4000 else 5.0, None)
        coming = forecast(memory, at, lead_s)
        assert coming is not None
        memory = expecting(memory, at, lead_s, coming)
        most = max(most, len(memory.expected))
    assert memory.surprise is not None
    assert most <= EXPECTED_KEPT
