"""A limit inside a wide bucket: what lies in that bucket may be on either side of it, and only what else is known tells which."""

from dataclasses import replace
from math import inf

import pytest

from plimsoll.control.curve import Points
from plimsoll.control.decision import Action, Decision
from plimsoll.control.latencies import Spread
from plimsoll.control.lateness import late_share
from plimsoll.control.law import LAW
from plimsoll.control.memory import Learnt
from plimsoll.control.need import asked
from plimsoll.control.prompts import StepMemory
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from tests.control.situations import (
    CAPACITY,
    NOW,
    SLO,
    known,
    serving,
    signals,
    situation,
    spread,
    watching,
)
from tests.control.test_learning import of_full_steps

BOUNDS = (0.025, 0.05, 0.075, 0.1, inf)
"""As vLLM's, in seconds."""


def gaps(*shares: float) -> Spread:
    """So many of a thousand gaps in each bucket."""
    counts = tuple(float(sum(shares[: place + 1])) for place in range(len(BOUNDS)))
    found = Spread.of(Histogram(BOUNDS, counts, 40.0))
    assert found is not None
    return found


STEPS = gaps(300, 500, 200, 0, 0)
"""A fifth of all gaps are between 50 and 75 ms; spread evenly, the 99th percentile would be 73.75."""
BEYOND = gaps(300, 500, 180, 20, 0)


@pytest.mark.parametrize(
    ("seen", "limit", "most", "p99"),
    [
        (STEPS, 0.06, 0.055, 0.055),
        (STEPS, 0.06, 0.06, 0.06),
        (STEPS, 0.06, 0.065, 0.07375),
        (STEPS, 0.06, inf, 0.07375),
        (STEPS, 0.05, 0.045, 0.07375),
        (STEPS, 0.08, 0.06, 0.07375),
        (BEYOND, 0.06, 0.055, 0.0875),
        (spread(0.07), 0.06, 0.055, 0.07),
    ],
    ids=[
        "a full step keeps the limit",
        "just so",
        "a full step does not",
        "nobody knows how long a full step is",
        "a bound tells them apart",
        "it is kept by any guess",
        "in a bucket beyond the limit's",
        "no buckets",
    ],
)
def test_within_the_limits_own_bucket_a_p99_is_no_longer_than_anything_lasts(seen, limit, most, p99):
    assert seen.p99_of(limit, most) == pytest.approx(p99)


@pytest.mark.parametrize(
    ("seen", "most", "share"),
    [(STEPS, 0.055, 0.0), (STEPS, 0.065, 0.2), (BEYOND, 0.055, 0.02), (BEYOND, 0.065, 0.2)],
)
def test_a_bucket_that_the_limit_lies_in_is_late_unless_nothing_lasts_so_long(seen, most, share):
    assert late_share(seen, 0.06, most) == pytest.approx(share)


def hours(full_s: float, seen: Spread = STEPS) -> list[Decision]:
    """Eight replicas with little to do, beside an engine whose full step lasts so long, for hours."""
    points = Points()
    for tokens in (512, 1024, 2048):
        points = points.add(tokens, full_s * tokens / 2048, weight=100)
    capacity = replace(CAPACITY, max_batched_tokens=2048, input_tokens=400)
    memory = known(ready=8, learnt={"set-a": Learnt(steps=StepMemory(points=points))})
    said = signals(8, inflight=16, rate=1.0, kv=0.2)
    said = replace(said, latencies=replace(said.latencies, itl=seen))
    asked = situation(said, serving(8, capacity=capacity), slo=Slo(ttft_p99_s=20.0, itl_p99_s=0.06))
    return watching(asked, 240, memory=memory)


def test_gaps_that_keep_a_limit_within_their_bucket_bring_no_replica_and_keep_none():
    found = hours(full_s=0.055)
    assert {each.roles[0].action for each in found} == {Action.HOLD, Action.DOWN}
    assert found[-1].replicas < 8


@pytest.mark.parametrize(("full_s", "seen"), [(0.065, STEPS), (0.055, BEYOND)])
def test_gaps_that_may_or_must_be_longer_than_their_limit_keep_all(full_s: float, seen: Spread):
    assert hours(full_s, seen)[-1].replicas >= 8


@pytest.mark.parametrize(("waiting", "more"), [(0, None), (3, None), (40, 50.0)])
def test_of_many_replicas_a_few_that_wait_are_no_queue_that_more_would_cure(waiting, more):
    """One or another always has a request that its next step takes up."""
    said = signals(40, itl=0.13, inflight=1.3, rate=0.3, kv=0.03)
    few = tuple(
        replace(each, waiting=1.0 if place < waiting else 0.0) for place, each in enumerate(said.replicas)
    )
    role, memory, load = of_full_steps(replace(said, replicas=few), prompt=400)
    late = replace(memory, slow_since=NOW - 120)
    assert asked(role, late, load, slo=SLO, now=NOW, law=LAW).need.latency == more
