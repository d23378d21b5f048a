"""Samples of replicas become sums, rates and quantiles; what is missing stays missing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control.samples import Window
from plimsoll.control.signals import signals_of
from plimsoll.facts.histograms import Histogram, is_cumulative, total
from plimsoll.facts.pod_sample import PodSample

BOUNDS = (0.1, 1.0, 10.0, math.inf)


def histogram(*counts: float, bounds=BOUNDS) -> Histogram:
    return Histogram(bounds, counts, sum=float(sum(counts)))


def fed(*rows: PodSample) -> Window:
    window = Window()
    for row in rows:
        window = window.add(row.at, [row])
    return window


def test_a_counter_that_begins_again_never_lowers_what_was_counted():
    rows = [
        PodSample(pod="a", at=t, finished=f, preemptions=p, running=0.0)
        for t, f, p in ((0, 100, 50), (15, 130, 50), (30, 5, 0), (45, 20, 0), (60, 3, 1))
    ]
    said = signals_of(fed(*rows), now=60, live=["a"])
    assert said.sum("finished") == 30 + 5 + 15 + 3
    assert said.sum("preemptions") == 1


def test_a_counter_that_begins_again_after_it_was_not_told_once_never_lowers_what_was_counted():
    rows = [
        PodSample(pod="a", at=t, finished=f, preemptions=p, running=0.0)
        for t, f, p in (
            (0, 1000, 50),
            (15, 1010, 50),
            (30, None, 60),
            (45, None, None),
            (60, 5, 1),
            (75, 12, None),
        )
    ]
    track = fed(*rows).tracks["a"]
    assert [sample.finished for sample in track.samples] == [1000, 1010, None, None, 1015, 1022]
    assert [sample.preemptions for sample in track.samples] == [50, 50, 60, None, 61, None]


def test_an_older_answer_of_another_prometheus_is_no_restart():
    """Of a pair behind one address, of which the one scrapes a little later than the other."""
    rows = [
        PodSample(
            pod="a", at=t, finished=f, generation_tokens=100 * f, preemptions=0.0, running=4.0, waiting=0.0
        )
        for t, f in ((0, 10_000), (15, 10_030), (30, 10_010), (45, 10_090), (60, 10_070), (120, 10_240))
    ]
    said = signals_of(fed(*rows), now=120, live=["a"])
    assert said.sum("finished") == 240
    assert said.arrivals_per_s == 2.0


def test_an_engine_that_had_hardly_counted_before_it_began_anew_is_soon_heard_again():
    rows = [
        PodSample(pod="a", at=t, finished=f, prompt_tokens=p, running=0.0, waiting=0.0)
        for t, f, p in ((0, 1, 300), (15, 1, 200), (30, 1, 200), (45, 1, 200), (60, 1, 200), (75, 2, 500))
    ]
    track = fed(*rows).tracks["a"]
    assert [(sample.at, sample.prompt_tokens) for sample in track.samples] == [(0, 300), (60, 500), (75, 800)]


FULL = [(0, 1000, 150, 300), (15, 1075, 150, 300)]


@pytest.mark.parametrize(
    ("rows", "arrived"),
    [
        ([*FULL, (60, 75, 20, 0)], 75 + 75 + 20),
        ([(0, 1000, 150, 0), FULL[1], (60, 75, 20, 0)], 75 + 300 + 75 + 20),
        ([FULL[0], (15, 1510, 0, 15), (60, 75, 20, 0)], 510 - 435 + 75 + 20),
        ([*FULL, (60, None, 10, 0), (75, 75, 20, 0)], 75 + 75 + 20),
        ([*FULL, (60, 10, 100, 200), (75, 2, 20, 0)], 75 + 10 + 300 + 2 + 20),
        ([*FULL, (60, 75, 20, None)], 75 + 75 + 20),
    ],
    ids=["full", "filling up", "drained", "the next counts nothing yet", "twice", "no queue told since"],
)
def test_what_is_lost_with_an_engine_had_arrived_and_takes_nothing_from_what_arrives_later(rows, arrived):
    told = [PodSample(pod="a", at=t, finished=f, running=r, waiting=w) for t, f, r, w in rows]
    (one,) = signals_of(fed(*told), now=rows[-1][0], live=["a"]).replicas
    assert one.arrived == arrived


def test_requests_that_clients_gave_up_hide_none_of_those_that_came_since():
    told = [
        PodSample(pod="a", at=t, finished=f, running=r, waiting=0)
        for t, f, r in ((0, 1000, 5), (15, 1003, 0))
    ]
    other = [PodSample(pod="b", at=t, finished=f, running=0, waiting=0) for t, f in ((0, 0), (15, 30))]
    said = signals_of(fed(*told, *other), now=15, live=["a", "b"])
    assert [one.arrived for one in said.replicas] == [0, 30]
    assert said.arrivals_per_s == 2.0


def test_an_engine_that_ends_again_before_it_has_counted_who_finished_loses_nobody_twice():
    told = [
        PodSample(pod="a", at=t, finished=f, generation_tokens=g, running=r, waiting=0)
        for t, f, g, r in ((0, 1000, 9000, 150), (15, 1000, 9000, 150), (60, None, 90, 5), (75, 7, 9, 20))
    ]
    (one,) = signals_of(fed(*told), now=75, live=["a"]).replicas
    assert one.arrived == 7 + 20


def test_what_was_never_said_is_none_and_not_zero():
    said = signals_of(fed(PodSample(pod="a", at=0), PodSample(pod="a", at=15)), now=15, live=["a"])
    assert (said.inflight, said.arrivals_per_s, said.held_each(), said.preempted_share) == (None,) * 4
    assert said.latencies.ttft is None


def test_one_sample_has_gauges_and_no_rates():
    first = PodSample(pod="a", at=0, running=3.0, waiting=0.0, finished=1e6)
    said = signals_of(fed(first), now=0, live=["a"])
    assert (said.inflight, said.arrivals_per_s) == (3.0, None)


@pytest.mark.parametrize(
    "said", [{}, {"running": 3.0}, {"waiting": 3.0}], ids=["neither", "no queue", "no batch"]
)
def test_a_replica_that_does_not_say_both_who_runs_and_who_waits_is_silent_and_not_idle(said):
    rows = [PodSample(pod="a", at=at, **said) for at in (0.0, 15.0)]
    found = signals_of(fed(*rows), now=15, live=["a", "gone"])
    (one,) = found.replicas
    assert (one.inflight, one.inflight_mean, one.inflight_most) == (None,) * 3
    assert found.silent == 2


def test_a_queue_that_is_no_longer_told_of_takes_nothing_from_what_arrived():
    rows = [
        PodSample(pod="a", at=0, finished=100.0, running=10.0, waiting=50.0),
        PodSample(pod="a", at=120, finished=160.0, running=10.0),
    ]
    assert signals_of(fed(*rows), now=120, live=["a"]).arrivals_per_s == pytest.approx(0.5)


def test_preemptions_while_nothing_finishes_are_a_storm_and_not_none():
    rows = [PodSample(pod="a", at=at, preemptions=2.0 * at, finished=7.0) for at in (0, 15)]
    assert signals_of(fed(*rows), now=15, live=["a"]).preempted_share == 30.0


def test_a_ratio_is_of_the_replicas_that_say_both_of_its_figures():
    rows = []
    for at, preempted, finished, hits, queries in ((0, 0.0, 0.0, 0.0, 0.0), (15, 5.0, 10.0, 30.0, 60.0)):
        both = PodSample(
            pod="a", at=at, running=10.0, kv_fraction=0.5, kv_tokens=1000,
            preemptions=preempted, finished=finished, prefix_hits=hits, prefix_queries=queries,
        )  # fmt: skip
        rows += [both, replace(both, pod="b", kv_fraction=None, preemptions=None, prefix_hits=None)]
    said = signals_of(fed(*rows), now=15, live=["a", "b"])
    assert (said.held_each(), said.preempted_share, said.prefix_share) == (50.0, 0.5, 0.5)


@pytest.mark.parametrize(("age", "coverage"), [(0, 1.0), (60, 1.0), (61, 0.0)])
def test_older_than_a_minute_is_missing(age, coverage):
    assert signals_of(fed(PodSample(pod="a", at=0)), now=age, live=["a"]).coverage == coverage


def test_a_sample_from_the_future_is_not_fresh():
    assert signals_of(fed(PodSample(pod="a", at=100)), now=0, live=["a"]).replicas == ()


def test_those_whose_samples_come_and_are_not_of_now_are_told_from_those_that_have_none():
    late = [PodSample(pod=pod, at=at) for pod, at in (("a", 10.0), ("b", 9.0), ("c", 200.0), ("d", 100.0))]
    window = Window().add(90, [PodSample(pod="e", at=20.0)]).add(100, late)
    said = signals_of(window, now=100, live=["a", "b", "c", "d", "e", "f"])
    assert (said.live, len(said.replicas), said.late, said.ahead) == (6, 1, 2, 1)


@pytest.mark.parametrize("ahead", [0.2, 60.0])
def test_a_sample_that_is_younger_than_the_tick_is_of_now(ahead):
    said = signals_of(fed(PodSample(pod="a", at=ahead, running=1.0, waiting=0.0)), now=0, live=["a"])
    assert (said.coverage, said.inflight) == (1.0, 1.0)


def test_those_that_fail_or_find_the_queue_full_arrived_too():
    rows = [
        PodSample(pod="a", at=t, finished=2.0 * t, errors=1.0 * t, refused=4.0 * t, running=10.0)
        for t in range(0, 135, 15)
    ]
    said = signals_of(fed(*rows), now=120, live=["a"])
    assert said.arrivals_per_s == said.recent_arrivals_per_s == pytest.approx(7.0)
    assert (said.rate("finished"), said.rate("errors"), said.rate("refused")) == (2.0, 1.0, 4.0)


def test_arrivals_count_a_growing_queue():
    rows = [
        PodSample(pod="a", at=t, finished=2.0 * t, running=10.0, waiting=3.0 * t) for t in range(0, 135, 15)
    ]
    said = signals_of(fed(*rows), now=120, live=["a"])
    assert said.arrivals_per_s == pytest.approx(5.0)
    assert said.recent_arrivals_per_s == pytest.approx(5.0)


def test_a_young_replica_is_counted_over_the_time_of_the_old_ones():
    window = Window()
    for t in range(0, 135, 15):
        rows = [PodSample(pod="old", at=t, finished=1.0 * t, running=10.0)]
        if t >= 105:
            rows.append(PodSample(pod="new", at=t, finished=0.0, running=2.0 * (t - 105)))
        window = window.add(t, rows)
    said = signals_of(window, now=120, live=["old", "new"])
    assert said.arrivals_per_s == pytest.approx((120 + 30) / 120)


def test_histograms_are_summed_and_then_asked():
    window = Window()
    for t, fast, slow in ((0, 0.0, 0.0), (300, 990.0, 10.0)):
        rows = [
            PodSample(pod="a", at=t, ttft=histogram(fast, fast, fast, fast)),
            PodSample(pod="b", at=t, ttft=histogram(0.0, 0.0, slow, slow)),
        ]
        window = window.add(t, rows)
    ttft = signals_of(window, now=300, live=["a", "b"]).latencies.ttft
    assert ttft is not None
    assert ttft.samples == 1000
    assert ttft.p95 < 0.1
    assert ttft.p99 == pytest.approx(0.1)
    assert ttft.worst == 10.0


def test_a_histogram_that_knows_no_bound_but_infinity_has_no_quantile_and_not_one_of_zero():
    said = [
        PodSample(pod="a", at=t, ttft=histogram(count, bounds=(math.inf,)))
        for t, count in ((0, 0), (300, 900))
    ]
    window = Window().add(0, said[:1]).add(300, said[1:])
    assert signals_of(window, now=300, live=["a"]).latencies.ttft is None
    assert histogram(900, bounds=(math.inf,)).worst is None


def test_what_lies_above_every_bound_is_told_as_the_largest_one():
    assert histogram(0, 900, bounds=(2.0, math.inf)).quantile(0.99) == 2.0
    assert histogram(0, 900, bounds=(2.0, math.inf)).worst == 2.0


def test_the_window_forgets_pods_and_minutes():
    window = Window()
    for t in range(0, 1200, 15):
        window = window.add(t, [PodSample(pod=f"pod-{t // 600}", at=t)])
    assert sorted(window.tracks) == ["pod-1"]
    assert len(window.tracks["pod-1"].samples) <= 24


@pytest.mark.parametrize("step", [15, 60, 90, 110, 120, 180, 240, 300])
def test_samples_span_what_latencies_look_back_however_far_they_are_apart(step):
    window = Window()
    for at in range(0, 20 * step, step):
        window = window.add(at, [PodSample(pod="a", at=at)])
        assert signals_of(window, now=at, live=["a"]).latencies.whole is (at >= 300)
    assert len(window.tracks["a"].samples) <= 330 // step + 2


def test_other_bounds_share_what_they_share():
    merged = total([histogram(1, 2, 3, 4), histogram(5, 6, bounds=(1.0, math.inf))])
    assert merged is not None
    assert (merged.bounds, merged.counts) == ((1.0, math.inf), (7, 10))


@pytest.mark.parametrize(
    ("counts", "answer"), [((1, 2, 3), True), ((2, 1, 3), False), ((-1, 0, 0), False), ((), True)]
)
def test_counts_that_fall_are_no_histogram(counts, answer):
    assert is_cumulative(counts) is answer


@given(st.lists(st.floats(0, 100), min_size=4, max_size=4), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_a_bucket_that_holds_it(steps, share):
    counts, running = [], 0.0
    for step in steps:
        running += step
        counts.append(running)
    asked = histogram(*counts)
    value = asked.quantile(share)
    if value is None:
        assert counts[-1] <= 0
    else:
        assert 0 <= value <= 10.0
        assert (asked.quantile(min(0.999, share + 0.001)) or 0.0) >= value
