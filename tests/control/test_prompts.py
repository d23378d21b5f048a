"""First tokens in time: what is learned from the steps of an engine, and how near to it a replica may be."""

import math
import random
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control import prompts
from plimsoll.control.curve import Points
from plimsoll.control.demand import load_of
from plimsoll.control.latencies import Spread
from plimsoll.control.law import LAW
from plimsoll.control.memory import Learnt, LoadMemory, Memory
from plimsoll.control.prompts import StepMemory
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.planning.codec import decode, encode
from tests.control.situations import (
    CAPACITY,
    NOW,
    SLO,
    known,
    saying,
    serving,
    signals,
    situation,
    spread,
    ticks,
)

BUDGET = 2048
PLANNED = replace(CAPACITY, max_batched_tokens=BUDGET)
"""5 requests of 1,300 tokens a second, 50 in flight: 217 tokens in each of 30 steps a second, as the plan has it."""
PLANS = BUDGET / (0.5 / 30 * (1 + BUDGET / (6500 / 30)))
"""Tokens a second of full steps, when half of that time is taken to be for the tokens in them."""
DECODE_S, TOKEN_S = 0.020, 60e-6
REALLY = 1 / (TOKEN_S + DECODE_S / BUDGET)
"""Tokens a second of an engine that decodes a step in DECODE_S and computes a prompt token in TOKEN_S."""


def seen(*steps: float, minutes: int = 60) -> Points:
    points = Points()
    for _ in range(minutes):
        for tokens in steps:
            points = points.faded().add(tokens, DECODE_S + tokens * TOKEN_S)
    return points


def test_without_measurements_the_plan_is_believed():
    assert prompts.most_tokens(StepMemory(), PLANNED) == pytest.approx(PLANS)


def test_the_most_is_known_before_it_is_reached():
    memory = StepMemory(points=seen(100, 200, 400))
    assert prompts.most_tokens(memory, PLANNED) == pytest.approx(REALLY, rel=0.05)
    alone = replace(PLANNED, requests_per_second=None)
    assert prompts.most_tokens(memory, alone) == pytest.approx(REALLY, rel=0.001)


def test_an_engine_without_a_budget_of_tokens_is_not_judged_by_it():
    assert prompts.most_tokens(StepMemory(points=seen(100, 400)), CAPACITY) is None
    said = signals(2)
    role = situation(said, serving()).roles[0]
    holds = load_of(role, known().roles["serve"], now=NOW, lead_s=100, law=LAW, slo=SLO).holds
    assert (holds.prompt, holds.most) == (None, None)


def test_longer_prompts_than_planned_leave_room_for_fewer_requests():
    role = situation(signals(2), serving(capacity=PLANNED)).roles[0]
    lengths = replace(role.signals.latencies, prompt=spread(8000), output=spread(600))
    longer = replace(role, signals=replace(role.signals, latencies=lengths))
    few, many = (
        load_of(one, known().roles["serve"], now=NOW, lead_s=100, law=LAW, slo=SLO).holds
        for one in (longer, role)
    )
    assert few.most == pytest.approx(PLANS / 4300)
    assert many.most == pytest.approx(PLANS / 1300)
    assert few.prompt is not None
    assert many.prompt is not None
    assert few.prompt < many.prompt < PLANS / 1300


def test_no_first_token_is_promised_and_none_is_held():
    role = situation(signals(2), serving(capacity=PLANNED)).roles[0]
    assert load_of(role, known().roles["serve"], now=NOW, lead_s=100, law=LAW, slo=Slo()).holds.prompt is None


@given(
    lumps=st.floats(0, 100_000),
    more=st.floats(1.01, 10),
    limit=st.floats(0.05, 60),
)
def test_lumpier_traffic_and_tighter_limits_leave_more_room(lumps, more, limit):
    def share(lumps: float, limit: float, skew: float = 1.0) -> float:
        memory = StepMemory(lumps=lumps, skew=skew)
        return prompts.within_limit(memory, 10_000.0, PLANNED, signals(2), limit)

    assert 0 < share(lumps * more, limit) <= share(lumps, limit) <= prompts.FULL_MOST
    assert share(lumps, limit) <= share(lumps, limit * more)
    assert share(lumps, limit, skew=1.5) == pytest.approx(share(lumps, limit) / 1.5)


LENGTHS = (*(digit * 10**power for power in range(5) for digit in (1, 2, 5)), math.inf)
"""Upper bounds of an engine's buckets."""


def drawn(sigma: float, count: int = 100_000) -> list[float]:
    """Log-normal prompts of 1,000 tokens in the median: two in a hundred are nearly eight times as long at a sigma of one."""
    chance = random.Random(5)
    return [1000 * math.exp(chance.gauss(0, sigma)) for _ in range(count)]


def full_with(prompts_seen: list[float], *, most: float, limit: float) -> float:
    counts = tuple(float(sum(each <= bound for each in prompts_seen)) for bound in LENGTHS)
    seen = Spread.of(Histogram(LENGTHS, counts, sum(prompts_seen)))
    said = replace(signals(2), live=1, latencies=replace(signals(2).latencies, prompt=seen))
    lumps = sum(each**2 for each in prompts_seen) / sum(prompts_seen)
    return prompts.within_limit(StepMemory(lumps=lumps), most, PLANNED, said, limit)


