"""What comes one start-up from now, by what came at that time on the days before."""

from __future__ import annotations

from functools import cache

import pytest

from plimsoll.control.forecast import DAILY_MOST, forecast, observed
from plimsoll.control.memory import LoadMemory
from plimsoll.facts.spans import DAY_S

LOOK_S = 300
NINE = 9 * 3600
AHEAD_S = 1800.0


@cache
def watched(days: float, peak: float) -> LoadMemory:
    """From midnight on, so many days of which nine to noon have `peak` requests a second, and all else 4; then all as at nine sharp."""
    memory, at = LoadMemory(), 0.0
    while at < days * DAY_S:
        memory = observed(memory, at, peak if NINE + AHEAD_S / 2 <= at % DAY_S < 12 * 3600 else 4.0, None)
        at += LOOK_S
    return memory


@pytest.mark.parametrize(
    ("days", "peak", "factor"),
    [(2 + NINE / DAY_S, 8.0, 2.0), (1 + NINE / DAY_S, 8.0, 2.0), (2 + NINE / DAY_S, 40.0, DAILY_MOST)],
    ids=["two days before", "one day before", "no more than three times, whatever the days before had"],
)
def test_what_rose_at_this_time_on_the_days_before_is_taken_to_rise_again(
    days: float, peak: float, factor: float
) -> None:
    coming = forecast(watched(days, peak), days * DAY_S, AHEAD_S)
    assert coming == pytest.approx(4.0 * factor, rel=0.01)


def test_a_first_day_says_nothing_of_the_time_of_day() -> None:
    now = NINE / DAY_S
    assert forecast(watched(now, 8.0), NINE, AHEAD_S) == pytest.approx(4.0, rel=0.01)
    late = 0.9
    assert forecast(watched(late, 8.0), late * DAY_S, 12 * 3600.0) == pytest.approx(4.0, rel=0.01)


def test_what_fell_at_this_time_on_the_days_before_is_not_counted_on_to_fall_again() -> None:
    """Fewer replicas than the load has now are asked for once it has fallen."""
    days = 2 + (12 * 3600 - LOOK_S) / DAY_S
    coming = forecast(watched(days, 8.0), days * DAY_S, AHEAD_S)
    assert coming is not None
    assert coming >= 8.0 * 0.99


def test_the_newest_day_counts_for_half_of_what_is_known_of_a_time_of_day() -> None:
    memory, at = watched(1.0, 6.0), float(DAY_S)
    while at < 2 * DAY_S + NINE:
        memory = observed(memory, at, 8.0 if NINE + AHEAD_S / 2 <= at % DAY_S < 12 * 3600 else 4.0, None)
        at += LOOK_S
    assert forecast(memory, at, AHEAD_S) == pytest.approx((6.0 + 8.0) / 2, rel=0.01)
