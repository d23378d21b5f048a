"""A plan's figures beside measured ones: at the plan's own load, drawn between steps, never beyond them."""

from dataclasses import replace

import pytest

from plimsoll.load.compare import Expected, Range, compare
from plimsoll.load.conclusions import Asked, Step, conclude
from tests.load.results import result, spread

EXPECTED = Expected(
    plan="default/chat",
    replicas=2,
    input_tokens=512,
    output_tokens=128,
    in_flight=9,
    ttft_ms=Range(150, 200, 250),
    tpot_ms=Range(10, 12, 14),
    requests_per_second=3.0,
    output_tokens_per_second=384,
    most_in_flight=24,
    seats=64,
    bound="memory",
)


def rows(*results, good=None, expected=EXPECTED):
    return {one.what: one for one in compare(expected, results, good_in_flight=good).rows}


def test_figures_are_drawn_between_the_steps_around_the_plan_s_load():
    # in flight 6 and 12
    found = rows(result(per_second=4, ttft_ms=spread(300)), result(per_second=2, ttft_ms=spread(200)))
    assert found["TTFT ms, mean"].measured == 250
    assert (found["TTFT ms, mean"].off_percent, found["TTFT ms, mean"].within) == (25, True)
    assert (found["TPOT ms, mean"].measured, found["TPOT ms, mean"].within) == (20, False)
    assert (found["requests/s"].measured, found["requests/s"].within) == (3, None)
    assert found["output tokens/s"].off_percent == 0


@pytest.mark.parametrize("rates", [(1, 2), (4, 8), (2,), ()])
def test_nothing_is_drawn_beyond_what_was_measured(rates):
    found = compare(EXPECTED, [result(per_second=rate) for rate in rates], good_in_flight=None)
    assert {one.measured for one in found.rows} == {None}
    assert any("9 requests in flight; the ramp had" in note for note in found.notes) is bool(rates)


def test_a_load_of_which_much_failed_is_not_compared_though_it_has_about_as_many_in_flight():
    # in flight 6, 12, and 7.5 where most are refused at once
    few = replace(result().rates, requests=0.5, in_flight_mean=7.5)
    steps = [
        Step(load=load, result=one, engine=None)
        for load, one in (
            (2, result(per_second=2)),
            (4, result(per_second=4)),
            (8, result(per_second=8, bad=200, rates=few)),
        )
    ]
    asked = Asked(
        url="u",
        model="m",
        closed_loop=False,
        input_tokens="512",
        output_tokens="128",
        seed=0,
        expected=EXPECTED,
    )
    found = conclude(asked, steps, interrupted=False).comparison
    assert found is not None
    assert {one.what: one.measured for one in found.rows}["requests/s"] == 3


def test_how_much_went_well_stands_beside_how_much_was_planned():
    assert rows(good=18.0)["in flight while well"].off_percent == -25
    assert rows()["in flight while well"].measured is None


def test_another_load_than_the_plan_s_is_said_to_be_one():
    found = compare(
        EXPECTED,
        [
            result(
                lengths=result().lengths.__class__(
                    counted_by="server",
                    input_asked=2000,
                    input_mean=2001,
                    input_error_percent=0,
                    output_asked=128,
                    output_mean=128,
                    tokens_per_event=1,
                )
            )
        ],
        good_in_flight=None,
    )
    assert "prompts of 512 tokens, 2,001 were measured" in found.notes[0]