@pytest.mark.parametrize(("sigma", "limit"), [(0.3, 1.0), (0.8, 1.5), (0.8, 3.0), (1.0, 3.0), (1.0, 6.0)])
def test_about_one_first_token_in_a_hundred_is_late_where_prompts_are_of_all_lengths(sigma, limit):
    """Prompts that come independently of each other queue for one replica, one after the other."""
    most, lengths, chance = 8000.0, drawn(sigma), random.Random(3)
    full = full_with(lengths, most=most, limit=limit)
    assert prompts.FULL_LEAST < full < prompts.FULL_MOST
    rate, wait, late = full * most / (sum(lengths) / len(lengths)), 0.0, 0
    for tokens in lengths:
        late += wait + tokens / most > limit
        wait = max(0.0, wait + tokens / most - chance.expovariate(rate))
    assert 0.004 < late / len(lengths) < 0.02


@given(
    counts=st.lists(st.integers(0, 1000), min_size=len(LENGTHS) - 1, max_size=len(LENGTHS) - 1),
    lumps=st.floats(0, 100_000),
    limit=st.floats(0.05, 60),
)
def test_prompts_of_all_lengths_leave_no_more_room_than_the_longest_and_no_less_than_the_shortest(
    counts, lumps, limit
):
    def full(seen: list[int]) -> float:
        histogram = Histogram(LENGTHS, tuple(float(one) for one in accumulate((*seen, 0))), 1.0)
        lengths = replace(signals(2).latencies, prompt=Spread.of(histogram))
        said = replace(signals(2), latencies=lengths)
        return prompts.within_limit(StepMemory(lumps=lumps, skew=1.0), 8000.0, PLANNED, said, limit)

    counts[3] += 50  # fewer say nothing, and the plan counts
    filled = [place for place, count in enumerate(counts) if count]
    shortest, longest = (
        [sum(counts) if place == only else 0 for place in range(len(counts))]
        for only in (filled[0], filled[-1])
    )
    assert prompts.FULL_LEAST <= full(longest) <= full(counts) <= full(shortest) <= prompts.FULL_MOST


def sharing(share: float, prompt: float) -> Signals:
    """Replicas whose prompts are so long, and of which the cache has such a share."""
    said = signals(2)
    each = [replace(one, prefix_queries=1000.0, prefix_hits=1000.0 * share) for one in said.replicas]
    return replace(said, replicas=tuple(each), latencies=replace(said.latencies, prompt=spread(prompt)))


@given(share=st.floats(0, 0.95), computed=st.floats(50, 4000), limit=st.floats(0.05, 60))
def test_prompts_that_the_cache_has_a_share_of_leave_as_much_room_as_shorter_ones(share, computed, limit):
    whole = computed / (1 - share)
    shared, short = (
        prompts.within_limit(StepMemory(lumps=3 * length), 8000.0, PLANNED, sharing(cached, length), limit)
        for cached, length in ((share, whole), (0.0, computed))
    )
    assert shared == pytest.approx(short, abs=0.05)


