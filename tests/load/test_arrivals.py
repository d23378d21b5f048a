"""When requests come: rates and variation as asked, and the same again with the same seed."""

import random
from itertools import islice, pairwise, takewhile
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.arrivals import arrivals, changing
from plimsoll.load.trace_rates import Rate


def gaps(times: list[float]) -> list[float]:
    return [later - sooner for sooner, later in pairwise([0.0, *times])]


@given(rate=st.floats(0.1, 500), burstiness=st.sampled_from([0.25, 1.0, 4.0, 100.0]), seed=st.integers(0, 50))
def test_gaps_have_the_rate_and_the_variation_that_were_asked_for(rate: float, burstiness: float, seed: int):
    found = gaps(list(islice(arrivals(rate, burstiness, random.Random(seed)), 4000)))
    assert min(found) >= 0
    assert fmean(found) == pytest.approx(1 / rate, rel=0.25)
    assert pstdev(found) / fmean(found) == pytest.approx(burstiness**-0.5, rel=0.25)


@given(
    windows=st.lists(st.tuples(st.floats(1, 100), st.floats(0, 20), st.floats(0, 3)), min_size=1, max_size=6),
    seed=st.integers(0, 50),
)
def test_changing_rates_give_rising_times_inside_of_what_the_lines_cover(
    windows: list[tuple[float, float, float]], seed: int
):
    lines, at = [], 0.0
    for length, rate, cv in windows:
        lines.append(Rate(at, rate, cv))
        at += length
    times = list(changing([*lines, Rate(at, 1.0, 1.0)], random.Random(seed)))
    assert times == sorted(times)
    assert all(0 <= time < at for time in times)
    for line, following in pairwise([*lines, Rate(at, 1.0, 1.0)]):
        if line.per_second == 0:
            assert not [time for time in times if line.at < time < following.at]


def test_every_line_has_its_own_rate():
    lines = [Rate(0, 10, 1), Rate(1000, 0, 1), Rate(2000, 40, 1), Rate(3000, 1, 1)]
    times = list(changing(lines, random.Random(3)))
    counted = [sum(start <= time < start + 1000 for time in times) for start in (0, 1000, 2000)]
    assert counted[0] == pytest.approx(10_000, rel=0.05)
    assert counted[1] == 0
    assert counted[2] == pytest.approx(40_000, rel=0.05)


def test_without_variation_arrivals_are_a_clock():
    lines = [Rate(0, 4, 0), Rate(10, 4, 0)]
    assert gaps(list(changing(lines, random.Random(0)))) == pytest.approx([0.25] * 39)


def test_a_gap_that_spans_a_change_is_right_on_both_sides():
    # One every ten seconds, then ten a second: half of the gap is over when the rate changes.
    lines = [Rate(0, 0.1, 0), Rate(5, 10, 0), Rate(6, 0, 0)]
    first = next(iter(takewhile(lambda _: True, changing(lines, random.Random(0)))))
    assert first == pytest.approx(5 + 0.5 / 10)
