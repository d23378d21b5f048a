"""Scrapes that fail for a while, and answers that are a few seconds older: neither makes traffic of what was counted long ago, nor lets
replicas go whose load was only not heard of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plimsoll.control.decision import RoleDecision
from plimsoll.control.memory import Memory
from plimsoll.control.samples import Window
from plimsoll.control.scaling import decide
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Bounds, Capacity, Replica, ReplicaState, Role, ServingSet, Situation
from plimsoll.facts.pod_sample import PodSample

BEGAN = 1_000_000.0
SCRAPE_S = 15.0
CAPACITY = Capacity(
    kv_tokens=200_000,
    max_num_seqs=64,
    concurrency=40,
    requests_per_second=2.0,
    input_tokens=500,
    output_tokens=200,
)
EXPORTS = frozenset(
    {"kv_fraction", "preemptions", "finished", "errors", "refused", "prompt_tokens", "generation_tokens"}
)


def sample(
    pod: str, at: float, rate: float, *, counted_at: float | None = None, preempted: float = 0.0
) -> PodSample:
    """Of a replica that has served at this rate for a day."""
    ended = ((at if counted_at is None else counted_at) - BEGAN + 86_400) * rate
    return PodSample(
        pod=pod, at=at, kv_fraction=0.05, kv_tokens=200_000, running=20.0, waiting=0.0, preemptions=preempted,
        finished=ended, errors=0.0, refused=0.0, prompt_tokens=500 * ended, generation_tokens=200 * ended,
    )  # fmt: skip


@pytest.mark.parametrize("preempted", [1.0, 12.0])
def test_a_counter_that_has_just_begun_and_an_answer_that_is_older_are_no_restart(preempted: float) -> None:
    """Of a pair behind one address the one has scraped the first preemptions, and the other has not."""
    window = Window()
    for at in range(0, 300, 30):
        window = window.add(BEGAN + at, [sample("a", BEGAN + at, 1.0)])
    for at, counted_at, count in ((300, 307, preempted), (307, 300, 0.0), (337, 337, preempted)):
        one = sample("a", BEGAN + at, 1.0, counted_at=BEGAN + counted_at, preempted=count)
        window = window.add(BEGAN + at, [one])
        said = signals_of(window, now=BEGAN + at, live=["a"])
        assert said.arrivals_per_s == pytest.approx(1.0, abs=0.1)


def heard(count: int, away: int, gap_s: float, rate: float, until: float) -> Iterator[tuple[float, Signals]]:
    """What replicas say of which some are not scraped for a while, half an hour after the begin."""
    pods, window = [f"p{place}" for place in range(count)], Window()
    for look in range(int(until / SCRAPE_S)):
        since = look * SCRAPE_S - 1800
        silent = away if 0 <= since < gap_s else 0
        at = BEGAN + look * SCRAPE_S
        window = window.add(at + 3, [sample(pod, at, rate) for pod in pods[silent:]])
        yield since, signals_of(window, now=at + 3, live=pods)


@pytest.mark.parametrize("gap_s", [90.0, 270.0])
def test_a_replica_that_was_not_scraped_for_a_while_makes_the_rates_of_others_no_smaller(
    gap_s: float,
) -> None:
    for since, said in heard(10, 1, gap_s, 1.0, 3600):
        if since >= gap_s:
            assert said.arrivals_per_s == pytest.approx(10.0, rel=0.02), f"{since - gap_s:.0f} s after it"
            assert said.recent_arrivals_per_s == pytest.approx(10.0, rel=0.02)


def decided(gap_s: float, away: int, window_s: float | None) -> Iterator[tuple[float, RoleDecision]]:
    memory, told = Memory(), 10
    for since, said in heard(10, away, gap_s, 1.7, 4500):
        there = tuple(
            Replica(id=f"p{place}", state=ReplicaState.READY, since=BEGAN - 5000, created=BEGAN - 5200)
            for place in range(10)
        )
        serving = ServingSet(name="s", pool="x", capacity=CAPACITY, replicas=there, wanted=told)
        role = Role(sets=(serving,), signals=said, bounds=Bounds(min=1, max=40), exports=EXPORTS)
        situation = Situation(name="team/chat", roles=(role,), down_window_s=window_s)
        decision = decide(now=said.at, situation=situation, memory=memory)
        memory = decision.memory
        yield since, decision.roles[0]


@pytest.mark.parametrize(("gap_s", "window_s"), [(255.0, 225.0), (600.0, None), (600.0, 120.0)])
@pytest.mark.parametrize("away", [1, 3, 5])
def test_no_replica_goes_when_those_come_back_that_were_not_heard(
    gap_s: float, window_s: float | None, away: int
) -> None:
    before = [one.replicas for since, one in decided(0.0, 0, window_s) if since > 0]
    assert set(before) == {10}, "ten are needed, and nothing else is looked at here"
    fewer = [
        (since, one.message)
        for since, one in decided(gap_s, away, window_s)
        if since > 0 and one.replicas < 10
    ]
    assert fewer == []