def test_a_plan_that_counts_on_the_cache_says_how_many_tokens_are_computed():
    shared = replace(PLANNED, cached_share=0.5)
    shorter = replace(PLANNED, input_tokens=PLANNED.input_tokens // 2)
    assert prompts.most_tokens(StepMemory(), shared) == prompts.most_tokens(StepMemory(), shorter)


def test_a_few_long_prompts_do_not_take_their_time_from_all():
    few, limit = [600.0] * 980 + [8000.0] * 20, 2.0
    lumps = sum(each**2 for each in few) / sum(few)
    as_long = replace(signals(2), live=1, latencies=replace(signals(2).latencies, prompt=spread(8000)))
    all_long = prompts.within_limit(StepMemory(lumps=lumps), 8000.0, PLANNED, as_long, limit)
    assert full_with(few, most=8000.0, limit=limit) > 1.2 * all_long


def test_more_than_was_foreseen_finds_first_tokens_in_time():
    promised = Slo(ttft_p99_s=0.6, itl_p99_s=0.1)
    asked = situation(signals(2), serving(capacity=PLANNED), slo=promised)
    steady, erratic = (
        ticks(asked, 2, memory=known(load=LoadMemory(surprise=factor, record=factor)))
        for factor in (1.0, 2.0)
    )
    memory = erratic.memory.of("serve")
    holds = load_of(asked.roles[0], memory, now=NOW, lead_s=100, law=LAW, slo=promised).holds
    assert holds.prompt is not None
    # Nobody has seen first tokens yet: twice the room for a load that comes as a surprise.
    assert erratic.roles[0].need.forecast == pytest.approx((1 + prompts.SPENT_MOST) * 4.0 / holds.prompt)
    assert steady.roles[0].need.forecast == pytest.approx(4.0 / holds.prompt)


def test_a_minute_shows_lumps_and_the_busiest_replica_and_the_first_one_no_more_than_others():
    busy, calm = saying(2)
    busy = replace(busy, prompt_tokens=480_000.0, recent_prompt_tokens=135_000.0)
    calm = replace(calm, prompt_tokens=120_000.0, recent_prompt_tokens=30_000.0)
    said = replace(signals(2), replicas=(busy, calm))
    first = prompts.learned(StepMemory(), said, PLANNED, settled=False, owing=False)
    # 15,000 more than the mean of 120,000, squared; a quarter of the variance is in the mean itself; the other shows none.
    shown, planned = 15_000**2 / 120_000 / 0.75 / 2, prompts.LUMPS_FIRST * PLANNED.input_tokens
    assert first.lumps == pytest.approx(planned + prompts.SPREAD_WEIGHT * (shown - planned))
    assert first.skew > StepMemory().skew
    assert prompts.learned(first, said, PLANNED, settled=False, owing=True) == first


def busiest(*shares: float, lumps: float, minutes: int = 200) -> float:
    """The skew learned where replicas get these shares of 100,000 tokens in two minutes, each as lumpy as that."""
    chance = random.Random(7)
    memory = StepMemory()
    for _ in range(minutes):
        drawn = [100_000 * share + chance.gauss(0, math.sqrt(lumps * 100_000 * share)) for share in shares]
        replicas = [
            replace(each, prompt_tokens=tokens, recent_prompt_tokens=None, generation_tokens=0.0)
            for each, tokens in zip(saying(len(shares)), drawn, strict=True)
        ]
        memory = replace(memory, lumps=lumps)
        said = replace(signals(len(shares)), replicas=tuple(replicas))
        memory = prompts.learned(memory, said, PLANNED, settled=False, owing=False)
    return memory.skew


@pytest.mark.parametrize("count", [2, 5, 12])
def test_chance_alone_makes_no_replica_the_busiest(count):
    assert busiest(*[1.0] * count, lumps=4000) == pytest.approx(1.05, abs=0.05)


def test_a_replica_that_most_connections_found_stays_the_busiest():
    assert 1.35 < busiest(1.0, 1.0, 1.0, 2.0, lumps=4000) < 1.6
    assert busiest(1.0, 1.0, 1.0, 2.0, lumps=400) == pytest.approx(1.6, abs=0.07)


def test_the_busiest_of_many_counts_no_more_than_the_few_whose_requests_it_has():
    crowd = [1.0] * 29
    assert busiest(*crowd, 3.0, lumps=400) < 1.6
    assert busiest(*crowd[:4], 3.0, lumps=400) == pytest.approx(min(prompts.SKEW_MOST, 3.0 / 1.4), abs=0.1)


def test_the_only_replica_there_is_no_busier_than_the_mean():
    memory = StepMemory(lumps=1000.0, skew=2.0)
    one, two = (prompts.within_limit(memory, 10_000.0, PLANNED, signals(count), 2.0) for count in (1, 2))
    assert one == pytest.approx(2 * two)


def test_after_a_gap_in_what_was_seen_nothing_is_learned_of_lumps():
    """The sample before the gap is then the one of half a minute ago and that of two minutes ago."""
    said = signals(2, recent_prompt_tokens=9000.0, span_s=150.0, recent_span_s=150.0)
    assert prompts.learned(StepMemory(), said, PLANNED, settled=True, owing=False).lumps is None


def watched(seconds: int) -> Signals:
    """Of one pod that was looked at for so long, each answer of 300 tokens, 4 a second."""
    window = Window()
    for at in range(0, seconds + 1, 15):
        done = 4000.0 + 4.0 * at
        sample = PodSample(
            pod="pod-000",
            at=NOW - seconds + at,
            running=20.0,
            waiting=0.0,
            finished=done,
            prompt_tokens=1000 * done,
            generation_tokens=300 * done,
            itl=histogram(0.025, 300 * done),
            prompt_lengths=histogram(1000, done),
            output_lengths=histogram(300, done),
        )
        window = window.add(sample.at, [sample])
    return signals_of(window, now=NOW, live=["pod-000"])


def histogram(mean: float, count: float) -> Histogram:
    return Histogram((mean * 2, math.inf), (count, count), mean * count)


def test_what_was_looked_at_for_a_minute_is_not_taken_for_five():
    """As after a restart of the operator, where nobody else keeps what pods said."""
    young, whole = (
        prompts.learned(StepMemory(), watched(seconds), PLANNED, settled=True, owing=False).points
        for seconds in (60, 330)
    )
    assert young == StepMemory().points
    # 4 x 1,300 tokens a second, in steps of 25 ms.
    assert whole.n == pytest.approx(4 * 1300 * 0.025, rel=0.02)


def test_what_is_learned_of_steps_outlives_a_restart():
    learnt = Learnt(steps=StepMemory(points=seen(300), lumps=4000.0, skew=1.1))
    memory = known(learnt={"set-a": learnt})
    assert decode(Memory, encode(memory)) == memory
