"""Arrivals: a trace brought to size keeps what makes it that trace."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from plimsoll.planning.lengths import ASSUMED_TAIL, P95, P99, Length
from plimsoll.simulate.arrivals import Lengths, draw_arrivals, drawn
from plimsoll.simulate.traces import BadTrace, RateTrace, RequestTrace, TimeTrace, expected, load, load_trace

LENGTHS = Lengths(input=Length(500, 0.8), output=Length(100, 0.5))


def rates(*rows: tuple[float, float, float]) -> RateTrace:
    at, per_second, cvs = zip(*rows, strict=True)
    lasts = at[-1] - at[-2] if len(at) > 1 else 600.0
    return RateTrace(name="rates", at=at, rates=per_second, cvs=cvs, last_s=lasts)


def requests(count: int = 1000, gap: float = 1.0) -> RequestTrace:
    return RequestTrace(
        name="requests",
        at=array("d", (gap * place for place in range(count))),
        inputs=array("q", range(1, count + 1)),
        outputs=array("q", [7] * count),
        prefixes=tuple((place,) for place in range(count)),
    )


@pytest.mark.parametrize(
    ("count", "gap", "lasts"), [(2, 9.0, 18.0), (1000, 1.0, 1000.0), (2, 172_800.0, 172_860.0), (1, 1.0, 1.0)]
)
def test_a_trace_ends_a_mean_gap_after_its_last_request_and_a_minute_at_most(
    count: int, gap: float, lasts: float
):
    asked = requests(count, gap)
    assert asked.span_s == pytest.approx(lasts)
    assert TimeTrace(name="times", at=asked.at).span_s == asked.span_s


def cv(at: array[float]) -> float:
    gaps = [later - earlier for earlier, later in pairwise(at)]
    return statistics.stdev(gaps) / statistics.fmean(gaps)


def test_the_same_seed_draws_the_same_and_another_one_another():
    trace = rates((0, 5, 1.5), (600, 10, 2.0))
    first, again, other = (draw_arrivals(trace, LENGTHS, seed=seed) for seed in (1, 1, 2))
    assert (first.at, first.inputs, first.outputs) == (again.at, again.inputs, again.outputs)
    assert first.at != other.at


@pytest.mark.parametrize(("asked", "scale"), [(1.0, 1.0), (2.0, 1.0), (0.5, 1.0), (2.0, 4.0)])
def test_rates_and_burstiness_are_the_traces(asked: float, scale: float):
    drawn = draw_arrivals(rates((0, 20, asked), (1500, 20, asked)), LENGTHS, seed=3, scale=scale)
    assert drawn.mean_rate == pytest.approx(20 * scale, rel=0.06)
    assert cv(drawn.at) == pytest.approx(asked, rel=0.1)


@pytest.mark.parametrize(
    ("step_s", "rate", "asked"),
    [(1, 5, 2.0), (60, 0.2, 3.0), (60, 1, 4.0), (60, 0.01, 0.3), (1, 0.5, 0.2), (1, 0.5, 0.0)],
)
def test_the_rate_is_the_traces_however_short_its_steps_are_beside_a_gap(
    step_s: int, rate: float, asked: float
):
    steps = [(float(at), rate, asked) for at in range(0, int(10_000 / rate), step_s)]
    drawn = draw_arrivals(rates(*steps), LENGTHS, seed=4)
    assert drawn.mean_rate == pytest.approx(rate, rel=0.1)
    assert cv(drawn.at) == pytest.approx(asked, rel=0.1, abs=1e-6)


def test_a_part_of_a_bursty_trace_is_as_bursty_as_a_random_part_of_its_requests():
    drawn = draw_arrivals(rates((0, 200, 3.0), (2000, 200, 3.0)), LENGTHS, seed=3, scale=0.05)
    assert drawn.mean_rate == pytest.approx(10, rel=0.06)
    assert cv(drawn.at) == pytest.approx((0.05 * 9 + 0.95) ** 0.5, rel=0.07)


def test_steps_without_traffic_stay_empty():
    drawn = draw_arrivals(rates((0, 5, 1.0), (600, 0, 1.0), (1200, 5, 1.0)), LENGTHS, seed=1)
    assert not any(600 <= at < 1200 for at in drawn.at)
    assert drawn.span_s == 1800


def test_a_part_of_a_trace_begins_at_zero():
    drawn = draw_arrivals(rates((0, 5, 1.0), (600, 50, 1.0)), LENGTHS, seed=1, begin_s=600, span_s=300)
    assert drawn.span_s == 300
    assert drawn.at[0] < 5
    assert drawn.mean_rate == pytest.approx(50, rel=0.1)


def test_requests_are_replayed_as_they_are():
    drawn = draw_arrivals(requests(), LENGTHS, seed=1)
    assert list(drawn.at[:3]) == [0.0, 1.0, 2.0]
    assert list(drawn.inputs[:3]) == [1, 2, 3]
    assert drawn.prefixes is not None
    assert drawn.prefixes[2] == (2,)


@pytest.mark.parametrize("scale", [0.3, 2.5])
def test_more_or_fewer_requests_keep_order_and_their_own_lengths(scale: float):
    drawn = draw_arrivals(requests(), LENGTHS, seed=1, scale=scale)
    assert len(drawn) == pytest.approx(1000 * scale, rel=0.1)
    assert list(drawn.at) == sorted(drawn.at)
    assert drawn.prefixes is not None
    assert all(ids[0] % 1000 == tokens - 1 for tokens, ids in zip(drawn.inputs, drawn.prefixes, strict=True))


def test_copies_of_requests_share_their_beginnings_with_copies_of_the_same_turn_only():
    """Each turn is a further group of users, who share as much as those of the trace do."""
    trace = RequestTrace(
        name="pairs",
        at=array("d", (float(place) for place in range(100))),
        inputs=array("q", [1] * 100),
        outputs=array("q", [1] * 100),
        prefixes=tuple((-7, 10 + place // 2) for place in range(100)),
    )
    drawn = draw_arrivals(trace, LENGTHS, seed=1, scale=3.0)
    assert drawn.prefixes is not None
    assert set(Counter(ids[0] for ids in drawn.prefixes).values()) == {100}
    assert set(Counter(ids[1] for ids in drawn.prefixes).values()) == {2}
    assert draw_arrivals(trace, LENGTHS, seed=1).prefixes == list(trace.prefixes or ())


@pytest.mark.parametrize("count", [3, 12, 600])
def test_copies_are_spread_at_the_edges_of_a_trace_as_in_its_midst(count: int):
    drawn = draw_arrivals(requests(count), LENGTHS, seed=1, scale=200.0)
    assert max(Counter(drawn.at).values()) == 1
    assert all(0 <= at <= drawn.span_s for at in drawn.at)
    first, last = (sum(low <= at < low + 1 for at in drawn.at) for low in (0, drawn.span_s - 1))
    assert (first, last) == pytest.approx((200, 200), rel=0.3)


def test_lengths_have_the_percentiles_that_are_declared():
    drawn = draw_arrivals(
        rates((0, 50, 1.0)),
        Lengths(input=Length.by(800, 3000, None, 1), output=Length.by(200, None, 1500, 1)),
        seed=5,
    )
    given, asked = sorted(drawn.inputs), sorted(drawn.outputs)
    assert given[len(given) // 2] == pytest.approx(800, rel=0.05)
    assert given[len(given) * 95 // 100] == pytest.approx(3000, rel=0.07)
    assert asked[len(asked) * 99 // 100] == pytest.approx(1500, rel=0.1)


@pytest.mark.parametrize("p50", [800, None])
@pytest.mark.parametrize("p99", [3000, 4000, 20_000], ids=["cut short", "shorter", "longer"])
def test_a_declared_p99_shapes_the_tail_beside_a_p95(p50: float | None, p99: float):
    length = Length.by(p50, 3000, p99, 1)
    chance = Random(7)
    found = sorted(drawn(length, chance) for _ in range(20_000))
    seen = [found[len(found) * percent // 100] for percent in (50, 95, 99)]
    assert (length.at(P95), length.at(P99)) == pytest.approx((3000, p99))
    assert seen == pytest.approx([p50 or 3000 / ASSUMED_TAIL, 3000, p99], rel=0.1)


def test_the_busiest_window_is_found():
    drawn = draw_arrivals(rates((0, 1, 1.0), (600, 9, 1.0), (1200, 1, 1.0)), LENGTHS, seed=1)
    assert drawn.busiest() == pytest.approx(9, rel=0.1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "the head is 'a,b'"),
        ("arrival_s,input_tokens,output_tokens\n", "holds no request"),
        ("arrival_s,input_tokens,output_tokens\nx,1,1\n", "line 2"),
        ("t_s,rate_rps,cv\n0,0,1\n600,0,1\n", "its rate is never above 0"),
        ("t_s,rate_rps\n", "holds no rate"),
        ("time,path\n", "holds no request"),
        ("time,user\n", "holds no request"),
        ("t_s,rate_rps,cv\n600,1,1\n0,x,1\n", "line 3"),
        ("t_s,rate_rps,cv\n600,1,1\n0,1,1\n600,2,1\n", "line 4: is of the same time as a line above"),
        (
            "arrival_s,input_tokens,output_tokens\n0,1,1\n1790000000,1,1\n",
            "spans 20,718 days, 20,718 of them between",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str):
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(BadTrace, match=said):
        load_trace(file)


def test_what_a_log_wrote_when_requests_ended_is_put_in_order_of_their_beginnings_and_told(tmp_path: Path):
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,input_tokens,output_tokens\n12,1,1\n10,2,2\n11,3,3\n15,4,4\n")
    loaded = load(file)
    assert isinstance(loaded.trace, RequestTrace)
    assert (list(loaded.trace.at), list(loaded.trace.inputs)) == ([0, 1, 2, 5], [2, 3, 1, 4])
    assert loaded.moved == 2
    file.write_text("t_s,rate_rps,cv\n600,4,1\n0,1,1\n")
    other = load(file)
    assert isinstance(other.trace, RateTrace)
    assert (other.trace.at, other.trace.rates, other.moved) == ((0, 600), (1, 4), 1)


def test_how_many_requests_a_part_will_be_is_known_before_they_are_drawn():
    story = rates((0, 1, 1.0), (600, 9, 1.0), (1200, 1, 1.0))
    assert expected(story, 300, 900, 2) == 2 * (300 + 9 * 300)
    drawn = draw_arrivals(story, LENGTHS, seed=1)
    assert expected(story, 0, story.span_s, 1) == pytest.approx(len(drawn), rel=0.1)


def test_a_hole_before_the_last_line_brings_no_traffic_of_its_own(tmp_path: Path):
    file = tmp_path / "counts.csv"
    minutes = (*range(10), 480)
    file.write_text("time,requests\n" + "".join(f"{60 * minute},120\n" for minute in minutes))
    story = load_trace(file)
    assert story.span_s == 481 * 60
    assert expected(story, 0, story.span_s, 1) == pytest.approx(11 * 120)
    assert len(draw_arrivals(story, LENGTHS, seed=1)) == pytest.approx(11 * 120, rel=0.15)


def test_a_file_that_is_not_there_says_so(tmp_path: Path):
    with pytest.raises(BadTrace, match="cannot be read"):
        load_trace(tmp_path / "none.csv")


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_times_alone_are_replayed_with_lengths_that_are_drawn(scale: float):
    came = TimeTrace(name="log", at=array("d", (float(place) for place in range(3000))))
    drawn = draw_arrivals(came, LENGTHS, seed=1, scale=scale)
    assert len(drawn) == pytest.approx(3000 * scale, rel=0.1)
    assert list(drawn.at) == sorted(drawn.at)
    assert sorted(drawn.inputs)[len(drawn) // 2] == pytest.approx(500, rel=0.1)
    assert sorted(drawn.outputs)[len(drawn) // 2] == pytest.approx(100, rel=0.1)
    assert expected(came, 0, came.span_s, scale) == pytest.approx(3000 * scale)
    if scale == 1.0:
        assert drawn.at == came.at
        assert draw_arrivals(came, LENGTHS, seed=1, begin_s=100, span_s=50).at == array("d", range(50))


def test_a_log_without_lengths_is_loaded_in_order(tmp_path: Path):
    file = tmp_path / "log.csv"
    file.write_text("time,path\n12,a\n10,b\n17,c\n")
    loaded = load(file)
    assert isinstance(loaded.trace, TimeTrace)
    assert (list(loaded.trace.at), loaded.moved) == ([0, 2, 7], 1)
    assert loaded.notes[0].startswith("log.csv: no column holds lengths")
