"""What the law learns, and what it must not learn from: one slow start, the calm after a burst, a queue on one replica."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control.curve import Points
from plimsoll.control.demand import Load, load_of
from plimsoll.control.law import LAW
from plimsoll.control.learning import lead_s, learned, ratio_of
from plimsoll.control.memory import Learnt, RoleMemory
from plimsoll.control.need import asked
from plimsoll.control.prompts import StepMemory
from plimsoll.control.situation import NO_LIMITS, ReplicaState
from tests.control.situations import (
    CAPACITY,
    NOW,
    SLO,
    known,
    replicas,
    saying,
    serving,
    signals,
    situation,
    spread,
)


def role_of(said, *sets):
    return situation(said, *(sets or (serving(said.live),))).roles[0]


def loaded(memory: RoleMemory, said, *sets) -> Load:
    return load_of(role_of(said, *sets), memory, now=NOW, lead_s=1000, law=LAW, slo=SLO)


def minute(memory: RoleMemory, said, *sets) -> Learnt:
    found = learned(memory, role_of(said, *sets), loaded(memory, said, *sets), slo=SLO, now=NOW, law=LAW)
    return found.learnt["set-a"]


def settled(**learnt) -> RoleMemory:
    memory = known().roles["serve"]
    return replace(memory, since=NOW - 10_000, learnt={"set-a": Learnt(**learnt)})


@pytest.mark.parametrize(
    ("starts", "lead"),
    [
        ((), 180),
        ((1200.0,), 180),
        ((120.0, 1200.0, 130.0), 180),
        ((100.0,) * 9 + (1200.0,), 100),
        ((400.0,) * 3, 400),
        ((100.0,) * 17 + (900.0,) * 3, 900),
    ],
)
def test_one_slow_start_of_a_few_is_not_what_everything_waits_for(starts, lead):
    memory = replace(RoleMemory(), starts=starts)
    assert lead_s(memory, role_of(signals(2)), LAW) == lead


def test_the_calm_after_a_burst_does_not_look_like_a_slow_replica():
    # p99 of the last five minutes is bad because of a moment with 60 in flight; 20 are there now.
    after_burst = signals(2, ttft=4.0, inflight=20, inflight_most=60.0)
    assert minute(settled(concurrency=50.0), after_burst).concurrency == 50
    always_few = signals(2, ttft=4.0, inflight=20, inflight_most=22.0)
    fewer = minute(settled(concurrency=50.0), always_few).concurrency
    assert fewer is not None
    assert fewer < 50


def test_a_replica_that_is_slow_beside_next_to_nothing_does_not_come_to_be_believed_to_carry_ever_less():
    # Each minute would ask for more replicas, which are as slow.
    slow = signals(2, ttft=4.0, inflight=10, inflight_most=12.0)
    assert minute(settled(concurrency=50.0), slow).concurrency == 50
    crowded = signals(2, ttft=4.0, inflight=10, inflight_most=12.0, kv=LAW.busy_kv)
    fewer = minute(settled(concurrency=50.0), crowded).concurrency
    assert fewer is not None
    assert fewer < 50, "its pool shows that it has much to do"


def test_what_a_limit_taught_that_no_number_of_replicas_keeps_fades_too():
    slow, memory = signals(2, ttft=4.0, inflight=10, inflight_most=10.0), settled(concurrency=15.0)
    for _ in range(24 * 60):
        memory = replace(memory, learnt={"set-a": minute(memory, slow)})
    assert (memory.learnt["set-a"].concurrency or 0) > 45


def test_what_one_bad_hour_taught_fades_while_the_limits_hold():
    calm = signals(2, ttft=0.5, inflight=5, inflight_most=6.0)
    memory = settled(concurrency=25.0)
    for _ in range(24 * 60):
        memory = replace(memory, learnt={"set-a": minute(memory, calm)})
    known = memory.learnt["set-a"].concurrency
    assert known is not None
    assert known > 45


@pytest.mark.parametrize(("slo", "requests"), [(SLO, 25.0), (NO_LIMITS, 50.0)], ids=["kept", "taken out"])
def test_what_limits_taught_counts_for_as_long_as_there_are_any(slo, requests):
    said, memory = signals(2, kv=0.01), settled(concurrency=25.0)
    load = load_of(role_of(said), memory, now=NOW, lead_s=1000, law=LAW, slo=slo)
    assert load.holds.by_limits == requests, "50 is what the plan says"


def test_a_queue_on_one_replica_says_nothing_of_those_that_are_half_empty():
    full, empty = saying(2, inflight=60, waiting=40, rate=5.0)[0], saying(2, inflight=2, rate=0.5)[1]
    said = replace(signals(2), replicas=(full, empty))
    memory = replace(settled(), owing_since=NOW - 1000)
    assert minute(memory, said).most == pytest.approx(5.0)


def test_the_most_that_a_replica_finished_is_no_limit_for_ever():
    calm = signals(2, inflight=5, rate=0.5)
    memory, believed = settled(most=2.0), [2.0]
    for _ in range(30 * 60):
        memory = replace(memory, learnt={"set-a": minute(memory, calm)})
        most = memory.learnt["set-a"].most
        if most is None:
            break
        believed.append(most)
    # It rises until the plan's own rate is the smaller one, and not for ever beside it.
    assert believed == sorted(believed)
    assert believed[-1] == pytest.approx(5.0, rel=0.01)
    assert memory.learnt["set-a"].most is None


def test_what_one_queue_of_long_answers_taught_is_doubled_within_one_and_a_half_hours():
    calm, memory = signals(2, inflight=5, rate=0.5), settled(most=1.0)
    for _ in range(90):
        memory = replace(memory, learnt={"set-a": minute(memory, calm)})
    most = memory.learnt["set-a"].most
    assert most is not None
    assert 2 <= most <= 2.5


def test_a_replica_full_of_long_requests_carries_what_it_works_and_not_what_has_ended_yet():
    each = replace(
        saying(1, inflight=60, waiting=40, rate=0.1)[0],
        prompt_tokens=5 * 600.0 * 120,
        generation_tokens=5 * 250.0 * 120,
    )
    lengths = replace(signals(1).latencies, prompt=spread(1200.0), output=spread(500.0))
    said = replace(signals(1), replicas=(each,), latencies=lengths)
    memory = replace(settled(), owing_since=NOW - 1000)
    for _ in range(20):
        memory = replace(memory, learnt={"set-a": minute(memory, said)})
    assert memory.learnt["set-a"].most == pytest.approx(5.0, rel=0.01)


@pytest.mark.parametrize(("queue", "most"), [(0, None), (1, 4.7), (2, 4.4), (4, 3.8)])
def test_the_few_that_queue_beside_others_shake_what_is_believed_of_all_no_more_than_their_share(queue, most):
    # The plan says 5 a second, those that queue finish 1: the longest prompts may have met just them.
    full, free = saying(1, inflight=50, waiting=30, rate=1.0)[0], saying(1, inflight=50, rate=1.0)[0]
    said = replace(
        signals(4), replicas=(*(full,) * queue, *(free,) * (4 - queue)), latencies=signals(0).latencies
    )
    memory = replace(settled(), owing_since=NOW - 1000)
    assert minute(memory, said).most == (most if most is None else pytest.approx(most, rel=0.01))


def test_what_slower_replicas_of_another_set_finish_says_nothing_of_the_first():
    queued = [
        replace(saying(1, inflight=50, waiting=30, rate=rate)[0], replica=f"pod-{place:03}")
        for place, rate in enumerate((4.0, 4.0, 1.0, 1.0))
    ]
    said = replace(signals(4), replicas=tuple(queued), latencies=signals(0).latencies)
    slower = serving(2, name="set-b", pool="l40s", replicas=replicas(2, first=2))
    memory = replace(settled(), owing_since=NOW - 1000)
    for _ in range(60):
        memory = replace(memory, learnt={"set-a": minute(memory, said, serving(2), slower)})
    assert memory.learnt["set-a"].most == pytest.approx(4.0, rel=0.02)


FULL_STEP_S = 0.2
STEPPING = replace(CAPACITY, max_batched_tokens=2048)
"""An engine whose step takes at most so many tokens."""


def of_full_steps(said, full_s=FULL_STEP_S, prompt=5000, output=300):
    """That, and what it taught: each token takes a share of a full step. A prompt of such a length fills two."""
    points = Points()
    for tokens in (512, 1024, 2048):
        points = points.add(tokens, full_s * tokens / 2048, weight=100)
    memory = replace(settled(concurrency=40.0, steps=StepMemory(points=points)), changed=NOW - 10_000)
    capacity = replace(STEPPING, input_tokens=prompt, output_tokens=output)
    role = situation(said, serving(said.live, capacity=capacity)).roles[0]
    return role, memory, load_of(role, memory, now=NOW, lead_s=1000, law=LAW, slo=SLO)


@pytest.mark.parametrize(
    ("itl", "ttft", "more"),
    [(0.15, 0.5, 5.0), (0.25, 0.5, None), (0.25, 3.0, 5.0), (0.05, 0.5, None)],
    ids=[
        "gaps that load makes long",
        "a gap is a full step",
        "first tokens late as well",
        "all within limits",
    ],
)
def test_no_replica_is_asked_for_where_a_gap_is_as_long_as_a_full_step(itl, ttft, more):
    said = signals(4, itl=itl, ttft=ttft, inflight=30, rate=2.0)
    role, memory, load = of_full_steps(said)
    assert load.holds.gap_s == pytest.approx(FULL_STEP_S, rel=0.03)
    found = slow(role, memory, load)
    assert found.need.latency == more
    why = "a step full of one prompt lasts"
    assert (found.told is not None and why in found.told.message) is (more is None and itl > FULL_STEP_S)


@pytest.mark.parametrize(
    ("full_s", "prompt", "output"),
    [(FULL_STEP_S, 400, 300), (FULL_STEP_S, 5000, 4000), (0.03, 5000, 300)],
    ids=[
        "only prompts together fill a step",
        "so few gaps are full steps that fewer requests have none among a hundred",
        "a full step was believed to keep the limit, which shows that the belief is wrong",
    ],
)
def test_gaps_as_long_as_a_full_step_ask_for_replicas_where_those_have_shorter_ones(full_s, prompt, output):
    role, memory, load = of_full_steps(signals(4, itl=0.25, inflight=30, rate=2.0), full_s, prompt, output)
    assert slow(role, memory, load).need.latency == 5.0
    concurrency = learned(memory, role, load, slo=SLO, now=NOW, law=LAW).learnt["set-a"].concurrency
    assert concurrency is not None
    assert concurrency < 40


def slow(role, memory, load):
    """What is asked for after two minutes so."""
    return asked(role, replace(memory, slow_since=NOW - 120), load, slo=SLO, now=NOW, law=LAW)


@pytest.mark.parametrize(("itl", "fewer"), [(0.15, True), (0.25, False)])
def test_a_full_step_between_two_tokens_is_no_sign_that_a_replica_carries_fewer(itl, fewer):
    role, memory, load = of_full_steps(signals(4, itl=itl, inflight=30, inflight_most=30.0, rate=2.0))
    learnt = learned(memory, role, load, slo=SLO, now=NOW, law=LAW).learnt["set-a"]
    assert learnt.concurrency is not None
    assert (learnt.concurrency < 40) is fewer


@pytest.mark.parametrize(
    ("itl", "full_s", "share"),
    [(0.095, 0.09, 0.25), (0.095, 0.11, 0.95), (0.12, 0.09, 1.2), (0.12, 0.11, 1.2)],
)
def test_a_gap_counts_for_none_only_where_it_keeps_the_limit_and_every_load_does(itl, full_s, share):
    # First tokens are at a quarter of theirs.
    assert ratio_of(signals(2, itl=itl, ttft=0.5), SLO, most_s=full_s) == pytest.approx(share)


@given(itl=st.floats(0.001, 10), ttft=st.floats(0.001, 100), step=st.floats(0.001, 10))
def test_what_load_cannot_change_is_left_out_and_nothing_is_added(itl, ttft, step):
    said = signals(2, itl=itl, ttft=ttft)
    every, pressing = ratio_of(said, SLO), ratio_of(said, SLO, step)
    assert every is not None
    assert pressing is not None
    assert ttft / 2.0 <= pressing <= every
    assert pressing == every or itl >= step > 0.1


def test_a_queue_that_is_not_paid_back_asks_for_more_than_its_size():
    # The engines turn away what their queues do not hold, so that the queue alone never says how much too few they are.
    queued = signals(4, ttft=8.0, inflight=45, waiting=12, rate=4.0)
    role, owing = role_of(queued), replace(settled(), owing_since=NOW - 600)
    wanted = {}
    for age in (20, 200, 299, 300):
        memory = replace(owing, since=NOW - age)
        wanted[age] = asked(role, memory, loaded(memory, queued), slo=SLO, now=NOW, law=LAW).need.latency
    # Until latencies are all of as many replicas as there are now, some of them are what the last step up is to cure.
    assert wanted == {20: None, 200: None, 299: None, 300: 5.0}


@pytest.mark.parametrize(
    ("starting", "up", "more"),
    [(1, 100, 10.0), (3, 100, 11.25), (0, 100, 11.25), (1, 10_000, 11.25), (1, None, 11.25)],
    ids=["on its way", "many on their way", "all are there", "it never came", "nobody asked for it"],
)
def test_a_latency_waits_for_the_replicas_that_the_last_step_up_asked_for(starting, up, more):
    # Eight were too few and ten were asked for; with each that comes to be ready a quarter more would be a larger number.
    queued = signals(9, ttft=8.0, inflight=45, waiting=12, rate=4.0)
    coming = replicas(starting, ReplicaState.STARTING, age=0, first=9)
    role = situation(queued, serving(replicas=(*replicas(9), *coming))).roles[0]
    memory = replace(
        settled(), since=NOW - 400, owing_since=NOW - 600, up_at=None if up is None else NOW - up
    )
    load = load_of(role, memory, now=NOW, lead_s=1000, law=LAW)
    assert asked(role, memory, load, slo=SLO, now=NOW, law=LAW).need.latency == more


def test_a_latency_alone_asks_for_a_quarter_more_at_most():
    slow = signals(4, ttft=8.0, inflight=40, rate=4.0)
    memory = replace(settled(), slow_since=NOW - 120)
    assert asked(role_of(slow), memory, loaded(memory, slow), slo=SLO, now=NOW, law=LAW).need.latency == 5.0
