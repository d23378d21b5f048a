"""Percentiles in little memory, held against those of all values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.sketch import Sketch

seconds = st.floats(0, 4000, allow_subnormal=False)


@given(st.lists(seconds, min_size=1, max_size=300), st.floats(0.01, 1.0))
def test_a_percentile_is_off_by_half_a_percent_at_most(values: list[float], share: float):
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert sketch.quantile(share) == pytest.approx(true, rel=0.0051, abs=1.1e-6)


@given(st.lists(seconds, min_size=1, max_size=100))
def test_count_mean_and_extremes_are_exact(values: list[float]):
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    spread = sketch.spread()
    assert spread is not None
    assert spread.count == len(values)
    assert spread.mean == pytest.approx(1000 * sum(values) / len(values), abs=0.001)
    assert spread.max == round(1000 * max(values), 3)
    assert spread.p50 <= spread.p90 <= spread.p95 <= spread.p99 <= spread.max


def test_memory_does_not_grow_with_the_run():
    sketch = Sketch()
    for number in range(200_000):
        sketch.add(0.001 + (number % 5000) / 1000)
    assert len(sketch._buckets) < 1000


def test_nothing_has_no_percentiles():
    assert Sketch().spread() is None


def test_two_sketches_joined_say_what_one_of_all_would():
    whole, first, second = Sketch(), Sketch(), Sketch()
    for place, seconds in enumerate((0.0, 0.01, 0.2, 0.2, 1.5, 30.0)):
        whole.add(seconds)
        (first if place % 2 else second).add(seconds)
    first.join(second)
    assert first.spread() == whole.spread()
    first.join(Sketch())
    assert first.spread() == whole.spread()
