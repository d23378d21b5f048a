"""What ramps teach about speed: predictions move towards what was measured, and never beyond the bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.facts.learned import export_learned, import_learned, learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import MOST_FACTOR, Speed
from plimsoll.facts.ramp_record import MOST, RampPoint, RampRecord
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load
from plimsoll.planning.speed.believing import Belief, belief
from plimsoll.planning.speed.learning import LEAST_TPOT_SPREAD, LEAST_TTFT_SPREAD, speed_of
from plimsoll.planning.speed.performance import Replica
from tests.planning.speed.test_performance import loads, replica

KEY = LearnedKey(model="m", gpu="g", engine="vllm-0.33.0", flags="tp1")
SEEN = Load(input_tokens=512, output_tokens=128, concurrency=4)
PLACE = replica("Qwen/Qwen3-32B", "H100-SXM-80GB", Layout())
ROUNDING = 1e-4


def point(place: Replica, load: Load, *, first: float = 1.0, each: float = 1.0) -> RampPoint:
    """As measured where the answers take so many times as long as the model says."""
    said = place.at(load)
    return RampPoint(
        load=1.0,
        in_flight=load.concurrency,
        requests=50,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        ttft_ms=first * said.ttft_ms.mid,
        tpot_ms=each * said.tpot_ms.mid,
        itl_p99_ms=None,
        tokens_per_second=100.0,
    )


def record(*points: RampPoint, replicas: int = 1, prefix_tokens: int = 0) -> RampRecord:
    return RampRecord(
        set="s",
        replicas=replicas,
        at=1,
        closed_loop=True,
        prefix_tokens=prefix_tokens,
        knee=None,
        points=points,
    )


def believing(speed: Speed, place: Replica = PLACE, *, own: bool = True) -> Replica:
    return replace(place, belief=Belief(speed, own))


def taught(*points: RampPoint, place: Replica = PLACE, replicas: int = 1) -> Speed:
    found = speed_of(record(*points, replicas=replicas), place, KEY)
    assert found is not None
    return found


def test_the_load_that_was_measured_is_predicted_as_it_was_measured():
    speed = taught(*(point(PLACE, replace(SEEN, concurrency=n), first=1.3, each=0.8) for n in (1, 4, 16)))
    before, after = PLACE.at(SEEN), believing(speed).at(SEEN)
    assert after.ttft_ms.mid == pytest.approx(1.3 * before.ttft_ms.mid, rel=1e-3)
    assert after.tpot_ms.mid == pytest.approx(0.8 * before.tpot_ms.mid, rel=1e-3)
    assert after.output_tokens_per_second > before.output_tokens_per_second
    assert before.learned is None
    assert after.learned is not None
    assert after.learned.taught_by == "3 loads of 512 + 128 tokens on tp1"


def test_loads_that_agree_narrow_the_range_and_loads_that_do_not_leave_it_wide():
    same = taught(*(point(PLACE, SEEN, first=1.1, each=1.1) for _ in range(3)))
    assert (same.ttft_spread, same.tpot_spread) == (LEAST_TTFT_SPREAD, LEAST_TPOT_SPREAD)
    apart = taught(*(point(PLACE, SEEN, first=off, each=off) for off in (0.6, 1.0, 1.7)))
    assert apart.tpot_spread == pytest.approx(1.7, abs=0.01)
    physics, learnt = PLACE.at(SEEN).tpot_ms, believing(same).at(SEEN).tpot_ms
    assert learnt.high / learnt.low < physics.high / physics.low


def test_of_other_lengths_half_is_believed_and_the_rest_stays_in_the_range():
    speed = taught(*(point(PLACE, SEEN, first=1.96, each=1.44) for _ in range(3)))
    other = replace(SEEN, input_tokens=8_000)
    before, after = PLACE.at(other), believing(speed).at(other)
    assert after.tpot_ms.mid == pytest.approx(1.2 * before.tpot_ms.mid, rel=1e-3)
    assert after.tpot_ms.low <= before.tpot_ms.mid < 1.44 * before.tpot_ms.mid <= after.tpot_ms.high


def test_a_layout_that_was_never_measured_has_half_of_what_the_newest_ramp_of_another_taught():
    lesson = taught(point(PLACE, SEEN, first=1.96, each=1.44))
    older = replace(lesson, key=replace(KEY, flags="tp2"), tpot=0.5, at=0)
    strange = replace(lesson, key=replace(KEY, gpu="other"), tpot=0.5, at=9)
    known = learned([], speeds=[lesson, older, strange])
    assert belief(known, KEY) == Belief(lesson, own=True)
    other = belief(known, replace(KEY, flags="tp4"))
    assert other == Belief(lesson, own=False)
    assert other.at(SEEN).tpot == pytest.approx(1.2, rel=1e-3)
    assert belief(known, replace(KEY, engine="vllm-0.32.0")) is None


def test_of_several_replicas_each_has_its_part_of_the_requests():
    whole = point(PLACE, replace(SEEN, concurrency=4), each=1.2)
    speed = taught(replace(whole, in_flight=12.0), replicas=3)
    assert speed.tpot == pytest.approx(1.2, rel=1e-3)


def test_one_odd_load_moves_nothing():
    speed = taught(*(point(PLACE, SEEN, each=off) for off in (1.1, 1.1, 1.1, 50.0)))
    assert speed.tpot == pytest.approx(1.1, rel=1e-3)


def test_loads_that_wait_for_the_cache_say_nothing_of_speed():
    small = replace(PLACE, kv_tokens=2_000.0)
    crowd = replace(SEEN, concurrency=64)
    assert speed_of(record(point(small, crowd)), small, KEY) is None
    assert taught(point(small, replace(SEEN, concurrency=1)), point(small, crowd), place=small).points == 1


def test_lengths_are_those_of_the_loads_that_spoke_of_speed():
    small, long = replace(PLACE, kv_tokens=2_000.0), replace(SEEN, input_tokens=4_000, concurrency=64)
    ramp = (point(small, replace(SEEN, concurrency=1)), point(small, long), point(small, long))
    assert taught(*ramp, place=small).input_tokens == 512


figures = st.floats(1e-9, MOST)
points = st.builds(
    RampPoint,
    load=figures,
    in_flight=figures,
    requests=st.integers(10, 10**9),
    input_tokens=figures,
    output_tokens=figures,
    ttft_ms=figures,
    tpot_ms=figures,
    itl_p99_ms=st.none() | figures,
    tokens_per_second=figures,
)


@given(
    measured=st.lists(points, min_size=1, max_size=5),
    replicas=st.integers(1, 10**9),
    prefix=st.integers(0, 10**9),
    load=loads,
    pool=st.sampled_from([None, 3_000.0, 400_000.0]),
    own=st.booleans(),
)
def test_no_record_moves_a_prediction_beyond_the_bound(*, measured, replicas, prefix, load, pool, own):
    place = replace(PLACE, kv_tokens=pool)
    speed = speed_of(record(*measured, replicas=replicas, prefix_tokens=prefix), place, KEY)
    if speed is None:
        return
    before, after = place.at(load), believing(speed, place, own=own).at(load)
    most = MOST_FACTOR + ROUNDING
    for old, new in ((before.ttft_ms, after.ttft_ms), (before.tpot_ms, after.tpot_ms)):
        assert old.mid / most <= new.mid <= old.mid * most
        assert old.low / most**2 <= new.low <= new.mid <= new.high <= old.high * most**2
    for name in ("output_tokens_per_second", "requests_per_second"):
        assert getattr(before, name) / most <= getattr(after, name) <= getattr(before, name) * most
    assert (after.bound, after.running) == (before.bound, before.running)


@given(measured=st.lists(points, min_size=1, max_size=3))
@example([replace(point(PLACE, SEEN), input_tokens=0.3, output_tokens=0.2)])
def test_whatever_a_record_teaches_is_read_again_with_all_that_stands_beside_it(measured):
    speed = speed_of(record(*measured), PLACE, KEY)
    known = learned([], speeds=[] if speed is None else [speed])
    assert import_learned(export_learned(known)) == known
