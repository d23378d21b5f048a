"""The law in a closed loop with the load model: what a step, a ramp, a wave, noise and silence lead to, in figures."""

import math
from itertools import pairwise

import pytest

from plimsoll.control.decision import Action
from plimsoll.control.law import LAW
from plimsoll.control.situation import Bounds
from tests.control.driving import WIDE, Story
from tests.control.load_model import Cluster

START_S = 120.0
BEST_RATE = 4.04
"""Requests a second that fill a replica of the model to the target."""


def story(rate, replicas, seconds, *, seed=0, bounds=WIDE) -> Story:
    return Story(Cluster(rate=rate, replicas=replicas, start_s=START_S, seed=seed), bounds=bounds).run(
        seconds
    )


SETTLED_S = 2 * START_S + 60
WINDOW_S = LAW.down_window_s
SPARE = 0.80
"""Of the rate at which a replica is full: where the forecast's own error is added, at most so much is left free."""
TIPS = (0.75, 0.95)
"""Of the rate at which all replicas are full: between these, chance says whether one more is wanted. Of 400 runs with
other seeds the 13 that turned back more than once in 25 minutes (twice, and one of them four times) all lie here."""


@pytest.mark.parametrize("group", range(4))
def test_constant_load_settles_with_one_reversal_at_most(group):
    for place in range(10):
        level = 0.3 + 0.25 * (10 * group + place)
        told = story(lambda _, level=level: level, 1, 1500, seed=place)
        assert told.reversals() <= 1, level
        late = [index for index, (at, _, _) in enumerate(told.actions) if at >= SETTLED_S]
        assert len(late) <= 1, level
        for index in late:
            at, action, count = told.actions[index]
            before_at, _, before = ([(0.0, None, 1), *told.actions])[index]
            assert abs(count - before) == 1, level
            if action is Action.DOWN:
                # It paid the queue of the start back. A window is longer than it takes to settle, so it cannot go before.
                assert WINDOW_S <= at - before_at <= WINDOW_S + START_S, level
            else:
                assert TIPS[0] <= level / BEST_RATE / before <= TIPS[1], level
        final = told.decisions[-1][1].replicas
        assert math.ceil(level / BEST_RATE) <= final <= math.ceil(level / (SPARE * BEST_RATE)), level
        settled = {each.replicas for at, each in told.decisions if at >= SETTLED_S}
        assert settled <= {final - 1, final, final + 1}, level


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_answered_in_one_jump_within_45_seconds_and_the_limits_hold_again_soon(seed):
    told = story(lambda at: 4 if at < 900 else 20, 2, 2700, seed=seed)
    jumps = [(at, count) for at, action, count in told.actions if action is Action.UP]
    first_at, first = jumps[0]
    assert 0 <= first_at - 900 <= 45
    needed = math.ceil(20 / BEST_RATE)
    assert needed <= first <= needed + 1
    # What follows pays the queue of the start-up back, no more than that, and goes when it is paid.
    assert max(count for _, count in jumps) <= first + 2
    assert all(at <= 900 + START_S + 90 for at, _ in jumps)
    assert told.decisions[-1][1].replicas == first
    assert told.cluster.attained(0, 900) == 1
    assert told.cluster.attained(900 + START_S + 90) >= 0.999


@pytest.mark.parametrize("seed", range(3))
def test_a_ramp_is_kept_ahead_of(seed):
    told = story(lambda at: 4 + 16 * min(1, at / 2400), 2, 3000, seed=seed)
    assert told.cluster.attained() >= 0.999
    assert all(action is Action.UP for _, action, _ in told.actions)
    counts = [2, *(count for _, _, count in told.actions)]
    assert all(later - earlier == 1 for earlier, later in pairwise(counts))
    assert counts[-1] <= math.ceil(20 / BEST_RATE) + 1


@pytest.mark.parametrize("seed", range(3))
def test_a_wave_is_followed_with_two_reversals_an_hour(seed):
    told = story(lambda at: 10 + 6 * math.sin(at / 3600 * 2 * math.pi), 4, 7200, seed=seed)
    assert told.cluster.attained() >= 0.999
    assert told.reversals() <= 4
    assert told.cluster.gpu_s < 7200 * math.ceil(16 / BEST_RATE), (
        "its crest, held all the time, would cost as much"
    )


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_a_fifth_moves_nothing_twice_an_hour(seed):
    def noisy(at):
        return 12 * (1 + 0.2 * math.sin(at // 60 * 78.233 + seed))

    told = story(noisy, 4, 3600, seed=seed)
    assert told.cluster.attained() >= 0.999
    assert told.reversals() <= 1
    assert {decision.replicas for _, decision in told.decisions} <= {4, 5}


def test_silence_releases_all_but_the_least_after_a_window_step_by_step():
    told = story(lambda at: 10 if at < 900 else 0, 4, 900 + 5 * 420, bounds=Bounds(min=1, max=8))
    downs = [(at, count) for at, action, count in told.actions if action is Action.DOWN and at > 900]
    assert told.decisions[-1][1].replicas == 1
    # What the last two minutes brought counts as load until they are over.
    assert WINDOW_S <= downs[0][0] - 900 <= WINDOW_S + 120
    assert [count for _, count in downs] == [2, 1]
    again = LAW.down_again_s
    assert all(again <= later - earlier <= again + 15 for (earlier, _), (later, _) in pairwise(downs))


@pytest.mark.parametrize("hour", [3600, -3600])
@pytest.mark.parametrize(
    ("rate", "replicas", "until"),
    [(8, 3, 1500), (0, 3, WINDOW_S - 30), (0, 3, WINDOW_S - 15)],
    ids=["under load", "idle", "idle, and due"],
)
def test_a_clock_that_jumps_by_an_hour_moves_nothing(rate, replicas, until, hour):
    told = story(lambda _: rate, replicas, until)
    before = len(told.actions)
    there = told.decisions[-1][1].replicas
    told.skew = hour
    told.run(WINDOW_S - 30)
    assert told.actions[before:] == []
    assert {one.replicas for at, one in told.decisions if at > until} == {there}
    told.run(2 * WINDOW_S)
    if not rate:
        assert told.decisions[-1][1].replicas < there, "what is not asked for goes a window later"


def test_a_longer_start_up_is_learned_and_looked_ahead_to():
    told = Story(Cluster(rate=lambda at: 4 + at / 300, replicas=2, start_s=400)).run(3000)
    memory = told.memory.of("serve")
    assert memory.starts[-1] == pytest.approx(400, abs=15)
    assert told.decisions[-1][1].roles[0].need.lead_s == pytest.approx(400, abs=15)
    assert told.cluster.attained() >= 0.98


def test_a_replica_slower_than_planned_is_found_out():
    # Planned to carry 55 requests within its limits; the world's limit is tighter than the plan believed.
    told = Story(Cluster(rate=lambda _: 10, replicas=2, start_s=60))
    told.slo_itl = 0.035
    told.run(5400)
    learnt = told.memory.of("serve").learnt["set-a"]
    assert learnt.concurrency is not None
    assert learnt.concurrency < 50
    assert told.cluster.attained(3600) > 0.99
