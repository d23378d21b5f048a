"""Sets that carry unlike loads: what is learned of the first, and what is counted in replicas of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plimsoll.control import prompts
from plimsoll.control.demand import load_of
from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.law import LAW
from plimsoll.control.learning import learned
from plimsoll.control.memory import RoleMemory
from plimsoll.control.prompts import StepMemory
from plimsoll.control.situation import Capacity, Role
from tests.control.situations import (
    NOW,
    SLO,
    by_set,
    known,
    replicas,
    saying,
    serving,
    signals,
    situation,
    spread,
    ticks,
)

BUDGET, PROMPT, ANSWER = 8192, 1700, 300
FASTER = 4
"""Times as much as one of the small set carries is what one of the large set does."""
SMALL = Capacity(
    kv_tokens=400_000,
    max_num_seqs=256,
    concurrency=100,
    requests_per_second=8.0,
    input_tokens=PROMPT,
    output_tokens=ANSWER,
    max_batched_tokens=BUDGET,
)
LARGE = replace(
    SMALL,
    kv_tokens=FASTER * SMALL.kv_tokens,
    max_num_seqs=FASTER * 256,
    concurrency=FASTER * 100,
    requests_per_second=FASTER * 8.0,
)
STEP_S, TOKEN_S = 0.010, 50e-6
REALLY = BUDGET / (STEP_S + TOKEN_S * BUDGET)
"""Tokens a second of a small one's full steps."""


def together(tokens: float, small: int, large: int, *, first: str = "small", even: bool = False) -> Role:
    """Each small one computes so many tokens a second; a large one as many times more as it is faster, or as many where requests come `even`."""
    load = [1.0] * small + [1.0 if even else float(FASTER)] * large
    gap_s = [STEP_S / (1 - TOKEN_S * tokens)] * small + [STEP_S / FASTER / (1 - TOKEN_S * tokens)] * large
    each_s = tokens / (PROMPT + ANSWER)
    said = [
        replace(
            saying(
                1,
                inflight=each_s * share * ANSWER * gap,
                rate=each_s * share,
                prompt_tokens=each_s * share * 120 * PROMPT,
                generation_tokens=each_s * share * 120 * ANSWER,
            )[0],
            replica=f"pod-{place:03}",
        )
        for place, (share, gap) in enumerate(zip(load, gap_s, strict=True))
    ]
    ended = 300 * each_s * sum(load)
    mean = sum(share * gap for share, gap in zip(load, gap_s, strict=True)) / sum(load)
    latencies = Latencies(
        ttft=spread(0.3, ended),
        itl=replace(spread(0.05), mean=mean, samples=ended * ANSWER),
        prompt=_just(PROMPT, ended),
        output=_just(ANSWER, ended),
    )
    sets = {
        "small": serving(small, name="small", pool="l4", capacity=SMALL),
        "large": serving(name="large", capacity=LARGE, replicas=replicas(large, first=small)),
    }
    ordered = [sets.pop(first), *sets.values()]
    said_by_all = replace(signals(small + large), replicas=tuple(said), latencies=latencies)
    return situation(said_by_all, *(each for each in ordered if each.replicas)).roles[0]


def _just(tokens: float, samples: float) -> Spread:
    return Spread(p50=tokens, p95=tokens, p99=tokens, worst=tokens, mean=tokens, samples=samples)


def taught(minutes: Sequence[Role]) -> tuple[RoleMemory, StepMemory]:
    memory, now = known(ready=minutes[0].signals.live, since=NOW - 9000).of("serve"), NOW
    for role in minutes:
        load = load_of(role, memory, now=now, lead_s=180, law=LAW, slo=SLO)
        memory, now = learned(memory, role, load, slo=SLO, now=now, law=LAW), now + 60
    return memory, memory.learnt_of(minutes[0].sets[0]).steps


@pytest.mark.parametrize(
    ("small", "large", "first", "really"),
    [
        (4, 0, "small", REALLY),
        (2, 2, "small", REALLY),
        (1, 3, "small", REALLY),
        (2, 2, "large", FASTER * REALLY),
    ],
    ids=["alone", "beside as many large ones", "beside more large ones", "as the second set"],
)
def test_what_a_replica_of_the_first_set_computes_is_learned_beside_those_that_compute_more(
    small: int, large: int, first: str, really: float
) -> None:
    minutes = [
        together(tokens, small, large, first=first)
        for tokens in (4000, 6000, 8000, 10_000)
        for _ in range(60)
    ]
    _, steps = taught(minutes)
    most = prompts.most_tokens(steps, minutes[0].sets[0].capacity)
    assert most == pytest.approx(really, rel=0.1)


@pytest.mark.parametrize(
    ("even", "skew"), [(False, 1.0), (True, prompts.SKEW_MOST)], ids=["by what they carry", "evenly"]
)
def test_the_busiest_replica_is_the_one_that_has_most_of_what_it_carries(even: bool, skew: float) -> None:
    """A large one that computes four times as much is as busy as a small one, and one that computes as much is not."""
    _, steps = taught([together(6000, 2, 2, even=even)] * 200)
    assert steps.skew == pytest.approx(skew, abs=0.03)


@pytest.mark.parametrize("first", [SMALL, LARGE], ids=["the smaller ones", "the larger ones"])
def test_a_replica_of_the_first_set_runs_as_many_requests_at_once_as_its_own_engines_may(
    first: Capacity,
) -> None:
    role = together(4000, 2, 1, first="small" if first is SMALL else "large")
    unpredicted = tuple(
        replace(each, capacity=replace(each.capacity, concurrency=None, requests_per_second=None))
        for each in role.sets
    )
    load = load_of(replace(role, sets=unpredicted), RoleMemory(), now=NOW, lead_s=180, law=LAW)
    assert load.holds.by_limits == first.max_num_seqs


@pytest.mark.parametrize(
    ("first", "silent", "missing"),
    [
        ("small", (0,), 1),
        ("small", (2,), FASTER),
        ("small", (1, 2, 3), 1 + 2 * FASTER),
        ("large", (0,), 1 / FASTER),
        ("large", (2, 3), 2),
    ],
    ids=[
        "a small one",
        "a large one",
        "one of both, and another",
        "a small one of large ones",
        "all large ones",
    ],
)
def test_who_does_not_say_how_full_it_is_is_missing_with_what_it_carries(
    first: str, silent: tuple[int, ...], missing: float
) -> None:
    role = together(4000, 2, 2, first=first)
    said = tuple(
        replace(one, waiting=None) if place in silent else one
        for place, one in enumerate(role.signals.replicas)
    )
    for replicas_left in (said, tuple(one for one in said if one.waiting is not None)):
        mute = replace(role, signals=replace(role.signals, replicas=replicas_left))
        assert load_of(mute, RoleMemory(), now=NOW, lead_s=180, law=LAW).missing == missing


def test_no_replica_goes_while_a_large_one_does_not_say_how_full_it_is_and_small_ones_could_not_carry_it() -> (
    None
):
    role = together(4000, 4, 1)
    said = tuple(one for one in role.signals.replicas if one.replica != "pod-004")
    asked = situation(replace(role.signals, replicas=said), *role.sets)
    decision = ticks(asked, 1, memory=known(ready=5, wishes=((NOW - 100, 6.5),)))
    assert by_set(decision) == {"small": 4, "large": 1}, decision.roles[0].message
