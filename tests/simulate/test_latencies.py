"""What users waited for over time: of each minute alone, and none of it lost with a replica that goes."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.run import Run
from plimsoll.simulate.tally import POINTS
from tests.simulate.worlds import joined, steady, world

QUIET = steady(0.1, 0.0)
"""Nothing at all; its span is given where it is used."""


def story(arrivals, replicas: int = 1) -> Outcome:
    return Run(world=world(), arrivals=arrivals, policy=Static(replicas), initial=replicas).outcome()


def test_each_minute_has_its_own_and_one_in_which_nobody_came_has_none():
    calm, crowd = steady(0.2, 300.0), steady(2.0, 300.0, given=1000)
    told = story(joined(calm, replace(QUIET, span_s=300.0), crowd)).latencies
    by_minute = {round(one.at / 60): one for one in told}
    assert set(by_minute) == {*range(5), *range(10, 15)}
    first, then = by_minute[2], by_minute[12]
    assert first.ttft_p99_ms is not None
    assert then.ttft_p99_ms is not None
    assert first.itl_p99_ms is not None
    assert then.itl_p99_ms is not None
    assert then.ttft_p99_ms > 2 * first.ttft_p99_ms
    assert then.itl_p99_ms > 2 * first.itl_p99_ms


def test_over_a_single_span_they_are_the_figures_of_the_whole():
    outcome = story(steady(1.0, 60.0))
    (only,) = outcome.latencies
    assert only.ttft_p99_ms == outcome.figures.ttft_p99_ms
    assert only.itl_p99_ms == pytest.approx(outcome.figures.itl_p99_ms, rel=0.06)


class Drops:
    """Lets a replica go in the midst of a minute."""

    name, histograms = "drops", False
    settings: Mapping[str, float] = MappingProxyType({})

    def decide(self, view: View) -> Wish | None:
        return Wish(1, "Drops", "as it says") if view.now > 80 else None


def test_what_a_replica_counted_before_it_went_is_in_the_minute_in_which_it_went():
    arrivals = joined(steady(1.0, 80.0, asked=400), replace(QUIET, span_s=160.0))
    run = Run(world=world(), arrivals=arrivals, policy=Drops(), initial=2, most=2)
    told = run.outcome().latencies
    assert len(run.estate.engines) == 2
    assert [one.at for one in told if one.itl_p99_ms is not None][:2] == [0.0, 60.0]


def test_of_a_long_trace_minutes_are_put_together():
    outcome = story(steady(0.02, 60.0 * (POINTS + 1), asked=2))
    assert {one.at % 120 for one in outcome.latencies} == {0.0}
    assert len(outcome.latencies) <= POINTS
