"""Traffic as it was seen: kept for long enough, and told only where another plan would follow from it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.v1alpha1 import status
from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.capacity import capacity_of
from plimsoll.control.latencies import Latencies
from plimsoll.control.signals import LATENCY_S, Signals
from plimsoll.control.workload import Lengths, Observed, better_declaration, bursts_of, observe, status_of
from plimsoll.planning import codec
from tests.control.situations import NOW, saying, spread
from tests.planning.asking import LLAMA, QWEN_32B, deployment, planned, pool

SEEN = Observed(
    since=NOW - 7200,
    at=NOW,
    prompt=Lengths(p50=900, p95=3100, p99=4100),
    output=Lengths(p50=200, p95=500, p99=800),
    requests=20_000,
    peak_rate=12.0,
    peak_inflight=90,
)
DECLARED = Workload(
    input_tokens=TokenPercentiles(p50=900, p95=3000),
    output_tokens=TokenPercentiles(p95=500),
    requests_per_second="12",
)


def said(prompt=1000.0, output=300.0, rate=2.0):
    latencies = Latencies(prompt=spread(prompt), output=spread(output))
    return Signals(at=NOW, live=2, replicas=saying(2, rate=rate), latencies=latencies)


def test_the_first_look_is_taken_as_it_is_and_later_ones_move_it_slowly():
    seen = observe(Observed(), said(), NOW)
    for minute in range(1, 600):
        seen = observe(seen, said(), NOW + 60 * minute)
    assert seen.prompt is not None
    assert seen.prompt.p99 == pytest.approx(1000)
    moved = observe(seen, said(prompt=4000.0), NOW + 60 * 600)
    assert moved.prompt is not None
    assert 1000 < moved.prompt.p99 < 1020
    assert codec.decode(Observed, codec.encode(moved)) == moved


@pytest.mark.parametrize(
    ("times", "watched"),
    [
        ([0, 60, 120], 120),
        ([0, 60, 60, 120], 120),
        ([0, 60, 60 + 82800, 120 + 82800], 120 + LATENCY_S),  # nobody was there for most of a day
        ([0, 60, 60 - 7200, 120 - 7200], 120),  # the clock was put back
    ],
)
def test_the_time_that_traffic_was_watched_is_that_of_the_looks_alone(times, watched):
    seen = Observed()
    for at in times:
        seen = observe(seen, said(), NOW + at)
        seen = codec.decode(Observed, codec.encode(seen))
    assert seen.watched_s == watched
    assert seen.since == seen.at - watched


def test_the_begin_of_the_observation_stands_still_while_somebody_watches():
    seen = observe(Observed(), said(), NOW + 0.1)
    for tick in range(1, 2000):
        seen = observe(seen, said(), NOW + 0.1 + 15.3 * tick)
        assert seen.since == NOW + 0.1


def test_a_peak_is_remembered_for_days():
    seen = observe(observe(Observed(), said(rate=10.0), NOW), said(rate=1.0), NOW + 60)
    assert seen.peak_rate == pytest.approx(20, rel=0.01)
    assert status_of(seen).requests_per_second in {"20", "19.998"}


def held(*looks, before=None):
    """The peak of what is in flight: each look is seconds after the one before, running and waiting of now, and the mean and the most of before."""
    seen, at = Observed(at=NOW, since=NOW, peak_inflight=before), NOW
    for passed, running, waiting, mean, most in looks:
        at += passed
        (one,) = saying(1, inflight=running, waiting=waiting)
        one = replace(one, inflight_mean=mean, inflight_most=most)
        seen = observe(seen, Signals(at=at, live=1, replicas=(one,)), at)
    return seen.peak_inflight


OUTAGE = (
    *[(15, 150, 15 * tick, 150 + 7 * tick, 150 + 15 * tick) for tick in range(1, 20)],
    *[(15, 150, 1850, 2000, 2000)] * 40,
    *[(15, 250, 1850 - 180 * tick, 2100 - 180 * tick, 2000) for tick in range(10)],
    *[(15, 250, 50, 400, 2000)] * 5,
)
"""A node is lost for a quarter of an hour, and what has queued fills the engines until it is gone."""


@pytest.mark.parametrize(
    ("before", "looks", "least", "most"),
    [
        (200.0, OUTAGE, 199, 235),
        (None, OUTAGE[20:40], 150, 180),
        (200.0, [(15, 900, 0, 210, 900)], 209, 211),
        (200.0, [(15, 400, 20, 400, 430)] * 8, 400, 401),
        (200.0, [(60, 256, 744, 1000, 1000)] * 3 * 24 * 60, 900, 1000),
    ],
    ids=["an outage", "an outage at first sight", "a moment", "load", "a queue that stands for days"],
)
def test_a_backlog_is_no_peak_until_it_has_stood_for_long(before, looks, least, most):
    assert least <= held(*looks, before=before) <= most


def test_status_has_all_that_was_seen_of_traffic_and_leaves_out_what_nobody_tells():
    telling = replace(said(), replicas=saying(2, prefix_queries=1000.0, prefix_hits=250.0))
    told = status_of(observe(Observed(), telling, NOW, burstiness=4.26))
    assert (told.input_tokens, told.output_tokens) == (
        status.Lengths(p50=500, p95=900, p99=1000),
        status.Lengths(p50=150, p95=270, p99=300),
    )
    assert (told.shared_prefix_percent, told.concurrency) == (25, 40)
    assert (told.requests_per_second, told.burstiness) == ("4", "4.3")
    silent = status_of(observe(Observed(), Signals(at=NOW, live=2, replicas=()), NOW))
    assert set(silent.model_dump().values()) == {None}


def test_silence_forgets_nothing():
    seen = observe(Observed(), said(), NOW)
    silent = observe(seen, Signals(at=NOW, live=2, replicas=()), NOW + 60)
    assert (silent.prompt, silent.peak_rate) == (seen.prompt, seen.peak_rate)


class Planner:
    """Plans by the longest prompt alone."""

    def __init__(self):
        self.asked = []

    def __call__(self, workload):
        self.asked.append(workload)
        return _Plan(workload.input_tokens.p95)


class _Plan:
    def __init__(self, size, findings=()):
        self.sets, self.replicas, self.findings = (_Set(size),), 1, findings


class _Set:
    def __init__(self, size):
        self.replicas, self.layout, self.digest = 1, f"tp{1 if size < 5000 else 2}", "x"
        self.hardware = self
        self.gpu, self.memory_bytes = "H100-80GB", 80 * 2**30
        self.devices_per_replica = 1 if size < 5000 else 2

    def __str__(self):
        return self.gpu


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (SEEN, None),
        (
            replace(SEEN, prompt=Lengths(p50=900, p95=9100, p99=12100)),
            "inputTokens p50 900, p95 9100, p99 13000",
        ),
        (replace(SEEN, prompt=Lengths(p50=900, p95=4100, p99=4100)), None),
        (replace(SEEN, prompt=Lengths(p50=900, p95=9100, p99=12100), requests=10), None),
        (replace(SEEN, prompt=Lengths(p50=900, p95=9100, p99=12100), since=NOW - 60), None),
    ],
)
def test_what_to_declare_is_told_where_another_plan_would_follow(seen, words):
    told = better_declaration(seen, DECLARED, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert (told is None) == (words is None)
    if told is not None:
        assert words in told.message
        assert "tp2" in told.message
        assert told.reason == "WorkloadDiffers"


DAY = 86400.0
EMPTY = 0.3
"""Share of the pool in use at p95 below which a deployment is too large for its load."""


@pytest.mark.parametrize(("watched_s", "is_told"), [(2 * 3600, False), (DAY - 60, False), (DAY, True)])
def test_a_pool_that_stands_empty_for_a_day_has_a_smaller_plan_told_of_and_an_hour_of_it_none(
    watched_s: float, is_told: bool
):
    """By the real planner: declared for long prompts of many, while a few short ones come."""
    declared = Workload.model_validate({
        "contextTokens": 32768, "concurrency": 64, "inputTokens": {"p50": 8000}, "outputTokens": {"p50": 500},
    })  # fmt: skip

    def plan_for(workload: Workload):
        return planned(deployment(QWEN_32B, workload=workload.to_dict()))

    pinned = plan_for(declared)
    prompt, output = Lengths(p50=300, p95=600, p99=900), Lengths(p50=100, p95=200, p99=300)
    quiet = replace(SEEN, since=NOW - watched_s, prompt=prompt, output=output, peak_inflight=4)
    (one,) = pinned.sets
    assert 4 * (prompt.p95 + output.p95) < EMPTY * capacity_of(one).kv_tokens
    told = better_declaration(quiet, declared, pinned, plan_for)
    assert (told is not None) is is_told
    if told is not None:
        assert one.devices_per_replica * one.replicas == 4
        assert told.message.endswith("the plan would be 1 x tp1 on H100-SXM-80GB")


def test_a_plan_that_looks_the_same_is_told_by_what_its_engines_would_be_told_otherwise():
    """By the real planner: the same layout on the same GPU, for fewer requests at once."""
    declared = Workload.model_validate({"contextTokens": 32768, "concurrency": 64})

    def plan_for(workload: Workload):
        return planned(deployment(QWEN_32B, workload=workload.to_dict(), topology={"tensor": 4}))

    pinned = plan_for(declared)
    told = better_declaration(replace(SEEN, since=NOW - DAY, peak_inflight=4), declared, pinned, plan_for)
    assert told is not None
    (now,), (looks, _, said) = pinned.sets, told.message.partition(", with max_num_seqs ")
    assert looks.endswith(f"the plan would be 1 x tp4 on {now.hardware}")
    assert f" instead of {now.settings.max_num_seqs}" in said


def test_a_larger_plan_is_told_of_within_the_hour_as_users_wait_for_it():
    crowded = replace(SEEN, since=NOW - 3600, prompt=Lengths(p50=900, p95=9100, p99=12100))
    assert better_declaration(crowded, DECLARED, _Plan(3000), Planner()) is not None  # type: ignore[arg-type]


def test_the_load_is_proposed_in_the_form_that_was_declared():
    planner = Planner()
    busy = replace(SEEN, peak_rate=40.0, peak_inflight=500)
    better_declaration(busy, DECLARED, _Plan(3000), planner)  # type: ignore[arg-type]
    crowd = DECLARED.model_copy(update={"requests_per_second": None, "concurrency": 100})
    better_declaration(busy, crowd, _Plan(3000), planner)  # type: ignore[arg-type]
    first, second = planner.asked
    assert (first.requests_per_second, first.concurrency) == ("40", None)
    assert (second.requests_per_second, second.concurrency) == (None, 500)


SHORT = {"inputTokens": {"p50": 1024, "p95": 2048}, "outputTokens": {"p50": 256}, "contextTokens": 8192}
FLEET = pool(nodes=20)


def undeclared(model: str, rate: float):
    """What would be told of so many requests a second where none are declared, the plan, and the one for them: by the real planner."""

    def plan_for(workload: Workload):
        return planned(deployment(model, workload=workload.to_dict(), scaling={"min": 1}), FLEET)

    declared = Workload.model_validate(SHORT)
    pinned = plan_for(declared)
    fresh = plan_for(declared.model_copy(update={"requests_per_second": f"{rate:g}"}))
    seen = replace(SEEN, since=NOW - DAY, prompt=None, output=None, peak_rate=rate)

    def told(*, numbered: bool):
        return better_declaration(seen, declared, pinned, plan_for, numbered=numbered)

    return told, pinned, fresh


def test_a_rate_that_nobody_declared_is_told_where_another_layout_costs_less_for_it():
    told, pinned, fresh = undeclared(QWEN_32B, 20)
    assert [str(one.layout) for one in pinned.sets] != [str(one.layout) for one in fresh.sets]
    better = told(numbered=False)
    assert better is not None
    assert 'with requestsPerSecond "20" in spec.workload' in better.message


def test_where_live_traffic_says_how_many_an_undeclared_rate_that_changes_only_their_number_is_no_matter():
    told, pinned, fresh = undeclared(LLAMA, 60)
    assert fresh.replicas > pinned.replicas
    assert [capacity_of(one) for one in pinned.sets] == [capacity_of(one) for one in fresh.sets]
    assert told(numbered=False) is None


def test_where_nobody_else_says_how_many_replicas_there_are_their_number_is_told():
    told, _, fresh = undeclared(LLAMA, 60)
    better = told(numbered=True)
    assert better is not None
    assert better.message.endswith(
        f'"60" in spec.workload the plan would be {fresh.replicas} x tp1 on H100-SXM-80GB'
    )


@pytest.mark.parametrize(("watched_s", "is_told"), [(2 * 3600, False), (DAY, True)])
def test_fewer_replicas_than_are_declared_are_told_once_a_day_was_watched(watched_s: float, is_told: bool):
    def plan_for(workload: Workload):
        return planned(deployment(LLAMA, workload=workload.to_dict(), scaling={"min": 1}), FLEET)

    declared = Workload.model_validate(SHORT | {"requestsPerSecond": "60"})
    seen = replace(SEEN, since=NOW - watched_s, prompt=None, output=None, peak_rate=20.0)
    told = better_declaration(seen, declared, plan_for(declared), plan_for, numbered=True)
    assert (told is not None) is is_told


def test_a_peak_that_is_slowly_forgotten_is_not_told_anew_with_each_look():
    planner = Planner()
    for rate in (40.9, 40.8, 40.3):
        better_declaration(replace(SEEN, peak_rate=rate), DECLARED, _Plan(3000), planner)  # type: ignore[arg-type]
    assert {one.requests_per_second for one in planner.asked} == {"41"}


lengths = st.floats(1, 1e9).map(lambda p50: Lengths(p50=p50, p95=1.5 * p50, p99=2 * p50))


@given(
    prompt=lengths,
    output=lengths,
    context=st.none() | st.integers(16, 2**24),
    load=st.sampled_from([{}, {"concurrency": 10}, {"requestsPerSecond": "12.5"}]),
    peaks=st.tuples(st.none() | st.floats(0.001, 1e6), st.none() | st.floats(0.1, 1e8)),
)
def test_what_is_proposed_is_what_the_api_takes(prompt, output, context, load, peaks):
    within = {} if context is None else {"contextTokens": context}
    declared = Workload.model_validate({"inputTokens": {"p95": 15}, **within, **load})
    seen = replace(SEEN, prompt=prompt, output=output, peak_rate=peaks[0], peak_inflight=peaks[1])
    planner = Planner()
    better_declaration(seen, declared, _Plan(3000), planner)  # type: ignore[arg-type]
    for proposed in planner.asked:
        assert Workload.model_validate(proposed.to_dict()) == proposed


@pytest.mark.parametrize(
    ("declared", "seen", "is_told"),
    [
        (DECLARED, {"burstiness": 6.0}, True),
        (DECLARED, {"burstiness": 1.9}, False),
        (DECLARED, {"burstiness": 6.0, "requests": 900.0}, False),
        (DECLARED, {"burstiness": 6.0, "since": NOW - 600}, False),
        (DECLARED.model_copy(update={"requests_per_second": None}), {"burstiness": 6.0}, False),
        (Workload(concurrency=90), {"burstiness": 6.0}, False),
    ],
    ids=["bursts", "chance", "few requests", "a short look", "no load declared", "declared as in flight"],
)
def test_where_requests_come_in_bursts_that_a_declared_rate_says_nothing_of_it_is_told_what_to_declare(
    declared, seen, is_told
):
    found = status_of(replace(SEEN, **seen), declared).advice
    assert (found is not None) is is_told
    if found is not None:
        assert found == bursts_of(replace(SEEN, burstiness=9.0), declared), "no word changes with each look"
        assert (
            'declare the rate of the bursts as workload.requestsPerSecond, above "12", or set scaling.min'
            in found
        )


def test_another_declaration_is_told_with_bursts_that_it_would_not_plan_for_either():
    far = replace(
        SEEN,
        burstiness=6.0,
        peak_rate=40.0,
        peak_inflight=900,
        prompt=Lengths(p50=6000, p95=20_000, p99=30_000),
    )
    told = better_declaration(far, DECLARED, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert told is not None
    assert 'requestsPerSecond "40"' in told.message
    assert 'requestsPerSecond, above "40", or set scaling.min' in told.message
    even = better_declaration(replace(far, burstiness=1.0), DECLARED, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert even is not None
    assert "bursts" not in even.message
