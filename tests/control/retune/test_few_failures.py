"""Failed requests speak against a change where they are more than chance gives to it; of few requests one proves nothing."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from random import Random
from typing import Final

import pytest

from plimsoll.control.retune import Phase, advance
from plimsoll.control.retune.figures import Figures, Tally
from plimsoll.control.retune.judging import Answer, fails, judge, under_another_load
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.control.situation import Slo
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, Behaviour, World, in_phase, judging

HOUR = 3600.0
SLOW = 1 / 3
"""Requests a second of a replica, so that one that is watched for two minutes of a roll answers forty."""
ONE_IN_FORTY = 1 / 39
"""Failed requests for each that finished."""


BETTER: Final[dict[Answer, int]] = {Answer.BAD: 0, Answer.OPEN: 1, Answer.GOOD: 2}
ONE_IN_TWENTY: Final = 0.05


def slow(errors: float = 0.0) -> World:
    def kind(how: Behaviour) -> Behaviour:
        return replace(how, rate=SLOW)

    return World(old=kind(OLD), change=replace(kind(GOOD), errors=errors))


def tally(failed: int, of: int) -> Tally:
    return Tally(finished=of - failed, errors=failed, tokens=None, seconds=600.0)


def figures(failed: int, of: int, *, preempted: float) -> Figures:
    return replace(Figures().over(tally(failed, of)), preempted=preempted, finished=1.0)


def answer(failed: int, of: int, theirs: int, others: int) -> Answer:
    """To a change that does what it was made for."""
    new, old = figures(failed, of, preempted=0.0), figures(theirs, others, preempted=0.3)
    return judge(Symptom.PREEMPTION, new, old, Slo()).answer


@pytest.mark.parametrize(("failed", "blamed"), [(1, False), (3, False), (4, True), (50, True)])
def test_a_change_that_fails_far_more_than_may_is_blamed_also_where_nobody_knows_how_many_failed_before(
    failed: int, *, blamed: bool
):
    told = fails(tally(failed, 50), Tally(errors=None), Figures())
    assert (told is not None) == blamed
    assert told is None or told.endswith("without it nobody says how many")


def test_one_failed_request_among_the_forty_of_a_roll_takes_no_change_back():
    world = in_phase(Phase.ROLLING, slow())
    world.change = replace(world.change, errors=ONE_IN_FORTY)
    while (step := world.memory.step) is not None and step.phase is Phase.ROLLING and step.rolled == 2:
        world.tick()
    world.change = replace(world.change, errors=0.0)
    world.run(2 * HOUR)
    (past,) = world.memory.past
    assert (past.outcome, world.memory.failures) == (Phase.DONE, 0), past.reason


@pytest.mark.parametrize(("failed", "of", "others"), [(1, 1, 60), (1, 10, 600), (3, 100, 600)])
def test_few_failed_requests_of_a_canary_are_no_failure_at_the_first_look(failed, of, others):
    assert fails(Tally(finished=of - failed, errors=failed), Tally(finished=others), Figures()) is None


def test_a_canary_that_fails_now_and_then_is_watched_until_that_is_surely_chance():
    world = judging(slow(errors=0.01))
    world.run(0.3 * HOUR)
    assert world.memory.step is not None
    assert (world.memory.step.phase, "chance" in world.memory.step.said) == (Phase.JUDGING, True)
    world.change = replace(world.change, errors=0.0)
    world.run(2 * HOUR)
    (past,) = world.memory.past
    assert (past.outcome, world.memory.failures) == (Phase.DONE, 0), past.reason


@pytest.mark.parametrize(
    ("failed", "then"),
    [(0, Answer.GOOD), (1, Answer.GOOD), (2, Answer.OPEN), (5, Answer.OPEN), (6, Answer.BAD)],
)
def test_of_two_hundred_requests_beside_twice_as_many_that_do_not_fail_six_that_do_are_more_than_chance(
    failed, then
):
    assert answer(failed, 200, 0, 400) is then


def test_the_share_that_may_fail_more_may_however_surely_it_does():
    assert answer(1_400, 100_000, 1_000, 100_000) is Answer.GOOD
    assert answer(1_600, 100_000, 1_000, 100_000) is Answer.BAD


@pytest.mark.parametrize("seed", range(100))
def test_the_more_requests_fail_the_verdict_is_never_the_better_for_it(seed):
    random = Random(seed)
    of, others = random.choice((1, 8, 40, 200, 1500)), random.choice((0, 1, 30, 400, 4000))
    theirs = random.randint(0, min(others, 20))
    before = Answer.GOOD
    for failed in range(min(of, 60) + 1):
        now = answer(failed, of, theirs, others)
        assert BETTER[now] <= BETTER[before]
        assert now is answer(failed, of, theirs, others), "the same, asked again"
        assert BETTER[answer(failed, of + 1, theirs, others)] >= BETTER[now], (
            "another one came, and went well"
        )
        early = fails(tally(failed, of), tally(theirs, others), Figures())
        assert (early is not None) is (now is Answer.BAD)
        before = now


@pytest.mark.parametrize("finished", [1.0, 4.0], ids=["a smaller load", "a larger one"])
def test_the_more_requests_fail_under_another_load_the_verdict_is_never_the_better_for_it(finished):
    old = replace(figures(0, 400, preempted=0.3), finished=2.0)
    found = []
    for failed in range(40):
        new = replace(figures(failed, 200, preempted=0.0), finished=finished)
        found.append(under_another_load(new, old, Slo(), 1.0).answer)
    assert found == sorted(found, key=BETTER.__getitem__, reverse=True)
    assert set(found) == {Answer.OPEN, Answer.BAD}


def at_least(failed: int, of: int) -> float:
    """The odds that so many of the requests of a replica fail that fails one in twenty, or more."""
    fewer = sum(
        comb(of, many) * ONE_IN_TWENTY**many * (1 - ONE_IN_TWENTY) ** (of - many) for many in range(failed)
    )
    return 1 - fewer


@pytest.mark.parametrize(
    ("beside", "of", "found"),
    [(1, 200, 0.54), (1, 371, 0.99), (2, 200, 0.93), (2, 259, 0.99), (5, 200, 0.99)],
)
def test_a_canary_that_fails_one_in_twenty_is_found_by_so_many_requests_and_never_called_good(
    beside, of, found
):
    """Beside so many replicas that do not fail, each with as many requests. 200 are the fewest that a canary is judged by."""
    verdicts = [answer(failed, of, 0, beside * of) for failed in range(30)]
    assert at_least(verdicts.index(Answer.BAD), of) == pytest.approx(found, abs=0.01)
    good = verdicts.index(Answer.OPEN)
    assert 1 - at_least(good, of) < 0.0005


@pytest.mark.parametrize("beside", [1, 3])
def test_a_rung_that_fails_one_in_twenty_goes_back_with_the_canary(beside):
    world = judging(World(replicas=beside, old=replace(OLD, rate=SLOW), change=replace(GOOD, rate=SLOW)))
    world.change = replace(world.change, errors=1 / 19)
    world.run(1.0 * HOUR)
    past = world.memory.past[-1]
    assert (past.outcome, world.most_changed) == (Phase.FAILED, 1)
    assert "requests fail with the change" in past.reason
    assert world.memory.failures >= 1


def test_hardly_a_canary_that_fails_as_often_as_the_others_is_blamed_though_every_look_may_err():
    """One in fifty fails on either side; a look each 15 seconds, and at most as many requests as a canary is watched for."""
    blamed = 0
    for seed in range(150):
        random = Random(seed)
        mine = [random.random() < 0.02 for _ in range(400)]
        theirs = [random.random() < 0.02 for _ in range(800)]
        looks = (
            fails(tally(sum(mine[:of]), of), tally(sum(theirs[: 2 * of]), 2 * of), Figures())
            for of in range(5, 401, 5)
        )
        blamed += any(looks)
    assert blamed <= 0.03 * 150


def test_a_roll_that_is_verified_beside_few_requests_of_before_goes_back_for_failures_without_blame():
    """Of so few it cannot be told how often requests failed before."""
    world = in_phase(Phase.VERIFYING, slow())
    step = world.memory.step
    assert step is not None
    few = replace(step, baseline=replace(step.baseline, samples=24.0))
    world.stored = codec.encode(replace(world.memory, step=few))
    world.change = replace(world.change, errors=1 / 19)
    world.run(2 * HOUR)
    past = world.memory.past[-1]
    assert (past.outcome, world.memory.failures) == (Phase.FAILED, 0)
    assert "which may be chance" in past.reason


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0], ids=["half the load", "the same", "twice as much"])
def test_failures_beyond_chance_end_the_last_look_before_its_time_is_over(rate):
    world = in_phase(Phase.VERIFYING, World()).run(60)
    world.change = replace(GOOD, errors=0.2, rate=rate * OLD.rate)
    began = world.now
    while world.in_flight:
        world.tick()
    assert world.now - began <= 180
    (past,) = world.memory.past
    assert "requests fail with the change" in past.reason
    assert (past.outcome, world.memory.failures) == (Phase.FAILED, 1)


def test_failures_beyond_chance_end_a_roll_whose_next_replica_starts_slowly():
    world = in_phase(Phase.JUDGING, World())
    world.stuck_since = world.now
    in_phase(Phase.ROLLING, world).run(300)
    world.change = replace(GOOD, errors=0.2)
    world.run(120)
    (past,) = world.memory.past
    assert "requests fail with the change" in past.reason
    assert (past.outcome, world.memory.failures) == (Phase.FAILED, 1), "that speaks against the change"


@pytest.mark.parametrize("phase", [Phase.ROLLING, Phase.VERIFYING])
def test_without_metrics_nothing_that_was_counted_before_ends_a_roll_or_its_last_look(phase):
    world = in_phase(phase, World())
    step = world.memory.step
    assert step is not None
    step = replace(step, new=tally(50, 100))
    turned = advance(replace(world.scene(), data=False), replace(world.memory, step=step))
    assert turned.memory.step is not None
    assert turned.memory.step.phase is phase


def test_one_answer_of_ten_that_breaks_a_promise_may_be_chance():
    new, old = (
        replace(figures(0, of, preempted=share), samples=float(of)) for of, share in ((10, 0.0), (1000, 0.3))
    )
    one, six = (replace(new, kept=1 - many / 10) for many in (1, 6))
    old = replace(old, kept=1.0, ttft_p99=1.0)
    assert judge(Symptom.PREEMPTION, replace(one, ttft_p99=1.0), old, Slo()).answer is Answer.GOOD
    assert judge(Symptom.PREEMPTION, replace(six, ttft_p99=1.0), old, Slo()).answer is Answer.BAD
