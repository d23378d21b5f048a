"""Requests that are longer than the context that was planned for: how many, how long, and what to declare for them."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.overlong import overlong

DRAWN = (
    "; the trace does not hold their lengths, and those that spec.workload declares reach as far: lower percentiles there have them drawn "
    "shorter"
)


def of(*lengths: tuple[int, int]) -> Arrivals:
    """Prompts and answers, a second apart."""
    return Arrivals(
        trace="t",
        at=array("d", map(float, range(len(lengths)))),
        inputs=array("q", (prompt for prompt, _ in lengths)),
        outputs=array("q", (answer for _, answer in lengths)),
        prefixes=None,
        span_s=float(len(lengths)),
    )


FITTING = (300, 100), (3000, 1096)


def test_of_requests_that_fit_nothing_is_told():
    assert not list(overlong(of(*FITTING), 4096, 131_072, drawn=False))


def test_prompts_that_no_replica_takes_are_counted_with_the_longest_and_what_takes_them():
    told = overlong(of(*FITTING, (4096, 1), (6000, 250)), 4096, 131_072, drawn=False)
    assert list(told) == [
        (
            "2 of 4 prompts have 4,096 tokens (max_model_len) or more, up to 6,000, and are refused, whatever the policy; "
            "workload.contextTokens: 6250 takes all of them with their answers"
        )
    ]


def test_answers_that_the_context_cuts_are_counted_too():
    told = overlong(of(*FITTING, (4000, 500), (3000, 1097)), 4096, 131_072, drawn=False)
    assert list(told) == [
        (
            "2 of 4 answers are cut where prompt and answer together reach 4,096 tokens (max_model_len); workload.contextTokens: 4500 takes all "
            "of them whole"
        )
    ]


def test_one_length_is_declared_for_both():
    refused, cut = overlong(of((5000, 100), (4000, 2000)), 4096, 131_072, drawn=False)
    assert refused.endswith("workload.contextTokens: 6000 takes all of them with their answers")
    assert cut.startswith("1 of 2 answers is cut")
    assert cut.endswith("workload.contextTokens: 6000 takes all of them whole")


def test_lengths_that_were_drawn_may_be_declared_shorter():
    (told,) = overlong(of(*FITTING, (5000, 100)), 4096, 131_072, drawn=True)
    assert told.startswith("1 of 3 prompts has 4,096 tokens")
    assert told.endswith(f"workload.contextTokens: 5100 takes all of them with their answers{DRAWN}")


def test_lengths_that_were_drawn_anew_are_told():
    assert list(overlong(replace(of(*FITTING), shortened=1), 4096, 131_072, drawn=True)) == [
        (
            "1 of 2 requests was drawn anew to be no longer than 4,096 tokens (max_model_len), prompt and answer together, as a client's are: "
            "beyond the percentiles of spec.workload lengths are a guess, and whether yours are longer only a trace that holds them tells"
        )
    ]


@pytest.mark.parametrize(
    ("ceiling", "said"),
    [
        (8192, "the model is made for 8,192, so workload.contextTokens: 8192 takes those that fit that"),
        (4096, "the model is made for no more"),
    ],
)
def test_no_more_is_promised_than_the_model_takes(ceiling: int, said: str):
    (told,) = overlong(of(*FITTING, (5000, 100), (9000, 100)), 4096, ceiling, drawn=False)
    assert told.startswith(
        "2 of 4 prompts have 4,096 tokens (max_model_len) or more, up to 9,000, and are refused"
    )
    assert told.endswith(f"; {said}")
