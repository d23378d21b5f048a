"""The world is not the planner's belief: what it draws, as distributions over its seeds."""

import statistics
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from math import sqrt

import pytest

from plimsoll.simulate.steps import BELIEF_IS_OFF, POOL_IS_OFF
from plimsoll.simulate.world import START_P90_S, STARTS_S, draw_world
from tests.simulate.worlds import HARDWARE, LIMITS, SLO, TIMES, world

SEEDS = range(1000)
WORLDS = [draw_world(seed=seed, times=TIMES, limits=LIMITS, slo=SLO, hardware=HARDWARE) for seed in SEEDS]
FACTORS = {
    "steps": [one.times.decode[-1] / TIMES.decode[-1] for one in WORLDS],
    "cache": [one.times.kv_token / TIMES.kv_token for one in WORLDS],
    "prompts": [one.times.prompt_token / TIMES.prompt_token for one in WORLDS],
    "pool": [one.limits.blocks / LIMITS.blocks for one in WORLDS],
}
WIDTHS = dict.fromkeys(FACTORS, BELIEF_IS_OFF) | {"pool": POOL_IS_OFF}
STARTS = [world(seed).start_s(ordinal) for seed in range(100) for ordinal in range(100)]


def distance(found: list[float], low: float, high: float) -> float:
    """Kolmogorov's, from what is even between the two."""
    ordered = sorted(found)
    steps = len(ordered)
    even = [(value - low) / (high - low) for value in ordered]
    return max(
        max(abs(share - place / steps), abs(share - (place + 1) / steps)) for place, share in enumerate(even)
    )


@pytest.mark.parametrize("name", FACTORS)
def test_every_constant_is_off_evenly_within_its_width_either_way(name: str):
    found, width = FACTORS[name], WIDTHS[name]
    assert 1 - width - 1e-3 <= min(found) < 1 - 0.97 * width
    assert 1 + 0.97 * width < max(found) <= 1 + width + 1e-3
    # 1.63 / sqrt(n) is passed by one of a hundred even ones.
    assert distance(found, 1 - width, 1 + width) < 1.63 / sqrt(len(found))


@pytest.mark.parametrize(
    ("name", "least"), [("steps", 0.39), ("cache", 0.39), ("prompts", 0.39), ("pool", 0.09)]
)
def test_every_constant_is_within_a_fifth_of_what_the_planner_believes_and_nearly_as_far_apart_as_it_may_be(
    name: str, least: float
):
    found = FACTORS[name]
    assert 0.8 - 1e-3 <= min(found) <= max(found) <= 1.2 + 1e-3
    assert max(found) - min(found) > least


@pytest.mark.parametrize(("one", "other"), [("steps", "cache"), ("steps", "prompts"), ("prompts", "pool")])
def test_each_constant_is_off_by_a_factor_of_its_own(one: str, other: str):
    assert abs(statistics.correlation(FACTORS[one], FACTORS[other])) < 3 / sqrt(len(SEEDS))


def test_constants_of_one_kind_are_off_together():
    for drawn in WORLDS[:50]:
        off = {
            round(mine / theirs, 9)
            for mine, theirs in zip(drawn.times.decode[1:], TIMES.decode[1:], strict=True)
        }
        prompts = drawn.times.prompt_token / TIMES.prompt_token
        assert len(off) == 1
        assert drawn.times.chunk / TIMES.chunk == pytest.approx(prompts)
        assert drawn.times.seen_token / TIMES.seen_token == pytest.approx(prompts)


def test_a_pool_always_holds_the_longest_request():
    tight = LIMITS.max_model_len // LIMITS.block_size
    for seed in range(50):
        drawn = draw_world(
            seed=seed, times=TIMES, limits=replace(LIMITS, blocks=tight), slo=SLO, hardware=HARDWARE
        )
        assert drawn.limits.blocks >= tight


def test_start_ups_have_a_heavy_tail():
    """Most take one to two and a half minutes, one in forty takes twenty: the mean is far above the median."""
    ordered = sorted(STARTS)
    median, most = statistics.median(ordered), bisect_right(ordered, 139) / len(ordered)
    assert (min(ordered), max(ordered)) == (65, 1200)
    assert 0.5 < most < 0.7
    assert statistics.fmean(ordered) > 1.25 * median
    assert ordered[int(0.90 * len(ordered))] == pytest.approx(START_P90_S, rel=0.15)
    assert ordered[int(0.90 * len(ordered))] > 2 * median
    assert Counter(ordered)[1200] / len(ordered) == pytest.approx(1 / 40, rel=0.25)


def test_every_start_up_of_the_list_is_drawn_as_often_as_another():
    counts = Counter(STARTS)
    assert set(counts) == set(STARTS_S)
    even = len(STARTS) / len(STARTS_S)
    # Chi squared with 39 degrees of freedom passes 62.4 in one of a hundred.
    assert sum((count - even) ** 2 / even for count in counts.values()) < 62.4


def test_a_new_node_takes_from_seven_tenths_to_more_than_half_as_long_again_as_its_mean():
    found = [world(seed).node_s(ordinal) / HARDWARE.node_s for seed in range(40) for ordinal in range(25)]
    assert distance(found, 0.7, 1.6) < 1.63 / sqrt(len(found))


def test_start_ups_of_one_world_say_nothing_of_those_of_the_next():
    starts = [[world(seed).start_s(ordinal) for ordinal in range(1000)] for seed in (1, 2)]
    assert abs(statistics.correlation(*starts)) < 3 / sqrt(1000)
