"""What is said of the plan that another declaration would give, beside what was played."""

from dataclasses import replace

import pytest

from plimsoll.simulate.compare import Result
from plimsoll.simulate.declared import Better, beside
from tests.simulate.test_advice import PLENTY, constant, result

BETTER = Better(message="the plan would be 2 x tp1 on H100", replicas=2)
EVEN = "the plan would be 2 x tp1 on H100; its 2 replicas are by formulas, for that load without its bursts"


@pytest.mark.parametrize(
    ("played", "said"),
    [
        (
            constant(99.1, 96.0),
            f"{EVEN}; the 3 replicas of static_peak are the present plan's, on this trace with its bursts",
        ),
        (constant(80.0, 96.0), EVEN),
        (result("hpa", 99.2, 60.0), EVEN),
        (constant(None, 96.0), EVEN),
    ],
    ids=["a number that keeps slo", "no number keeps it", "none was played", "nobody knows who keeps what"],
)
def test_the_number_that_was_found_on_the_trace_is_told_apart_from_that_of_the_plan(
    played: Result, said: str
):
    assert beside(BETTER, PLENTY, [played]) == said


def test_what_has_no_number_of_its_own_is_told_as_it_is():
    assert beside(replace(BETTER, replicas=None), PLENTY, [constant(99.1, 96.0)]) == BETTER.message
    assert beside(BETTER, replace(PLENTY, fixed=True), [constant(99.1, 96.0)]) == BETTER.message
