"""Policies: each does what its published rule says, on what it can see."""

from array import array
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from plimsoll.control.samples import Window
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.facts.turns import TURN_S, TURNS
from plimsoll.simulate.compare import Comparison
from plimsoll.simulate.policies.heard import SPREADS, Heard
from plimsoll.simulate.policies.knative import Kpa
from plimsoll.simulate.policies.kubernetes import Hpa, Keda
from plimsoll.simulate.policies.oracle import Oracle, work_of
from plimsoll.simulate.policies.reference import Forecast, Reference
from plimsoll.simulate.policies.registry import KINDS, SWEPT, Stage
from tests.simulate.test_several import around, mixed
from tests.simulate.views import INF, kv, latencies, view, wish
from tests.simulate.worlds import SCENARIO, SLO, TIMES, joined, steady, world


@pytest.mark.parametrize(
    ("kind", "at"), [("ttft", [0, 3, 6]), ("itl", [1, 4, 7]), ("e2e", [2]), ("output_lengths", [8])]
)
def test_plimsolls_law_hears_of_a_histogram_when_the_operator_would(kind: str, at: list[int]):
    heard, window, before = Heard(TURN_S), Window().add(-TURN_S, [counted(kind, -TURN_S, 0.0)]), None
    for turn in range(len(TURNS)):
        at_s = turn * TURN_S
        window = window.add(at_s, [counted(kind, at_s, 1.0 + turn)])
        signals = heard.signals(window, now=at_s, live=["r"], gateway=None)
        now = getattr(signals.latencies, SPREADS[kind])
        assert (now != before) == (turn in at)
        before = now


def counted(kind: str, at: float, count: float) -> PodSample:
    said: dict[str, Any] = {kind: Histogram((1.0, INF), (count, count), count)}
    return PodSample(pod="r", at=at, **said)


@pytest.mark.parametrize(
    ("used", "silent", "pending", "expected"),
    [
        ((0.7, 0.7), 0, 0, 2),
        ((0.74, 0.72), 0, 0, 2),  # within the tolerance
        ((0.95, 0.95), 0, 0, 3),
        ((1.0, 1.0, 1.0), 0, 0, 5),
        ((1.0, 1.0), 0, 2, 4),  # those on their way count as idle: the ratio flips, nothing happens
        ((1.0, 1.0), 1, 0, 3),
        ((0.2, 0.2, 0.2), 1, 0, 2),  # a silent one counts as full going down
    ],
)
def test_hpa_follows_the_controllers_ratio(used, silent: int, pending: int, expected: int):
    policy = Hpa(0.7)
    policy.decide(view(15.0, *kv(*used), silent=silent, pending=pending))
    assert wish(policy, view(330.0, *kv(*used), silent=silent, pending=pending)) == expected


def test_hpa_goes_up_by_four_or_double_and_down_only_to_the_largest_wish_of_five_minutes():
    policy = Hpa(0.1)
    assert wish(policy, view(0.0, *kv(1.0, 1.0))) == 6
    policy = Hpa(0.7)
    assert wish(policy, view(0.0, *kv(0.7, 0.7, 0.7, 0.7))) == 4
    assert wish(policy, view(200.0, *kv(0.2, 0.2, 0.2, 0.2))) == 4
    assert wish(policy, view(400.0, *kv(0.2, 0.2, 0.2, 0.2))) == 2


def test_hpa_and_keda_keep_the_largest_wish_of_the_window_that_they_are_told():
    hpa = Hpa(0.7, 60.0)
    assert [wish(hpa, view(at, *kv(*[used] * 4))) for at, used in ((0.0, 0.7), (45.0, 0.2), (75.0, 0.2))] == [
        4,
        4,
        2,
    ]
    keda = Keda(5, 900.0)
    keda.decide(view(0.0, {"waiting": 20.0}, silent=3))
    assert [wish(keda, view(at, silent=4)) for at in (400.0, 890.0, 910.0)] == [4, 4, 1]


def test_hpa_without_any_metric_does_nothing():
    assert Hpa().decide(view(0.0, silent=3)) is None


def test_keda_reads_silence_as_zero_and_goes_down():
    policy = Keda(5)
    policy.decide(view(0.0, silent=6))
    assert wish(policy, view(400.0, silent=6)) == 1


def test_keda_counts_who_waits():
    assert wish(Keda(5), view(0.0, {"waiting": 18.0}, {"waiting": 3.0})) == 5


def flying(each: float, count: int) -> list[dict[str, Any]]:
    return [{"running": each, "waiting": 0.0}] * count


