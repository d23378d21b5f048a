"""Requests that come by chance wait for the prompts before them and for a place: formulas against the queues themselves."""

from __future__ import annotations

from heapq import heapreplace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.lengths import Length
from plimsoll.planning.speed.open_loop import (
    LATE,
    Pace,
    Traffic,
    _erlang_c,
    _Prompts,
    at,
    share_of_all,
    steady,
)

lengths = st.builds(Length, st.floats(1, 20_000), st.floats(0, 1.2))


def pace(**changed) -> Pace:
    usual = {
        "decode": lambda running: 0.02 + 0.0002 * running,
        "token": 4e-5,
        "seen": 1e-9,
        "launch": 0.002,
        "outside": lambda tokens, beside: 0.01 + 1e-6 * tokens + 1e-4 * beside,
        "step_tokens": 2048.0,
        "places": 128.0,
    }
    return Pace(**{**usual, **changed})


PROMPTS, ANSWERS = Length(1000, 0.8), Length(200, 0.6)


def traffic(prompt: Length = PROMPTS, answer: Length = ANSWERS, first_s=2.0) -> Traffic:
    return Traffic(prompts=prompt.evenly(32), answers=answer.evenly(32), first_s=first_s)


def test_by_little_s_law_those_in_flight_are_those_that_come_in_a_lifetime():
    load, asked, replica = at(traffic(), pace(), 40.0), traffic(), pace()
    # A lifetime: as many steps as the answer has tokens, and the prompts that come beside it meanwhile.
    step = replica.decode(40.0)
    prompts = (
        load.per_second * sum(one * (replica.token + replica.seen * one / 2) for one in asked.prompts) / 32
    )
    launches = load.per_second * replica.launch
    assert 40.0 / load.per_second == pytest.approx(asked.answer * step / (1 - prompts - launches), rel=0.02)


@pytest.mark.parametrize("busy", [0.5, 0.7, 0.85])
@pytest.mark.parametrize("sigma", [0.0, 0.5, 0.8])
def test_the_wait_for_prompts_is_that_of_a_queue_with_one_server(busy: float, sigma: float):
    chance, took = Random(5), Length(1.0, sigma).evenly(400)
    mean = sum(took) / len(took)
    formula = _Prompts.of(list(took), busy / mean)
    waits, wait = [], 0.0
    for _ in range(200_000):
        waits.append(wait)
        wait = max(0.0, wait + chance.choice(took) - chance.expovariate(busy / mean))
    for beyond in (2 * mean, 5 * mean, 10 * mean):
        seen = sum(one > beyond for one in waits) / len(waits)
        assert formula.longer_than(beyond) == pytest.approx(seen, abs=0.03, rel=0.25)


@pytest.mark.parametrize(("places", "load"), [(1, 0.5), (8, 6.0), (64, 55.0)])
def test_the_share_that_finds_no_place_is_that_of_a_queue_with_as_many_servers(places: int, load: float):
    chance, free, now, waited = Random(9), [0.0] * places, 0.0, 0
    for _ in range(100_000):
        now += chance.expovariate(load)
        waited += free[0] > now
        heapreplace(free, max(free[0], now) + chance.expovariate(1.0))
    assert _erlang_c(places, load) == pytest.approx(waited / 100_000, abs=0.03)


def test_all_places_taken_is_found_by_all():
    assert _erlang_c(4, 4.0) == 1.0


@given(prompt=lengths, answer=lengths, first=st.one_of(st.none(), st.floats(0.01, 60)))
def test_more_load_makes_more_late(prompt: Length, answer: Length, first: float | None):
    asked = traffic(prompt, answer, first)
    lates = [at(asked, pace(), in_flight).late for in_flight in (0.0, 1.0, 4.0, 16.0, 64.0)]
    assert all(less <= more + 1e-9 for less, more in pairwise(lates))
    assert all(0 <= late <= 1 for late in lates)


@given(
    prompt=lengths, answer=lengths, first=st.one_of(st.none(), st.floats(0.01, 60)), most=st.floats(1, 200)
)
def test_a_load_that_goes_on_is_within_its_bounds_and_says_whether_it_is_in_time(
    prompt: Length, answer: Length, first: float | None, most: float
):
    asked = traffic(prompt, answer, first)
    found = steady(asked, pace(), most, worth=0.25, else_at=0.5)
    assert found.per_second > 0
    assert found.in_flight <= min(most, 128.0) + 1e-9
    assert not found.kept or found.late <= LATE


@given(prompt=lengths, answer=lengths, seconds=st.tuples(st.floats(0.05, 30), st.floats(0.05, 30)))
def test_whoever_promises_less_carries_no_less(prompt: Length, answer: Length, seconds: tuple[float, float]):
    tight, loose = (steady(traffic(prompt, answer, one), pace(), 100.0) for one in sorted(seconds))
    assert not tight.kept or tight.per_second <= loose.per_second * (1 + 1e-6)


def test_lengths_that_differ_more_make_a_replica_carry_fewer():
    even, tail, long = (
        steady(traffic(Length(2000, sigma)), pace(), 100.0).per_second for sigma in (0.0, 0.5, 0.8)
    )
    assert even > tail > long


def test_what_is_not_worth_keeping_is_planned_at_a_share_and_is_late():
    hardly = traffic(Length(8000, 0.7), first_s=1.0)
    given_up = steady(hardly, pace(), 100.0, worth=0.25, else_at=0.5)
    assert not given_up.kept
    assert given_up.late > LATE
    half = share_of_all(hardly, pace(), 100.0, 0.5)
    assert given_up.per_second == half.per_second
    assert half.per_second == pytest.approx(
        0.5 * share_of_all(hardly, pace(), 100.0, 1.0).per_second, rel=0.02
    )


def test_a_load_that_is_hardly_there_is_kept_where_it_is_enough():
    """Four replicas for one are much for a rate that needs many, and nothing for one that needs one."""
    asked = traffic(Length(8000, 0.3), first_s=1.1)
    assert not steady(asked, pace(), 100.0, worth=0.5, else_at=0.5).kept
    assert steady(asked, pace(), 100.0, worth=0.5, else_at=0.5, wanted=0.01).kept


def test_without_a_promise_vectors_are_given_no_less_load_than_with_one_of_half_a_second():
    def carried(first_s: float | None) -> float:
        asked = Traffic(prompts=Length(400, 0.98).evenly(32), answers=(1.0,), first_s=first_s)
        return steady(asked, pace(), 100.0).per_second

    assert carried(None) >= carried(0.5)


def test_without_a_promise_99_of_100_find_a_place_at_once():
    found = steady(traffic(first_s=None), pace(places=64.0), 64.0)
    assert _erlang_c(64, found.in_flight) == pytest.approx(LATE, rel=0.2)
