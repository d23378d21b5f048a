"""What no policy can keep: prompts that are longer than their limit, whoever is beside them."""

from dataclasses import replace

import pytest

from plimsoll.control.situation import Slo
from plimsoll.simulate.alone import beyond_reach, first_token_s, longest_in_time
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.report import Report
from plimsoll.simulate.request import Request
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Run
from plimsoll.simulate.steps import StepTimes
from tests.simulate.worlds import LIMITS, SCENARIO, TIMES, joined, steady, world

DEAR = replace(TIMES, request=0.02, request_token=1e-6, request_beside=0.003, seen_token=2e-7)


def by_the_engine(times: StepTimes, tokens: int) -> float:
    engine, asked = Engine(times, LIMITS), Request(0.0, tokens, 5)
    assert engine.submit(asked, 0.0)
    engine.advance(100.0)
    return asked.first_at


@pytest.mark.parametrize(
    "times", [TIMES, DEAR, replace(DEAR, stages=4)], ids=["round", "with all terms", "in four stages"]
)
@pytest.mark.parametrize("tokens", [1, 16, 300, 1023, 1024, 1025, 2048, 4000])
def test_it_is_what_an_empty_engine_takes(times: StepTimes, tokens: int):
    assert first_token_s(times, LIMITS, tokens) == pytest.approx(by_the_engine(times, tokens), rel=1e-9)


def test_the_longest_prompt_in_time_is_in_time_and_one_token_more_is_late():
    here = world(slo=Slo(ttft_p99_s=0.1))
    longest = longest_in_time(here)
    assert longest is not None
    assert by_the_engine(TIMES, longest) <= 0.1 < by_the_engine(TIMES, longest + 1)


def test_without_a_promise_everything_is_in_time():
    assert longest_in_time(world(slo=Slo())) is None
    assert beyond_reach(steady(1.0, 60.0), world(slo=Slo())) == 0


def mixed() -> Arrivals:
    """Of 600 prompts 60 take a fifth of a second by themselves, and 30 are refused."""
    asked = joined(steady(1.0, 510.0), steady(1.0, 60.0, given=3500), steady(1.0, 30.0, given=9000))
    return replace(asked, prefixes=None)


TIGHT = Slo(ttft_p99_s=0.15)


def test_what_is_beyond_reach_is_late_with_any_number_of_replicas_and_all_else_is_not():
    here, asked = world(slo=TIGHT), mixed()
    assert beyond_reach(asked, here) == 60
    figures = Run(world=here, arrivals=asked, policy=Static(8), initial=8).outcome().figures
    assert figures.failed == 30
    assert figures.slo_pct == pytest.approx(100 * 510 / 600)


@pytest.mark.parametrize(
    ("cached", "said"),
    [
        (False, "alone, and 30 are refused, so that 85.00%"),
        (True, "cached, and 30 are refused, so that 85.00%"),
    ],
)
def test_a_report_says_what_nobody_could_keep(cached: bool, said: str):
    asked = mixed()
    if cached:
        asked = replace(asked, prefixes=[(place,) for place in range(len(asked))])
    report = Report(
        scenario=SCENARIO,
        world=world(slo=TIGHT),
        arrivals=asked,
        scale=1.0,
        lengths_from_trace=True,
        results={Routing.SERVICE: ()},
    )
    (note,) = [note for note in report.notes if "alone" in note]
    assert note.startswith("60 of 600 prompts")
    assert said in note
    easy = replace(report, world=world(slo=Slo(ttft_p99_s=5.0)))
    assert not any("alone" in note for note in easy.notes)