def test_kpa_averages_three_minutes_and_panics_on_one():
    policy = Kpa(32, 0.5)
    for tick in range(12):
        assert wish(policy, view(15.0 * tick, *flying(16.0, 2))) == 2
    wanted = None
    for tick in range(12, 17):
        wanted = policy.decide(view(15.0 * tick, *flying(60.0, 2)))
    assert wanted is not None
    assert wanted.reason == "Panic"
    assert wanted.replicas >= 7
    # Nothing is taken away while it panics, and at most half after.
    assert wish(policy, view(270.0, *flying(1.0, 8))) == 8
    later = [wish(policy, view(270.0 + 15 * tick, *flying(1.0, 8))) for tick in range(1, 30)]
    assert min(later) == 4


def test_kpa_averages_as_long_as_it_is_told():
    quick, slow = Kpa(32, 0.5, 60.0), Kpa(32, 0.5, 600.0)
    for tick in range(40):
        for policy in (quick, slow):
            policy.decide(view(15.0 * tick, *flying(16.0, 4)))
    fell = [
        [wish(policy, view(600.0 + 15 * tick, *flying(2.0, 4))) for tick in range(5)]
        for policy in (quick, slow)
    ]
    assert (min(fell[0]), min(fell[1])) == (2, 4)


@pytest.mark.parametrize(
    ("name", "window"),
    [("hpa", 300), ("keda", 300), ("kpa", 180), ("wva1", 300), ("wva2", 300), ("dynamo", 180)],
)
def test_beside_replicas_that_run_no_baseline_lets_one_go_before_it_has_seen_a_whole_window(
    name: str, window: int
):
    """A story begins with engines that are empty, which says nothing of its traffic."""
    kind = KINDS[name]
    policy = kind.make(
        Stage(scenario=SCENARIO, world=world(), arrivals=steady(2.0, 300.0)), kind.usual, kind.second.usual
    )
    looks = [5.0 + 15 * tick for tick in range(60)]
    wishes = [
        wish(policy, view(now, *[{**latencies(now, 0.1, 0.02, now), **kv(0.0)[0], "running": 0.0}] * 4))
        for now in looks
    ]
    first = next(at for at, wished in zip(looks, wishes, strict=True) if wished < 4)
    assert first == pytest.approx(window, abs=20)


def told_by_reference(counts, *, ticks: int = 2, before: int = 0, **changed: Any) -> list[int]:
    """Its wishes, tick by tick: first of idle replicas, then of such as say `counts`."""
    policy = Reference(capacity=SCENARIO.capacity, slo=SLO)
    idle = [{"kv_fraction": 0.0, "running": 0.0, "waiting": 0.0, "kv_tokens": 10_000, "finished": 0.0}]
    for tick in range(before):
        policy.decide(view(15.0 * (tick + 1), *idle * len(counts)))
    begin = 15.0 * (before + 1)
    return [wish(policy, view(begin + 15.0 * tick, *counts, **changed)) for tick in range(ticks)]


@pytest.mark.parametrize(
    ("used", "pending", "expected"),
    [
        ((0.7, 0.7), 0, [2, 2]),
        ((0.8, 0.8), 0, [2, 3]),  # asked for twice in a row
        ((0.8, 0.8), 1, [3, 3]),  # the one on its way is counted
        ((0.9,) * 20, 0, [20, 26]),
        ((0.95, 0.95), 0, [3, 3]),  # panic asks once
    ],
)
def test_the_reference_jumps_to_what_tokens_ask_for(used, pending: int, expected: list[int]):
    assert told_by_reference(kv(*used), pending=pending, most=40) == expected


def test_the_reference_counts_who_waits_by_the_tokens_they_will_hold():
    # 10 requests of 300 + 100 / 2 tokens beside 5,000 used: 8,500 of 7,000 that one may hold.
    one = [{"kv_fraction": 0.5, "running": 10.0, "waiting": 10.0, "kv_tokens": 10_000}]
    assert told_by_reference(one) == [1, 2]


def test_the_reference_at_most_doubles_or_adds_four():
    one = [{"kv_fraction": 0.9, "running": 10.0, "waiting": 500.0, "kv_tokens": 10_000}]
    assert told_by_reference(one, ticks=1) == [5]


def test_the_reference_asks_for_replicas_where_limits_are_missed_for_a_minute_and_something_is_to_do():
    def late(tick: int, used: float) -> list[dict[str, Any]]:
        return [{**latencies(100.0 * tick, 3.0, 0.05, 0.0), "kv_fraction": used, "kv_tokens": 10_000}] * 2

    for used, expected in ((0.6, 4), (0.1, 2)):
        policy = Reference(capacity=SCENARIO.capacity, slo=SLO)
        wishes = [wish(policy, view(15.0 * tick, *late(tick, used))) for tick in range(1, 9)]
        assert (set(wishes[:4]), max(wishes)) == ({2}, expected)


