"""The rule that finds the knee, on curves drawn by hand and on drawn ones."""

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.knee import Point, Sign, find_knee


def point(load: float, itl: float | None, **changes: float) -> Point:
    values = {
        "sent_per_second": load,
        "done_per_second": load,
        "gaps": 5000,
        "resolution_ms": 0.1,
        "bad_share": 0.0,
    }
    return Point(load=load, itl_p99_ms=itl, **{**values, **changes})  # type: ignore[arg-type]


def curve(*itl: float | None) -> list[Point]:
    return [point(2.0**place, value) for place, value in enumerate(itl)]


@pytest.mark.parametrize(
    ("itl", "knee", "confirmed"),
    [
        ([10, 10.5, 11, 12, 13], None, True),
        ([10, 19, 36, 70, 140], None, True),  # proportional at worst: no knee
        ([10, 11, 12, 14, 60, 200], 8, True),
        ([10, 11, 12, 14, 60], 8, False),
        ([10, 11, 12, 14, 60, 61], 8, True),  # a plateau behind the rise is still one
        ([10, 60, 12, 14, 16], None, True),  # noise, taken back
        ([10, 11, 60, 12, 80, 200], 8, True),
        ([10, 60], 1, False),
        ([10], None, True),
        ([None, 10, 11, 60, 90], 4, True),
    ],
)
def test_the_knee_is_the_last_load_before_itl_outgrows_it(
    itl: list[float | None], knee: float | None, confirmed: bool
):
    found = find_knee(curve(*itl), closed_loop=False)
    assert (found and found.load) == knee
    if found is not None:
        assert (found.signs, found.confirmed) == ((Sign.ITL,), confirmed)
        assert "p99 ITL rose" in found.explanation


def test_points_may_come_in_any_order():
    points = curve(10, 11, 12, 14, 60, 200)
    assert find_knee(points[::-1], closed_loop=False) == find_knee(points, closed_loop=False)


def test_no_points_have_no_knee():
    assert find_knee([], closed_loop=False) is None


def test_narrow_steps_do_not_hide_a_rise_by_sharing_it_out():
    points = [point(load, itl) for load, itl in [(4, 18), (8, 20), (11.3, 30), (16, 46), (32, 200)]]
    found = find_knee(points, closed_loop=False)
    assert found is not None
    assert (found.load, found.beyond) == (11.3, 16)


@pytest.mark.parametrize(("resolution", "gaps"), [(30.0, 5000), (0.1, 40)])
def test_a_rise_that_could_be_the_client_s_own_or_of_few_gaps_is_none(resolution: float, gaps: int):
    points = [
        point(1, 10, resolution_ms=resolution, gaps=gaps),
        point(2, 60, resolution_ms=resolution, gaps=gaps),
    ]
    assert find_knee(points, closed_loop=False) is None


def test_answers_that_fall_behind_are_a_knee_though_itl_stays():
    points = [point(1, 10), point(2, 10), point(4, 10, done_per_second=4), point(8, 10, done_per_second=4.1)]
    found = find_knee(points, closed_loop=False)
    assert found is not None
    assert (found.load, found.signs, found.confirmed) == (4, (Sign.THROUGHPUT,), True)
    assert "4.1 of 8 requests/s were answered" in found.explanation


def test_arrivals_at_random_are_not_taken_for_a_queue():
    # 30 requests in 30 seconds, each answered in 10: four more or less under way at the end are chance.
    slow = {"answer_s": 10.0, "seconds": 30.0}
    points = [point(1, 10, done_per_second=0.85, **slow), point(2, 11, done_per_second=1.75, **slow)]
    assert find_knee(points, closed_loop=False) is None


def test_a_closed_loop_ends_where_more_users_get_no_more_answers():
    done = {1: 1.0, 2: 1.9, 4: 3.5, 8: 3.7, 16: 3.7}
    points = [point(load, 10 + load, done_per_second=rate) for load, rate in done.items()]
    found = find_knee(points, closed_loop=True)
    assert found is not None
    assert (found.load, found.signs) == (4, (Sign.THROUGHPUT,))
    assert "4 at once went well" in found.explanation


def test_errors_end_the_curve_and_a_first_load_may_be_too_much():
    found = find_knee([point(1, 10), point(2, 10, bad_share=0.4)], closed_loop=False)
    assert found is not None
    assert (found.load, found.beyond, found.signs) == (1, 2, (Sign.ERRORS,))
    first = find_knee([point(1, 10, bad_share=0.4), point(2, 10)], closed_loop=False)
    assert first is not None
    assert (first.load, first.beyond) == (None, 1)
    assert "already the lowest load, 1 requests/s, was too much" in first.explanation


def loads(top: int = 9) -> list[float]:
    return [2.0**power for power in range(top)]


def drawn(curve_of: Callable[[float], float], over: Sequence[float]) -> list[Point]:
    return [point(load, curve_of(load)) for load in over]


@given(base=st.floats(1, 100), slope=st.floats(0, 50))
def test_a_line_never_has_a_knee(base: float, slope: float):
    assert find_knee(drawn(lambda load: base + slope * load, loads()), closed_loop=False) is None


@given(base=st.floats(1, 100), power=st.floats(0, 1))
def test_what_grows_slower_than_the_load_never_has_one(base: float, power: float):
    assert find_knee(drawn(lambda load: base * load**power, loads()), closed_loop=False) is None


@given(base=st.floats(2, 100), place=st.integers(0, 6), power=st.floats(1.5, 4))
def test_a_flat_curve_with_a_steep_end_has_it_where_the_end_begins(base: float, place: int, power: float):
    begin = 2.0**place
    found = find_knee(drawn(lambda load: base * max(1.0, load / begin) ** power, loads()), closed_loop=False)
    assert found is not None
    assert (found.load, found.confirmed) == (begin, True)


@given(st.lists(st.floats(0.5, 1000), min_size=1, max_size=8), st.booleans())
def test_whatever_was_measured_has_an_answer(itl: list[float], closed: bool):
    points = curve(*itl)
    found = find_knee(points, closed_loop=closed)
    if found is not None:
        assert found.beyond in [one.load for one in points]
        assert found.load is None or found.load < found.beyond
        assert not math.isnan(found.beyond)


@pytest.mark.parametrize(
    ("done", "knee", "confirmed"),
    [
        ((0.4, 1.8, 2.1), 2, False),
        ((0.4, 1.8, 2.1, 3.9), None, True),  # a slow moment of the machine, which the next step takes back
        ((0.4, 1.8, 2.1, 2.2), 2, True),
    ],
)
def test_more_users_that_get_no_more_answers_must_be_borne_out_by_the_next_step(
    done: tuple[float, ...], knee: float | None, confirmed: bool
):
    points = [point(2.0**place, 10.0, done_per_second=rate) for place, rate in enumerate(done)]
    found = find_knee(points, closed_loop=True)
    assert (None if found is None else found.load) == knee
    assert found is None or found.confirmed is confirmed
