"""What is said of the plan that another declaration would give, beside what was played."""

from array import array
from dataclasses import replace

import pytest

from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.planning.plan import Finding, Severity
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Result
from plimsoll.simulate.declared import UNJUDGED, Better, beside, better_plan
from tests.control.test_workload import Planner, _Plan
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


def test_a_number_that_is_not_enough_is_not_told_as_what_the_load_needs():
    short = beside(replace(BETTER, enough=False), PLENTY, [])
    assert short == (
        f"{BETTER.message}; its 2 replicas are all that there may be, and that load needs more by formulas, even without its bursts"
    )


@pytest.mark.parametrize(
    ("reason", "enough"), [("LoadAboveMax", False), ("NoFreeGPUs", False), ("PartlyAttainable", True)]
)
def test_whether_a_plan_has_the_replicas_that_its_load_needs_is_what_it_finds_itself(
    reason: str, enough: bool
):
    found = Finding(severity=Severity.WARNING, reason=reason, message="it is so")

    def planner(workload: Workload) -> _Plan:
        assert workload.input_tokens is not None
        return _Plan(workload.input_tokens.p95, (found,))

    told = better_plan(BURSTS, DECLARED, _Plan(200), planner)  # type: ignore[arg-type]
    assert told is not None
    assert told.enough is enough
    assert "that alone is not enough: it is so" in told.message


def test_what_has_no_number_of_its_own_is_told_as_it_is():
    assert beside(replace(BETTER, replicas=None), PLENTY, [constant(99.1, 96.0)]) == BETTER.message
    assert beside(BETTER, replace(PLENTY, fixed=True), [constant(99.1, 96.0)]) == BETTER.message


BURSTS = Arrivals(
    trace="bursts",
    at=array("d", [1200.0 * burst + place / 10 for burst in range(6) for place in range(1200)]),
    inputs=array("q", [900, 9000] * 3600),
    outputs=array("q", [200, 500] * 3600),
    prefixes=None,
    span_s=7200.0,
)
"""Two minutes of ten a second, every twenty minutes."""
DECLARED = Workload(input_tokens=TokenPercentiles(p50=100, p95=200), requests_per_second="2.8")


def test_the_rate_of_a_trace_is_taken_over_two_minutes_as_the_operator_does():
    planner = Planner()
    told = better_plan(BURSTS, DECLARED, _Plan(200), planner)  # type: ignore[arg-type]
    assert told is not None
    assert [one.requests_per_second for one in planner.asked] == ["10"]


def test_that_a_declared_number_of_requests_in_flight_is_not_judged_is_said():
    """How many are in flight follows from how fast they are answered, which no trace knows."""
    crowd = DECLARED.model_copy(update={"requests_per_second": None, "concurrency": 4})
    other = better_plan(BURSTS, crowd, _Plan(200), Planner())  # type: ignore[arg-type]
    assert other is not None
    assert other.message.endswith(f"; {UNJUDGED}")
    same = Workload(
        input_tokens=TokenPercentiles(p50=900, p95=9000, p99=9000),
        output_tokens=TokenPercentiles(p50=200, p95=500, p99=500),
        concurrency=4,
    )
    assert better_plan(BURSTS, same, _Plan(9000), Planner()) == Better(message=UNJUDGED)  # type: ignore[arg-type]


def of_lengths(*each: tuple[int, int, int]) -> Arrivals:
    """A request a second: pairs of prompt and answer, with how many of 2,000 are so."""
    pairs = [(prompt, answer) for prompt, answer, many in each for _ in range(many)]
    return Arrivals(
        trace="lengths",
        at=array("d", map(float, range(len(pairs)))),
        inputs=array("q", [prompt for prompt, _ in pairs]),
        outputs=array("q", [answer for _, answer in pairs]),
        prefixes=None,
        span_s=float(len(pairs)),
    )


@pytest.mark.parametrize(
    ("each", "context"),
    [
        ([(900, 200, 1958), (4142, 300, 30), (13_000, 1089, 12)], 14_089),
        ([(900, 200, 1970), (4000, 300, 30)], 4300),
        ([(900, 200, 1985), (13_000, 1089, 15)], 4096),
        ([(900, 200, 1958), (4142, 300, 30), (60_000, 300, 12)], 32_768),
        ([(900, 200, 1940), (60_000, 300, 60)], 60_300),
    ],
    ids=[
        "prompts are refused",
        "answers are cut",
        "few are refused",
        "a few beyond the model",
        "many beyond the model",
    ],
)
def test_a_context_that_refuses_or_cuts_more_than_one_request_in_100_has_one_proposed_that_takes_all(
    each: list[tuple[int, int, int]], context: int
):
    """So the advice agrees with the note that says how many are refused and cut, and with what cures them."""
    planner, declared = Planner(), DECLARED.model_copy(update={"context_tokens": 4096})
    told = better_plan(of_lengths(*each), declared, _Plan(6000), planner, ceiling=32_768)  # type: ignore[arg-type]
    assert [one.context_tokens for one in planner.asked] == [context]
    assert told is not None
    assert (f"with contextTokens {context}, " in told.message) is (context != 4096)
