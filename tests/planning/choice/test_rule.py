"""Choosing among predictions: by chance, then by value, the same way every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.choice.rule import LatencyLimits, Predicted, below, chance, pick
from plimsoll.planning.interval import Interval


def candidate(tpot: float, value: float, ttft: float = 100.0, width: float = 1.2) -> Predicted:
    return Predicted(
        ttft_ms=Interval(ttft / width, ttft, ttft * width),
        tpot_ms=Interval(tpot / width, tpot, tpot * width),
        value=value,
    )


@pytest.mark.parametrize(
    ("candidates", "limits", "index"),
    [
        ([candidate(10, 1), candidate(19, 2)], LatencyLimits(tpot_ms=20), 1),
        ([candidate(10, 1), candidate(21, 2)], LatencyLimits(tpot_ms=20), 0),
        ([candidate(10, 1), candidate(21, 2)], LatencyLimits(), 1),
        ([candidate(30, 1), candidate(25, 2), candidate(40, 9)], LatencyLimits(tpot_ms=20), 1),
        ([candidate(10, 1.00), candidate(12, 1.02)], LatencyLimits(tpot_ms=20), 0),
        ([candidate(10, 1.00), candidate(12, 1.05)], LatencyLimits(tpot_ms=20), 1),
        ([candidate(10, 1), candidate(10, 1)], LatencyLimits(tpot_ms=20), 0),
        (
            [candidate(10, 1, ttft=900), candidate(10, 2, ttft=1_100)],
            LatencyLimits(tpot_ms=20, ttft_ms=1_000),
            0,
        ),
    ],
    ids=[
        "best value",
        "keeps the limit",
        "no limit",
        "nearest of none",
        "near values: safer",
        "value",
        "first",
        "ttft",
    ],
)
def test_the_cheapest_that_probably_keeps_the_limits_is_chosen(candidates, limits, index):
    chosen = pick(candidates, limits)
    assert chosen.index == index
    assert chosen.reason


def test_a_careful_caller_may_ask_for_a_larger_chance():
    candidates = [candidate(10, 1), candidate(19, 2)]
    assert pick(candidates, LatencyLimits(tpot_ms=20), at_least=0.95).index == 0


def test_the_ends_of_an_interval_leave_five_percent_outside():
    predicted = Interval(80, 100, 130)
    assert below(predicted, 130) == pytest.approx(0.95, abs=0.001)
    assert below(predicted, 80) == pytest.approx(0.05, abs=0.001)
    assert below(predicted, 100) == pytest.approx(0.5)


def test_a_certain_figure_keeps_a_limit_or_does_not():
    assert below(Interval(5, 5, 5), 5) == 1
    assert below(Interval(5, 5, 5), 4.9) == 0
    assert below(Interval(4, 5, 6), 0) == 0


@given(st.floats(1, 1e4), st.floats(1.01, 3), st.floats(1, 1e4), st.floats(1, 10))
def test_a_looser_limit_never_lowers_the_chance(middle, width, limit, factor):
    one = candidate(middle, 1, width=width)
    assert chance(one, LatencyLimits(tpot_ms=limit)) <= chance(one, LatencyLimits(tpot_ms=limit * factor))


def test_no_candidate_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one"):
        pick([], LatencyLimits())
