"""Requests that share a device wait for steps, for each other and for room: each wait by its mechanism."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.speed.closed_loop import START_SHARE, STEPS_WAITED, Demand, cache_wait, shares

times = st.floats(1e-4, 10)


def demand(running: float = 1, prompts_per_step: int = 8) -> Demand:
    return Demand(output_tokens=1_000, running=running, prompts_per_step=prompts_per_step)


def test_a_request_alone_waits_for_its_own_prompt_and_the_steps_around_it():
    alone = shares(demand(), decode=0.01, prompt=0.1)
    assert alone.ttft_prompts == pytest.approx(1, abs=0.01)
    assert alone.ttft_steps == STEPS_WAITED


def test_every_prompt_of_a_loop_passes_once_in_a_lifetime():
    assert shares(demand(running=50), decode=0.01, prompt=0.1).tpot_prompts == 50 / 1_000


def test_the_first_volley_waits_for_half_of_itself():
    volley = shares(demand(running=101, prompts_per_step=1), decode=10.0, prompt=1e-9)
    assert volley.ttft_prompts == pytest.approx(START_SHARE * 51 + 1 - START_SHARE, rel=1e-3)


@given(st.floats(1, 5_000), st.floats(0, 1_000), st.integers(1, 64), times, times)
def test_more_running_never_shortens_a_wait(running, more, prompts_per_step, decode, prompt):
    few, many = (
        shares(demand(count, prompts_per_step), decode=decode, prompt=prompt)
        for count in (running, running + more)
    )
    assert many.tpot_prompts >= few.tpot_prompts
    assert many.ttft_prompts >= few.ttft_prompts * (1 - 1e-9)


@pytest.mark.parametrize(
    ("concurrency", "running", "rounds"), [(64, 64, 0), (64, 128, 0), (64, 32, 1), (96, 32, 2), (4, 0, 3)]
)
def test_who_finds_no_place_waits_until_as_many_have_ended(concurrency, running, rounds):
    assert cache_wait(concurrency, running) == rounds
