"""Lengths that a trace does not hold are drawn as a client could ask for them: within the context, where the declared percentiles leave it open."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from plimsoll.planning.lengths import Length
from plimsoll.simulate.arrivals import Arrivals, Lengths, draw_arrivals
from plimsoll.simulate.stages import Stages
from plimsoll.simulate.traces import RateTrace, RequestTrace, TimeTrace
from tests.simulate.worlds import SCENARIO

RATES = RateTrace(name="rates", at=(0.0,), rates=(50.0,), cvs=(1.0,), last_s=600.0)
LENGTHS = Lengths(input=Length.by(1000, 4000, None, 1), output=Length.by(300, 1200, None, 1))


def drawn(limit: int | None, lengths: Lengths = LENGTHS) -> Arrivals:
    return draw_arrivals(RATES, lengths, seed=1, limit=limit)


def longest(found: Arrivals) -> int:
    return max(given + asked for given, asked in zip(found.inputs, found.outputs, strict=True))


@pytest.mark.parametrize("limit", [6000, 8192, 16384])
def test_none_is_longer_than_the_context_and_the_percentiles_stay_those_that_are_declared(limit: int):
    free, bound = drawn(None), drawn(limit)
    assert longest(free) > limit >= longest(bound)
    for before, after, (p50, p95) in (
        (free.inputs, bound.inputs, (1000, 4000)),
        (free.outputs, bound.outputs, (300, 1200)),
    ):
        for declared in (p50, p95):
            beyond = sum(one > declared for one in before)
            assert sum(one > declared for one in after) == pytest.approx(beyond, abs=2)


def test_requests_that_fit_are_the_same_with_and_without_and_all_others_are_counted():
    free, bound = drawn(None), drawn(8192)
    pairs = list(zip(free.inputs, free.outputs, bound.inputs, bound.outputs, strict=True))
    assert all((a, b) == (c, d) for a, b, c, d in pairs if a + b <= 8192)
    assert bound.shortened == sum(a + b > 8192 for a, b, _, _ in pairs) > 0
    assert free.shortened == 0
    assert bound.at == free.at


def test_the_lengths_that_are_shortened_are_spread_and_stand_at_no_one_length():
    bound = drawn(5300)
    beyond = [one for one in bound.inputs if one > 4000]
    assert len(beyond) > 1000
    assert max(beyond.count(one) for one in set(beyond)) < 0.02 * len(beyond)


def test_what_is_declared_to_be_longer_than_the_context_stays_so():
    """It is then the declaration that is to be told of, and no guess of ours."""
    free, bound = drawn(None), drawn(2048)
    over = [a for a, b in zip(bound.inputs, free.inputs, strict=True) if a > 2048 and a == b]
    assert len(over) > 100


def test_a_declared_p99_is_kept_too():
    lengths = Lengths(input=Length.by(1000, 3000, 6000, 1), output=Length.by(200, 600, 900, 1))
    bound = drawn(8192, lengths)
    assert longest(bound) <= 8192
    assert sum(one > 6000 for one in bound.inputs) / len(bound) == pytest.approx(0.01, rel=0.15)


def test_a_beginning_that_all_share_is_within_the_context_too():
    shared = Lengths(input=LENGTHS.input.less(600), output=LENGTHS.output, shared_tokens=600)
    assert longest(drawn(8192, shared)) <= 8192


def test_lengths_that_nobody_declares_are_bounded_above_the_usual_ones():
    assumed = Lengths(input=Length.by(None, None, None, 1024), output=Length.by(None, None, None, 256))
    assert longest(drawn(2048, assumed)) <= 2048


def test_lengths_of_a_trace_are_its_own_whatever_the_context():
    trace = RequestTrace(
        name="own",
        at=array("d", [0.0, 1.0]),
        inputs=array("q", [5000, 5]),
        outputs=array("q", [5000, 5]),
        prefixes=None,
    )
    found = draw_arrivals(trace, LENGTHS, seed=1, limit=100)
    assert (list(found.inputs), list(found.outputs), found.shortened) == ([5000, 5], [5000, 5], 0)


def test_a_stage_is_bounded_by_its_engines_context():
    came = TimeTrace(name="log", at=array("d", (float(place) for place in range(20_000))))
    wide = Lengths(input=Length.by(300, 1500, None, 1), output=Length.by(100, 500, None, 1))
    stages = Stages(scenario=replace(SCENARIO, lengths=wide), trace=came)
    found = stages.arrivals(1)
    assert longest(found) <= SCENARIO.limits.max_model_len
    assert found.shortened > 0
