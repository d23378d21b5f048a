"""How large a step is: the sizes that follow from lengths, against those that were measured to be best."""

import math
from dataclasses import replace
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control.latencies import Spread
from plimsoll.control.retune import sizing
from plimsoll.control.retune.judging import SLOWER
from plimsoll.control.retune.ladder import AIM
from plimsoll.control.retune.symptoms import CALM as CALM_SHARE
from plimsoll.facts.histograms import Histogram
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits
from tests.control.retune.played import LIMITS, TIMES
from tests.control.retune.world import OLD, said

NEARLY_FREE = replace(TIMES, decode=(0.0, *(0.02 + 0.0005 * n for n in range(1, 257))))
"""A step takes little longer for each request more, as on a GPU: whoever runs fewer puts out less."""
FIXED = Spread(p50=250, p95=250, p99=250, worst=250, mean=250, samples=5000)
MEASURED = sizing.Live(mean=571, deviation=284, output=500)
"""Prompts of 100 to 400 tokens, answers log-normal around 500: what the measured engine ran."""


def test_a_small_pool_holds_as_many_requests_as_were_measured_to_be_best():
    # Of 8,192 tokens: 12 at once left 46% of the preemptions, 10 left 5%, 8 none but lost a tenth of the output.
    assert sizing.sequences(8192, 128, MEASURED, spreads=sizing.FEW_PREEMPTED) in {10, 11}


def played(limits: Limits, users: int, median: float, sigma: float) -> tuple[float, float]:
    """Preemptions for each request, and output tokens, of users who ask on and on."""
    engine, chance = Engine(NEARLY_FREE, limits), Random(1)
    for now in range(1, 400):
        engine.advance(now)
        engine.finished.clear()
        for _ in range(users - engine.in_flight):
            asked = int(min(3000, max(1.0, chance.lognormvariate(math.log(median), sigma))))
            engine.submit(Request(now, chance.randint(100, 400), asked), now)
    return engine.preemptions / engine.finished_count, engine.generation_tokens


def live_requests(median: float, sigma: float) -> sizing.Live:
    """With prompts of 100 to 400 tokens."""
    mean = median * math.exp(sigma**2 / 2)
    held = mean * math.exp(sigma**2) / 2
    wide = math.sqrt(mean**2 * math.exp(3 * sigma**2) / 3 - held**2 + 87**2)
    return sizing.Live(mean=250 + held, deviation=wide, output=mean)


POOLS = pytest.mark.parametrize(
    ("blocks", "block", "users", "median", "sigma"),
    [
        (64, 128, 32, 400, 0.6),
        (512, 16, 32, 400, 0.6),
        (2048, 16, 120, 400, 0.6),
        (2048, 16, 160, 150, 1.0),
        (1024, 16, 80, 700, 0.4),
    ],
)


@POOLS
def test_what_a_pool_holds_leaves_a_fifth_of_the_preemptions_at_most_and_costs_no_more_output_than_that_takes(
    blocks, block, users, median, sigma
):
    live = live_requests(median, sigma)
    full, calm = (
        sizing.sequences(blocks * block, block, live, spreads=one)
        for one in (sizing.FEW_PREEMPTED, sizing.NONE_PREEMPTED)
    )
    limits = replace(LIMITS, blocks=blocks, block_size=block)
    (before, _), (left, puts_out), (none, puts_out_calm) = (
        played(replace(limits, max_num_seqs=most), users, median, sigma) for most in (users, full, calm)
    )
    assert left <= AIM * before
    assert none <= CALM_SHARE
    assert puts_out > 1.02 * puts_out_calm


