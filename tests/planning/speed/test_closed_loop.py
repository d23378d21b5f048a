"""Requests that share a device wait for steps, for each other and for room: each wait by its mechanism."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.speed.closed_loop import (
    START_SHARE,
    STEPS_WAITED,
    ClosedLoop,
    Shares,
    cache_wait,
    shares,
)

times = st.floats(1e-4, 10)


def loop(running: float = 1, prompt_steps: float = 1 / 8, output_tokens: int = 1_000) -> ClosedLoop:
    return ClosedLoop(
        output_tokens=output_tokens, running=running, arriving=running, prompt_steps=prompt_steps
    )


def idle(asked: ClosedLoop) -> Shares:
    """Where decoding takes so long that prompts hardly ever meet."""
    return shares(asked, decode=1e6, prompt=1e-9, launch=1e-9)


def test_a_request_alone_waits_for_its_own_prompt_and_the_steps_around_it():
    alone = shares(loop(), decode=0.01, prompt=0.1, launch=0.01)
    assert alone.ttft_prompts == pytest.approx(1, abs=0.01)
    assert alone.ttft_launches == pytest.approx(1, abs=0.01)
    assert alone.ttft_steps == STEPS_WAITED


def test_every_prompt_of_a_loop_passes_once_in_a_lifetime():
    assert shares(loop(running=50), decode=0.01, prompt=0.1, launch=0.01).tpot_prompts == 50 / 1_000


def test_the_first_volley_waits_for_half_of_itself():
    volley = idle(loop(running=101, prompt_steps=1))
    assert volley.ttft_prompts == pytest.approx(START_SHARE * 51 + 1 - START_SHARE, rel=1e-3)


@pytest.mark.parametrize(
    ("running", "prompt_steps", "prompts", "launches"),
    [
        pytest.param(8, 1 / 8, 8, 4.5, id="all fit one step, for which all wait"),
        pytest.param(8, 1 / 16, 8, 4.5, id="all fit half a step"),
        pytest.param(8, 1 / 4, 6, 4.5, id="two steps, the first or the second"),
        pytest.param(1, 3, 1, 3, id="one prompt in three steps"),
        pytest.param(3, 2, 2, 4, id="three prompts of two steps each"),
    ],
)
def test_prompts_that_start_together_wait_for_those_of_their_step_and_for_half_of_all_launches(
    running, prompt_steps, prompts, launches
):
    volley = idle(loop(running, prompt_steps))
    assert volley.ttft_prompts == pytest.approx(START_SHARE * prompts + 1 - START_SHARE)
    later = max(1, prompt_steps)
    assert volley.ttft_launches == pytest.approx(START_SHARE * launches + (1 - START_SHARE) * later)


@pytest.mark.parametrize(
    ("output_tokens", "prompt_steps", "launches"),
    [
        pytest.param(1_000, 1 / 1_000, 0.1, id="a tenth of the steps has a prompt"),
        pytest.param(10, 1 / 1_000, 1, id="ten prompts in each step, which has one launch"),
        pytest.param(1_000, 4, 0.4, id="a prompt that takes four steps"),
    ],
)
def test_a_step_is_launched_once_for_all_its_prompts(output_tokens, prompt_steps, launches):
    asked = loop(100, prompt_steps, output_tokens)
    assert idle(asked).tpot_launches == pytest.approx(launches)


@given(st.floats(1, 5_000), st.floats(0, 1_000), st.floats(1e-4, 20), st.tuples(times, times, times))
def test_more_running_never_shortens_a_wait(running, more, prompt_steps, seconds):
    decode, prompt, launch = seconds
    few, many = (
        shares(loop(count, prompt_steps), decode=decode, prompt=prompt, launch=launch)
        for count in (running, running + more)
    )
    assert many.tpot_prompts >= few.tpot_prompts
    assert many.tpot_launches >= few.tpot_launches
    assert many.ttft_prompts >= few.ttft_prompts * (1 - 1e-9)


@pytest.mark.parametrize(
    ("concurrency", "running", "rounds"), [(64, 64, 0), (64, 128, 0), (64, 32, 1), (96, 32, 2), (4, 0, 3)]
)
def test_who_finds_no_place_waits_until_as_many_have_ended(concurrency, running, rounds):
    assert cache_wait(concurrency, running) == rounds
