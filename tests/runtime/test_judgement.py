"""Readings of a running engine, when it may be told to end, and when it hangs: functions of times and figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_runtime.drain import Drain, Step
from plimsoll_runtime.hang import Hang
from plimsoll_runtime.readings import Reading, reading_of

IDLE, BUSY = Reading(0, 0, 5.0), Reading(2, 1, 5.0)
UNKNOWN = Reading(None, None, None)


def test_requests_of_all_ranks_count_and_the_cache_is_that_of_one():
    text = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\" } c"} 2.0
vllm:num_requests_running{engine="1",model_name="a"} 3.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7.0
vllm:generation_tokens_total{engine="0"} 1.5e+06
vllm:iteration_tokens_total_count{engine="0"} 10
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="262144",num_gpu_blocks="2048"} 1.0
vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="1",num_gpu_blocks="1"} 1.0
"""
    assert reading_of(text) == Reading(5, 1, 1500010.0, blocks=2048, block_size=16, kv_tokens=262144)


@pytest.mark.parametrize("text", ["", "python_gc 3\n", "vllm:num_requests_running\n", 'vllm:x{a="b} 3\n'])
def test_what_an_engine_does_not_say_is_unknown(text):
    reading = reading_of(text)
    assert reading.running is None
    assert reading.idle is None
    assert reading.moved is None


@given(st.text(), st.text())
def test_no_text_breaks_the_reader(name, value):
    reading_of(
        f"vllm:num_requests_running{{{name}}} {value}\nvllm:num_requests_waiting 1e999\nvllm:cache_config_info{{{value}}} 1"
    )


def test_a_cache_without_blocks_is_not_one_of_no_blocks():
    text = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="None",kv_cache_size_tokens="0"} 1\n'
    assert reading_of(text)[3:] == (None, 16, None)


def test_an_engine_is_told_to_end_when_nobody_waits_and_nobody_has_come_for_a_moment():
    drain = Drain(100.0, 60.0)
    assert drain.step(100.0, BUSY, answers=True) is Step.WAIT
    assert drain.step(110.0, IDLE, answers=True) is Step.WAIT
    assert drain.step(110.5, BUSY, answers=True) is Step.WAIT
    assert drain.step(111.0, IDLE, answers=True) is Step.WAIT
    assert drain.step(112.0, IDLE, answers=True) is Step.STOP


def test_long_answers_have_all_of_the_grace_and_the_engine_a_moment_more():
    drain = Drain(0.0, 60.0)
    assert drain.step(59.9, BUSY, answers=True) is Step.WAIT
    assert drain.step(60.0, BUSY, answers=True) is Step.STOP
    assert drain.step(69.9, BUSY, answers=True) is Step.STOP
    assert drain.step(70.0, BUSY, answers=True) is Step.KILL


def test_a_short_grace_is_followed_by_a_short_moment():
    assert Drain(0.0, 6.0).step(7.9, BUSY, answers=True) is Step.STOP
    assert Drain(0.0, 6.0).step(8.0, BUSY, answers=True) is Step.KILL


def test_without_any_grace_the_engine_is_told_before_it_is_killed():
    drain = Drain(0.0, 0.0)
    assert drain.step(0.0, BUSY, answers=True) is Step.STOP
    assert drain.step(1.9, BUSY, answers=True) is Step.STOP
    assert drain.step(2.0, BUSY, answers=True) is Step.KILL
    assert drain.follow(0.0, leader_there=True) is Step.WAIT
    assert drain.follow(1.0, leader_there=True) is Step.STOP


def test_a_member_goes_when_its_leader_has_gone_or_has_had_its_time():
    drain = Drain(0.0, 60.0)
    assert drain.follow(59.0, leader_there=True) is Step.WAIT
    assert drain.follow(1.0, leader_there=False) is Step.STOP
    assert drain.follow(65.0, leader_there=True) is Step.STOP
    assert drain.follow(70.0, leader_there=True) is Step.KILL


def test_an_engine_that_does_not_serve_yet_is_told_at_once():
    assert Drain(0.0, 60.0).step(0.0, None, answers=False) is Step.STOP


def test_an_engine_that_says_nothing_of_requests_ends_in_its_own_way():
    drain = Drain(0.0, 60.0)
    assert drain.step(1.0, UNKNOWN, answers=True) is Step.WAIT
    assert drain.step(3.0, UNKNOWN, answers=True) is Step.STOP


def test_an_engine_too_busy_to_say_anything_has_all_of_its_time():
    drain = Drain(0.0, 60.0)
    assert drain.step(59.0, None, answers=True) is Step.WAIT
    assert drain.step(60.0, None, answers=True) is Step.STOP


def test_requests_that_run_without_a_token_for_the_limit_are_a_hang():
    hang = Hang(300.0)
    assert hang.take(0.0, BUSY) is None
    assert hang.take(299.0, BUSY) is None
    failure = hang.take(300.0, BUSY)
    assert failure is not None
    assert failure.word == "Hang"
    assert failure.message == "no token has moved for 300 seconds, and requests run: 2"


@pytest.mark.parametrize(
    "between",
    [Reading(2, 1, 6.0), IDLE, UNKNOWN],
    ids=["a token moved", "nothing ran", "the engine does not say"],
)
def test_progress_and_rest_begin_the_time_anew(between):
    hang = Hang(300.0)
    hang.take(0.0, BUSY)
    hang.take(200.0, between)
    assert hang.take(301.0, BUSY) is None


def test_a_long_prompt_alone_fills_the_cache_and_does_not_hang():
    said = """\
vllm:num_requests_running{{engine="0"}} 1.0
vllm:num_requests_waiting{{engine="0"}} 0.0
vllm:generation_tokens_total{{engine="0"}} 1e9
vllm:prompt_tokens_total{{engine="0"}} 3e9
vllm:kv_cache_usage_perc{{engine="0"}} {usage}
"""
    hang = Hang(300.0)
    for step in range(10):
        assert hang.take(200.0 * step, reading_of(said.format(usage=0.1 + 0.0004 * step))) is None
    stuck = reading_of(said.format(usage=0.5))
    assert hang.take(2000.0, stuck) is None
    assert hang.take(2300.0, stuck) is not None


def test_an_engine_that_does_not_even_say_what_it_does_hangs_too():
    hang = Hang(300.0)
    assert hang.take(0.0, None) is None
    assert hang.take(150.0, IDLE) is None
    assert hang.take(160.0, None) is None
    assert hang.take(459.0, None) is None
    assert hang.take(460.0, None) is not None


def test_a_limit_of_nothing_watches_nothing():
    hang = Hang(0.0)
    hang.take(0.0, BUSY)
    assert hang.take(1e9, BUSY) is None
