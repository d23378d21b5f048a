"""The engine model: it must answer as its step-by-step twin does, and keep the books of its cache whatever happens."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.meters import ITL, ITL_BUCKETS, Histogram
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.tables import Tables
from tests.simulate.naive_engine import NaiveEngine, Sequence

TIMES = StepTimes(
    decode=(0.0, *(0.01 + 0.0003 * n for n in range(1, 65))),
    kv_token=1.7e-6,
    chunk=0.003,
    prompt_token=4.1e-5,
    seen_token=1.3e-8,
)
LIMITS = Limits(
    blocks=64, block_size=16, max_num_seqs=12, max_num_batched_tokens=96, max_model_len=512, max_queued=None
)


GROWING = st.lists(st.sampled_from([2, 4, 6, 16]), max_size=3).map(tuple)
BOUNDED = st.lists(st.tuples(st.sampled_from([1, 4, 16]), st.integers(1, 3)), max_size=2).map(tuple)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Limits, list[tuple[float, int, int]]]:
    block = draw(st.sampled_from([1, 4, 16]))
    blocks = draw(st.integers(8, 80))
    mixed = draw(st.none() | st.builds(Tables, GROWING, BOUNDED))
    tables = mixed or Tables((block,))
    longest = max(length for length in range(1, 1281) if tables.held(length, length) <= blocks)
    assume(longest > 1)
    sequences = draw(st.integers(1, 12))
    limits = Limits(
        blocks=blocks,
        block_size=block,
        max_num_seqs=sequences,
        max_num_batched_tokens=draw(st.integers(sequences, 200)),
        max_model_len=longest,
        watermark_blocks=draw(st.integers(0, 3)),
        steps_ahead=draw(st.booleans()),
        mixed=mixed,
    )
    count = draw(st.integers(1, 25))
    requests = []
    at = 0.0
    for _ in range(count):
        at += draw(st.floats(0.0, 2.0))
        given_tokens = draw(st.integers(1, longest - 1))
        requests.append((at, given_tokens, draw(st.integers(1, longest - given_tokens))))
    return limits, requests


@settings(max_examples=150)
@given(worlds())
def test_jumping_over_steps_gives_what_taking_each_of_them_gives(world):
    limits, rows = world
    fast, slow = Engine(TIMES, limits), NaiveEngine(TIMES, limits)
    requests = [Request(at, given_tokens, asked) for at, given_tokens, asked in rows]
    sequences = [Sequence(number, *row) for number, row in enumerate(rows)]
    for request, sequence in zip(requests, sequences, strict=True):
        assert fast.submit(request, request.arrival)
        slow.submit(sequence)
        assert fast.now == pytest.approx(slow.now)
    fast.advance(1e9)
    slow.advance(1e9)
    assert fast.preemptions == slow.preemptions
    gaps = Histogram(ITL)
    for request, sequence in zip(requests, sequences, strict=True):
        assert request.first_at == pytest.approx(sequence.first_at)
        assert request.finished_at == pytest.approx(sequence.finished_at)
        assert request.preemptions == sequence.preemptions
        for gap in sequence.gaps:
            gaps.add(gap)
    assert fast.itl.count == gaps.count
    assert fast.itl.total == pytest.approx(gaps.total)
    assert fast.generation_tokens == sum(row[2] for row in rows)
    assert fast.free_blocks == limits.blocks


@settings(max_examples=30)
@given(worlds())
def test_an_engine_whose_histograms_nobody_reads_takes_the_same_steps(world):
    limits, rows = world
    told, untold = Engine(TIMES, limits), Engine(TIMES, limits, histograms=False)
    for engine in (told, untold):
        for row in rows:
            engine.submit(Request(*row), row[0])
        engine.advance(1e9)
    assert (told.now, told.steps, told.preemptions) == (untold.now, untold.steps, untold.preemptions)
    assert (told.itl.counts, told.itl.total) == (untold.itl.counts, untold.itl.total)
    assert [one.finished_at for one in told.finished] == [one.finished_at for one in untold.finished]
    assert (told.e2e.count, untold.e2e.count) == (len(rows), 0)


@settings(max_examples=100)
@given(worlds(), st.lists(st.floats(0.001, 3.0), max_size=40))
def test_how_far_it_is_asked_to_go_at_a_time_changes_nothing(world, pauses):
    limits, rows = world
    whole, halting = Engine(TIMES, limits), Engine(TIMES, limits)
    first = [Request(*row) for row in rows]
    second = [Request(*row) for row in rows]
    for request in first:
        whole.submit(request, request.arrival)
    whole.advance(1e9)
    stops: list[tuple[float, Request | None]] = [(at, None) for at in pauses]
    stops += [(request.arrival, request) for request in second]
    for at, arrived in sorted(stops, key=lambda stop: (stop[0], stop[1] is None)):
        if arrived is None:
            halting.advance(at)
        else:
            halting.submit(arrived, at)
    halting.advance(1e9)
    for one, other in zip(first, second, strict=True):
        assert one.finished_at == pytest.approx(other.finished_at)
        assert one.preemptions == other.preemptions


def test_where_steps_are_chosen_ahead_who_comes_during_one_waits_for_the_next_too():
    def first(*, ahead: bool) -> float:
        engine = Engine(TIMES, replace(LIMITS, steps_ahead=ahead))
        engine.submit(Request(0.0, 16, 100), 0.0)
        engine.advance(1.0)
        late = Request(engine.now - 0.001, 16, 5)  # during the step that has just ended
        engine.submit(late, late.arrival)
        engine.advance(1e9)
        return late.first_at

    step = TIMES.decode[1]
    assert step <= first(ahead=True) - first(ahead=False) < 1.1 * step


def test_an_engine_without_work_takes_in_at_once_whoever_is_there():
    engine = Engine(TIMES, replace(LIMITS, steps_ahead=True))
    requests = [Request(3.0, 16, 5) for _ in range(4)]
    for one in requests:
        engine.submit(one, 3.0)
    engine.advance(1e9)
    assert len({one.first_at for one in requests}) == 1


def test_a_short_cache_preempts_and_still_answers_everybody():
    engine = Engine(TIMES, LIMITS)
    requests = [Request(0.0, 60, 120) for _ in range(30)]
    for request in requests:
        engine.submit(request, 0.0)
    engine.advance(1e6)
    assert engine.preemptions > 5
    assert all(engine.tokens(one) == 120 for one in requests)
    assert engine.longest_stall > 0.5


def test_a_smaller_batch_or_a_watermark_spares_preemptions_as_measured_on_real_engines():
    def preemptions(limits: Limits) -> int:
        engine = Engine(TIMES, limits)
        for number in range(100):
            engine.submit(Request(0.0, 40 + number % 50, 60 + number * 7 % 90), 0.0)
        engine.advance(1e6)
        return engine.preemptions

    plain = preemptions(LIMITS)
    assert plain > 20
    assert preemptions(replace(LIMITS, max_num_seqs=5)) == 0
    assert preemptions(replace(LIMITS, watermark_blocks=12)) < plain / 3


def test_what_is_too_long_is_refused_and_answers_end_at_the_longest_length():
    engine = Engine(TIMES, LIMITS)
    assert not engine.submit(Request(0.0, 512, 1), 0.0)
    long = Request(0.0, 500, 400)
    assert engine.submit(long, 0.0)
    engine.advance(1e6)
    assert (engine.refused, engine.tokens(long)) == (0, 12), (
        "an engine counts only whom its full queue turns away"
    )


def test_a_full_queue_refuses():
    engine = Engine(TIMES, replace(LIMITS, max_queued=3))
    taken = [engine.submit(Request(0.0, 400, 100), 0.0) for _ in range(8)]
    assert taken == [True] * 3 + [False] * 5
    assert engine.refused == 5


def test_shared_prefixes_are_computed_and_held_once():
    times = replace(TIMES, chunk=0.0)
    limits = replace(LIMITS, blocks=400, max_model_len=4096, max_num_batched_tokens=2048)

    def run(caching: bool) -> tuple[float, float, int]:
        engine = Engine(times, replace(limits, prefix_caching=caching))
        first, second = Request(0.0, 1600, 50, (1, 2, 3)), Request(5.0, 1600, 50, (1, 2, 3))
        engine.submit(first, 0.0)
        engine.submit(second, 5.0)
        engine.advance(100.0)
        return first.first_at, second.first_at - 5.0, engine.prefix_hits

    first, second, hits = run(True)
    assert hits == 1536
    assert second < first / 5
    assert run(False)[0] == pytest.approx(run(False)[1])


def test_a_held_prefix_takes_its_blocks_once_and_gives_them_back():
    engine = Engine(TIMES, replace(LIMITS, blocks=400, max_model_len=1600, max_num_batched_tokens=1024))
    for _ in range(3):
        engine.submit(Request(0.0, 1000, 200, (7,)), 0.0)
    engine.advance(0.1)
    assert len(engine.running) == 3
    assert engine.kv_fraction == pytest.approx((32 + 3 * 31) / 400)
    engine.advance(1e6)
    assert engine.free_blocks == 400


def test_a_crash_loses_what_runs_and_counts_anew():
    engine = Engine(TIMES, LIMITS)
    requests = [Request(0.0, 60, 120) for _ in range(20)]
    for request in requests:
        engine.submit(request, 0.0)
    engine.advance(0.5)
    assert set(engine.crash()) == set(requests)
    assert engine.generation_tokens == 0
    assert engine.in_flight == 0
    assert engine.now >= 0.5


def test_a_client_that_leaves_frees_its_blocks():
    engine = Engine(TIMES, LIMITS)
    requests = [Request(0.0, 60, 120) for _ in range(20)]
    for request in requests:
        engine.submit(request, 0.0)
    engine.advance(1.0)
    for request in requests:
        engine.abort(request)
    assert (engine.in_flight, engine.free_blocks) == (0, LIMITS.blocks)
    engine.advance(10.0)
    assert engine.finished_count == 0


def test_histograms_export_cumulative_counts_at_the_engines_own_edges():
    engine = Engine(TIMES, LIMITS)
    for number in range(40):
        engine.submit(Request(number * 0.2, 60, 20), number * 0.2)
    engine.advance(1e4)
    assert engine.finished_count == engine.ttft.exported()[-1] == engine.e2e.exported()[-1] == 40
    assert engine.itl.exported()[-1] == engine.generation_tokens - 40
    assert list(engine.itl.exported()) == sorted(engine.itl.exported())
    assert len(engine.itl.exported()) == len(ITL_BUCKETS) + 1
    assert engine.kv_fraction == 0


def test_the_gauge_counts_who_a_step_left_waiting_not_who_came_during_it():
    engine = Engine(TIMES, LIMITS)
    engine.submit(Request(0.0, 60, 200), 0.0)
    engine.advance(1.0)
    engine.submit(Request(1.0, 60, 200), 1.0)
    assert (len(engine.waiting), engine.queued) == (1, 0)
    for _ in range(20):
        engine.submit(Request(1.0, 60, 200), 1.0)
    engine.advance(1.2)
    assert engine.queued == len(engine.waiting) > 0
    engine.advance(1e6)
    assert engine.queued == 0
