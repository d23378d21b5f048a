"""What counts as kept: the limits as the resource promises them, of requests for first tokens and of gaps for what follows."""

from collections.abc import Mapping
from math import inf
from types import MappingProxyType

import pytest

from plimsoll.control.situation import Slo
from plimsoll.simulate.meters import ITL, Histogram
from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.run import Run
from plimsoll.simulate.world import START_P90_S
from tests.simulate.worlds import joined, steady, world

ALONE, CROWDED = 0.1, 2.0
"""Requests a second of one replica: in the first nobody decodes beside a prompt, in the second every answer sees several."""


def story(arrivals, slo: Slo) -> Outcome:
    return Run(world=world(slo=slo), arrivals=arrivals, policy=Static(1), initial=1).outcome()


def prompts(rate: float, span_s: float = 900.0):
    """Each fills most of a step, so that whoever decodes beside it waits longer than 50 ms."""
    return steady(rate, span_s, given=1000)


@pytest.mark.parametrize(
    ("rate", "slo", "kept"),
    [
        (ALONE, Slo(ttft_p99_s=1.0, itl_p99_s=0.05), True),
        (CROWDED, Slo(ttft_p99_s=1.0, itl_p99_s=0.05), False),
        (CROWDED, Slo(ttft_p99_s=1.0, itl_p99_s=0.3), True),
        (CROWDED, Slo(ttft_p99_s=1.0), True),
        (CROWDED, Slo(ttft_p99_s=0.05), False),
        (CROWDED, Slo(ttft_p99_s=0.05, itl_p99_s=0.3), False),
    ],
)
def test_99_percent_are_kept_exactly_where_both_99th_percentiles_are_within_their_limits(
    rate: float, slo: Slo, kept: bool
):
    figures = story(prompts(rate), slo).figures
    assert figures.slo_pct is not None
    assert figures.ttft_p99_ms is not None
    assert figures.itl_p99_ms is not None
    assert (figures.slo_pct >= 99) is kept
    within = [
        figures.ttft_p99_ms <= 1000 * (slo.ttft_p99_s or inf),
        figures.itl_p99_ms <= 1000 * (slo.itl_p99_s or inf),
    ]
    assert all(within) is kept


def test_long_gaps_of_a_few_answers_count_as_the_few_gaps_they_are():
    """The answers before them were as promised, so the minutes tell what the sum of the story does not."""
    outcome = story(joined(prompts(ALONE, 18000.0), prompts(CROWDED, 60.0)), Slo(itl_p99_s=0.05))
    assert outcome.figures.slo_pct is not None
    assert outcome.figures.slo_pct >= 99
    assert outcome.figures.minutes_over_slo in {1, 2, 3}
    assert outcome.served[0][1] == 1.0
    assert outcome.served[-1][1] < 0.99


class Swinging:
    """One replica more from one moment to another."""

    name = "swinging"
    settings: Mapping[str, float] = MappingProxyType({})
    histograms = False

    def __init__(self, since: float, until: float) -> None:
        self._more = since, until

    def decide(self, view: View) -> Wish:
        since, until = self._more
        return Wish(2 if since <= view.now < until else 1, "", "")


@pytest.mark.parametrize(
    ("lasts", "reversals"), [(300.0, 1), (2 * START_P90_S - 15, 1), (2 * START_P90_S + 15, 0)]
)
def test_a_step_is_taken_back_where_the_opposite_one_comes_within_two_start_ups(lasts: float, reversals: int):
    swinging = Swinging(600.0, 600.0 + lasts)
    outcome = Run(world=world(), arrivals=steady(ALONE, 3600.0), policy=swinging, initial=1).outcome()
    assert outcome.figures.actions == 2
    assert outcome.figures.reversals == reversals
    assert outcome.figures.reversals_per_day == 24 * reversals


def test_without_any_limit_nothing_is_kept_or_missed():
    outcome = story(prompts(CROWDED), Slo())
    assert outcome.figures.slo_pct is None
    assert outcome.figures.minutes_over_slo is None
    assert outcome.served == ()


def test_gaps_within_a_limit_are_counted_exactly_at_an_edge_and_in_proportion_between_two():
    gaps = Histogram(ITL)
    low, high = ITL.inner[40:42]
    gaps.add(low, 3)
    gaps.add(high, 4)
    gaps.add(inf, 2)
    assert gaps.within(low) == 3
    assert gaps.within((low + high) / 2) == pytest.approx(5)
    assert gaps.within(high) == 7
    assert gaps.within(2 * ITL.inner[-1]) == gaps.count - 2


def test_a_late_minute_is_told_with_the_replicas_of_its_end_however_long_the_trace():
    """Of a timeline of two days a point spans minutes."""
    outcome = story(joined(prompts(ALONE, 172800.0), prompts(CROWDED, 60.0)), Slo(itl_p99_s=0.05))
    assert outcome.late[0].at == pytest.approx(172800.0, abs=60.0)
    assert {(one.told, one.starting) for one in outcome.late} == {(1, 0)}
    assert len(outcome.late) == outcome.figures.minutes_over_slo