@POOLS
def test_blocks_kept_free_leave_as_few_preemptions_as_fewer_places_and_cost_less_output(
    blocks, block, users, median, sigma
):
    live, limits = live_requests(median, sigma), replace(LIMITS, blocks=blocks, block_size=block)
    before, whole = played(replace(limits, max_num_seqs=users), users, median, sigma)
    permille = sizing.watermark(
        blocks * block, block, live, preempted=before, aim=AIM / 2 * before, now_permille=0
    )
    kept = replace(limits, max_num_seqs=users, watermark_blocks=blocks * permille // 1000)
    fewer = sizing.sequences(blocks * block, block, live, spreads=sizing.FEW_PREEMPTED)
    left, puts_out = played(kept, users, median, sigma)
    _, by_fewer = played(replace(limits, max_num_seqs=fewer), users, median, sigma)
    assert permille <= sizing.MOST_WATERMARK
    assert left <= AIM * before
    assert puts_out > by_fewer
    assert puts_out > SLOWER * whole


@pytest.mark.parametrize(("permille", "left"), [(50, 0.62), (100, 0.33), (200, 0.12)])
def test_a_watermark_leaves_the_share_of_preemptions_that_was_measured(permille, left):
    asked = sizing.watermark(8192, 128, MEASURED, preempted=1.0, aim=left, now_permille=0)
    assert asked == pytest.approx(permille, rel=0.35)


def test_a_large_pool_needs_a_small_watermark():
    asked = sizing.watermark(400_000, 16, MEASURED, preempted=0.2, aim=0.02, now_permille=0)
    assert asked <= 5


@given(st.floats(100, 1e6), st.floats(10, 1e4), st.floats(0, 1e4), st.floats(1.01, 4))
def test_a_larger_pool_never_holds_fewer_and_what_is_held_leaves_room(pool, mean, deviation, larger):
    live = sizing.Live(mean=mean, deviation=deviation, output=100)
    for spreads in (sizing.FEW_PREEMPTED, sizing.NONE_PREEMPTED):
        count = sizing.sequences(pool, 16, live, spreads=spreads)
        assert sizing.sequences(larger * pool, 16, live, spreads=spreads) >= count
        if count > 1:
            assert count * (mean + 8) + spreads * deviation * count**0.5 <= pool * 1.0001


def test_lengths_become_what_a_live_request_holds():
    live = sizing.live_of(said(OLD, 2, 0.0))
    assert live is not None
    assert live.mean == pytest.approx(MEASURED.mean, rel=0.1)
    assert live.deviation == pytest.approx(MEASURED.deviation, rel=0.25)


BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, math.inf)


@pytest.mark.parametrize("odd", [0, 400], ids=["all alike", "a few of one token"])
@pytest.mark.parametrize(("median", "sigma"), [(400, 0.6), (150, 0.6), (700, 0.4), (300, 1.0)])
def test_lengths_are_as_wide_as_they_are_however_coarse_the_buckets(median, sigma, odd):
    known = NormalDist(math.log(median), sigma)
    counts = [odd + 1e4 * (known.cdf(math.log(bound)) if bound < math.inf else 1.0) for bound in BUCKETS]
    seen = Histogram(BUCKETS, tuple(counts), odd + 1e4 * median * math.exp(sigma**2 / 2))
    quiet = said(OLD, 2, 0.0)
    drawn = replace(quiet, latencies=replace(quiet.latencies, output=Spread.of(seen), prompt=FIXED))
    live = sizing.live_of(drawn)
    assert live is not None
    mean = median * math.exp(sigma**2 / 2)
    held = mean * math.exp(sigma**2) / 2
    wide = math.sqrt(mean**2 * math.exp(3 * sigma**2) / 3 - held**2)
    assert live.mean == pytest.approx(250 + held, rel=0.1)
    assert live.deviation == pytest.approx(wide, rel=0.25)


def test_too_few_lengths_size_nothing():
    quiet = said(OLD, 2, 0.0)
    few = Spread(p50=1, p95=2, p99=3, worst=3, mean=1, samples=10)
    assert sizing.live_of(replace(quiet, latencies=replace(quiet.latencies, output=few))) is None