def test_the_reference_lets_a_tenth_go_after_a_window_of_twice_its_start_up():
    idle = kv(*[0.1] * 12)
    wishes = told_by_reference(idle, ticks=40)
    assert set(wishes[:23]) == {12}
    assert min(wishes) == 11
    alone = told_by_reference(kv(0.1, 0.1), ticks=40)
    assert min(alone) == 1


@pytest.mark.parametrize("changed", [{"silent": 2}, {"pending": 1}], ids=["silent ones", "one on its way"])
def test_the_reference_lets_nobody_go_of_whom_it_does_not_know_that_it_is_idle(changed: dict[str, int]):
    here = told_by_reference(kv(0.3, 0.3), ticks=60, **changed)
    assert min(here) == here[0]


def test_the_reference_looks_ahead_by_trend_and_by_the_day_before():
    rising = Forecast()
    for tick in range(80):
        rising.add(15.0 * tick, 1 + tick / 40)
    assert rising.at(15.0 * 79, 150) > 1 + 80 / 40
    days = Forecast()
    for tick in range(2 * 5760 + 1):
        days.add(15.0 * tick, 9.0 if 2400 <= tick % 5760 < 2700 else 1.0)
    before_the_rush = 15.0 * (5760 * 2)
    assert days.at(before_the_rush, 2400 * 15) == 9.0
    assert days.at(before_the_rush, 1200 * 15) == pytest.approx(1.0, abs=0.01)


def test_the_oracle_goes_up_a_start_before_the_load_does():
    work = [60.0] * 20 + [600.0] * 20 + [60.0] * 30
    policy = Oracle(work, full=1.0)
    assert policy.decide(view(0.0, *kv(0.1))) is None
    assert wish(policy, view(18 * 60.0, *kv(0.1))) == 10
    assert policy.decide(view(35 * 60.0, *kv(*[0.1] * 10))) is None
    assert wish(policy, view(45 * 60.0, *kv(*[0.1] * 10))) == 1


def test_work_grows_with_prompts_and_answers():
    here = world()
    short, long = (sum(work_of(steady(1.0, 60.0, asked=asked), here)) for asked in (100, 200))
    assert short < long < 2 * short
    assert short > 60 * 300 * TIMES.prompt_token


def test_prompts_that_are_refused_are_no_work_and_answers_only_what_the_context_leaves_them():
    here, fits = world(), steady(1.0, 600.0)
    refused = replace(fits, inputs=array("q", [60_000] * len(fits)))
    assert sum(work_of(refused, here)) == 0
    both = joined(fits, refused)
    assert work_of(both, here)[:10] == pytest.approx(work_of(fits, here)[:10])
    assert sum(work_of(both, here)) == pytest.approx(sum(work_of(fits, here)))
    whole, cut = (work_of(steady(1.0, 600.0, given=4000, asked=asked), here) for asked in (96, 9000))
    assert cut == whole


def test_where_every_prompt_is_refused_one_replica_begins_and_the_sets_are_taken_to_carry_alike():
    arrivals = steady(2.0, 300.0, given=60_000)
    stage = Stage(scenario=mixed(), world=around(mixed()), arrivals=arrivals)
    (begun, *_) = Comparison(stage).run("hpa", 0.7).outcome.points
    assert begun.told == 1


@pytest.mark.parametrize("name", KINDS)
def test_every_policy_is_made_by_its_name_and_says_its_settings(name: str):
    stage = Stage(scenario=SCENARIO, world=world(), arrivals=steady(2.0, 300.0))
    kind = KINDS[name]
    seen = view(20.0, *[{**latencies(9.0, 0.1, 0.02, 9.0), "kv_fraction": 0.3, "kv_tokens": 24000}])
    for value, second in product(kind.tried or (3,), kind.second.tried):
        policy = kind.make(stage, value, second)
        assert policy.name == name
        assert policy.settings.items() >= kind.named(value, second).items()
        policy.decide(seen)


@pytest.mark.parametrize("name", SWEPT)
def test_what_is_usual_is_among_what_is_tried(name: str):
    kind = KINDS[name]
    assert kind.usual in kind.tried
    assert kind.second.usual in kind.second.tried


def test_every_baseline_but_the_plain_law_has_a_second_parameter():
    assert [name for name in SWEPT if not KINDS[name].second.name] == ["reference"]
